package grpclimit

import (
	"context"
	"errors"
	"strconv"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// FromError is the inverse of [Error]. It returns an error that wraps an error of the runtime and still has the status of err. A refusal has
// Message, RetryAfter and Never, and for each violation the name of the rule and its limit. FromError returns other errors unchanged.
func FromError(err error) error {
	s, ok := status.FromError(err)
	if !ok || s == nil {
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
		return &remote{refusal, s}
	case reasonNever:
		return &remote{&ratelimit.NeverAdmissibleError{Cost: number(of, "cost"), Limit: number(of, "limit")}, s}
	case reasonKey:
		return &remote{&ratelimit.KeyError{Reason: s.Message(), Missing: s.Code() == codes.Internal}, s}
	case reasonStore:
		return &remote{&ratelimit.StoreError{Err: errors.New(s.Message())}, s}
	case reasonRule:
		return &remote{&ratelimit.RuleError{Argument: "rule", Reason: s.Message()}, s}
	default:
		return err
	}
}

func number(of *errdetails.ErrorInfo, name string) int64 {
	n, _ := strconv.ParseInt(of.GetMetadata()[name], 10, 64)
	return n
}

// remote is an error of the runtime that a server returned.
type remote struct {
	error
	status *status.Status
}

func (r *remote) Unwrap() error { return r.error }

// GRPCStatus returns the status. Package status calls it.
func (r *remote) GRPCStatus() *status.Status { return r.status }

// UnaryClientInterceptor returns an interceptor that applies [FromError] to the errors of calls.
func UnaryClientInterceptor() grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		return FromError(invoke(ctx, method, req, reply, cc, opts...))
	}
}

// StreamClientInterceptor returns an interceptor that applies [FromError] to the errors of streams.
func StreamClientInterceptor() grpc.StreamClientInterceptor {
	return func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		stream, err := open(ctx, desc, cc, method, opts...)
		if err != nil {
			return nil, FromError(err)
		}
		return clientStream{stream}, nil
	}
}

type clientStream struct{ grpc.ClientStream }

func (s clientStream) Header() (metadata.MD, error) {
	md, err := s.ClientStream.Header()
	return md, FromError(err)
}

func (s clientStream) CloseSend() error          { return FromError(s.ClientStream.CloseSend()) }
func (s clientStream) SendMsg(message any) error { return FromError(s.ClientStream.SendMsg(message)) }
func (s clientStream) RecvMsg(message any) error { return FromError(s.ClientStream.RecvMsg(message)) }
