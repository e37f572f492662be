package grpclimit

import (
	"errors"
	"fmt"
	"strconv"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// domain and the reasons are in the ErrorInfo of a status. They tell a client which kind of error it is.
const (
	domain = "github.com/ratelimit-go/ratelimit"

	reasonRefused = "TOO_MANY_REQUESTS"
	reasonNever   = "NEVER_ADMISSIBLE"
	reasonKey     = "KEY"
	reasonStore   = "STORE"
	reasonRule    = "RULE"
)

// Error returns the error of a status for err, if err is or wraps an error of the runtime. It returns other errors, and errors that already
// have a status, unchanged. A status that the cause of an error of the runtime has is not that of the call.
func Error(err error) error {
	if _, ok := status.FromError(err); ok && !onlyItsCauseHas(err) { // ok is also true for nil
		return err
	}
	if refusal, ok := errors.AsType[*ratelimit.TooManyRequestsError](err); ok {
		return refused(refusal)
	}
	if never, ok := errors.AsType[*ratelimit.NeverAdmissibleError](err); ok {
		return with(codes.FailedPrecondition, fmt.Sprintf("the call costs %d; at most %d are ever admitted", never.Cost, never.Limit),
			info(reasonNever, "cost", strconv.FormatInt(never.Cost, 10), "limit", strconv.FormatInt(never.Limit, 10)))
	}
	if e, ok := errors.AsType[*ratelimit.KeyError](err); ok {
		if e.Internal {
			return with(codes.Internal, "the server cannot compute a rate limit", info(reasonKey))
		}
		return with(codes.InvalidArgument, "the call does not say whom its rate limit is for", info(reasonKey))
	}
	if _, ok := errors.AsType[*ratelimit.StoreError](err); ok {
		return with(codes.Unavailable, "rate limits cannot be decided now", info(reasonStore))
	}
	if _, ok := errors.AsType[*ratelimit.RuleError](err); ok {
		return with(codes.Internal, "a rate limit is not valid", info(reasonRule))
	}
	return err
}

// onlyItsCauseHas reports whether err, which has a status, is or wraps an error of the runtime whose cause has that status: for example, a
// function in limit= has called another service.
func onlyItsCauseHas(err error) bool {
	for ; err != nil; err = errors.Unwrap(err) {
		switch err.(type) {
		case *ratelimit.KeyError, *ratelimit.StoreError:
			return true
		case interface{ GRPCStatus() *status.Status }:
			return false
		}
	}
	return false
}

func refused(refusal *ratelimit.TooManyRequestsError) error {
	failure := &errdetails.QuotaFailure{}
	for _, v := range refusal.Violations {
		if policy, ok := v.Policy(); ok {
			failure.Violations = append(failure.Violations, &errdetails.QuotaFailure_Violation{
				Subject: policy.Name, Description: fmt.Sprintf("limit %d, %d left", policy.Quota, v.Remaining),
				QuotaId: policy.Name, QuotaValue: policy.Quota,
			})
		}
	}
	details := []protoadapt.MessageV1{info(reasonRefused), failure}
	if !refusal.Never { // otherwise retrying is pointless
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(refusal.RetryAfter)})
	}
	return with(codes.ResourceExhausted, refusal.Message, details...)
}

func info(reason string, metadata ...string) *errdetails.ErrorInfo {
	i := &errdetails.ErrorInfo{Reason: reason, Domain: domain, Metadata: map[string]string{}}
	for n := 0; n < len(metadata); n += 2 {
		i.Metadata[metadata[n]] = metadata[n+1]
	}
	return i
}

func with(code codes.Code, message string, details ...protoadapt.MessageV1) error {
	s := status.New(code, message)
	if detailed, err := s.WithDetails(details...); err == nil { // fails if a text is not UTF-8
		s = detailed
	}
	return s.Err()
}
