package grpclimit

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// FromError is the inverse of [Error]. It returns an error that wraps an error of the runtime and still has the status of err. A refusal has
// Message, RetryAfter and Never, and for each violation the name of the rule and its limit. FromError returns other errors unchanged, also those
// that it has returned.
func FromError(err error) error {
	var answer interface{ GRPCStatus() *status.Status }
	if !errors.As(err, &answer) {
		return err
	}
	s := answer.GRPCStatus()
	if _, done := answer.(*remote); done || s == nil {
		return err
	}
	var of *errdetails.ErrorInfo
	refusal := &ratelimit.TooManyRequestsError{Message: s.Message(), Never: true}
	for _, detail := range s.Details() {
		switch d := detail.(type) {
		case *errdetails.ErrorInfo:
			of = d
		case *errdetails.RetryInfo:
			refusal.RetryAfter, refusal.Never = d.GetRetryDelay().AsDuration(), false
		case *errdetails.QuotaFailure:
			for _, v := range d.GetViolations() {
				refusal.Violations = append(refusal.Violations, ratelimit.Violation{Rule: v.GetQuotaId(), Limit: v.GetQuotaValue()})
			}
		}
	}
	if of.GetDomain() != domain {
		return err
	}
	for i := range refusal.Violations {
		refusal.Violations[i].Never = refusal.Never && refusal.Violations[i].Limit == 0
	}
	return typed(of, refusal, s, err)
}

// typed returns the error of the runtime for a status.
func typed(of *errdetails.ErrorInfo, refusal *ratelimit.TooManyRequestsError, s *status.Status, err error) error {
	switch of.GetReason() {
	case reasonRefused:
		return &remote{refusal, s, true}
	case reasonNever:
		_, said := of.GetMetadata()["limit"]
		return &remote{&ratelimit.NeverAdmissibleError{Cost: number(of, "cost"), Limit: number(of, "limit"), Unreported: !said}, s, true}
	case reasonKey:
		return &remote{&ratelimit.KeyError{Reason: s.Message(), Internal: s.Code() == codes.Internal}, s, true}
	case reasonStore:
		return &remote{&ratelimit.StoreError{Err: errors.New(s.Message())}, s, true}
	case reasonRule:
		return &remote{&ratelimit.RuleError{Argument: "rule", Reason: s.Message()}, s, true}
	default:
		return err
	}
}

func number(of *errdetails.ErrorInfo, name string) int64 {
	n, _ := strconv.ParseInt(of.GetMetadata()[name], 10, 64)
	return n
}

// remote is an error of the runtime, or of a context, that has a status: a server has returned it, or this program has not made the call.
type remote struct {
	error
	status  *status.Status
	farSide bool // a server has returned it
}

func (r *remote) Unwrap() error { return r.error }

// FarSide reports whether another program refused. See retryAfter of directives.
func (r *remote) FarSide() bool { return r.farSide }

// GRPCStatus returns the status. Package status calls it.
func (r *remote) GRPCStatus() *status.Status { return r.status }

// UnaryClientInterceptor returns an interceptor that applies [FromError] to the errors of calls. See [WithLimits] for its option.
func UnaryClientInterceptor(opts ...ClientOption) grpc.UnaryClientInterceptor {
	limits := newLimits(opts)
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		taken, err := limits.take(ctx, method)
		if err != nil {
			return err
		}
		var server peer.Peer // stays zero if the call is not sent
		var trailer metadata.MD
		err = invoke(ctx, method, req, reply, cc, slices.Concat(opts, []grpc.CallOption{grpc.Peer(&server), grpc.Trailer(&trailer)})...)
		if err != nil && server.Addr == nil {
			limits.giveBack(ctx, taken)
		}
		limits.pause(ctx, taken, err, trailer)
		return FromError(err)
	}
}

// StreamClientInterceptor returns an interceptor that applies [FromError] to the errors of streams. See [WithLimits] for its option.
func StreamClientInterceptor(opts ...ClientOption) grpc.StreamClientInterceptor {
	limits := newLimits(opts)
	return func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		taken, err := limits.take(ctx, method)
		if err != nil {
			return nil, err
		}
		stream, err := open(ctx, desc, cc, method, opts...)
		if err != nil {
			limits.giveBack(ctx, taken)
			return nil, FromError(err)
		}
		return &clientStream{ClientStream: stream, ctx: ctx, limits: limits, taken: taken}, nil
	}
}

type clientStream struct {
	grpc.ClientStream
	ctx    context.Context // of the call; the stream's Context would end gRPC's own retries
	limits *limits
	taken  *wrap.Taken
}

// seen returns an error of the stream as an error of the runtime. It pauses the key if the error asks for that.
func (s *clientStream) seen(err error) error {
	s.limits.pause(s.ctx, s.taken, err, nil)
	return FromError(err)
}

func (s *clientStream) Header() (metadata.MD, error) {
	md, err := s.ClientStream.Header()
	return md, s.seen(err)
}

func (s *clientStream) CloseSend() error          { return s.seen(s.ClientStream.CloseSend()) }
func (s *clientStream) SendMsg(message any) error { return s.seen(s.ClientStream.SendMsg(message)) }

func (s *clientStream) RecvMsg(message any) error {
	err := s.ClientStream.RecvMsg(message)
	if err == nil {
		return nil
	}
	s.limits.pause(s.ctx, s.taken, err, s.ClientStream.Trailer()) // which is there after an error of RecvMsg
	return FromError(err)
}
