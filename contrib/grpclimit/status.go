package grpclimit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

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

// Error returns the error of a status for err, if err is or wraps an error of the runtime or of a context. It returns other errors, and errors that
// have a status of your own, unchanged; it leaves out the text around such a status if an error of the runtime is in err, too. The interceptors of
// servers apply it. A service without them, or one that gives its other errors a status, calls it:
//
//	if _, ok := status.FromError(grpclimit.Error(err)); ok { // nil, an error of limits, or one that has a status
//		return reply, err
//	}
//	return nil, status.Errorf(codes.Internal, "cannot save: %v", err)
//
// The first error in err decides, in the order of [errors.As]: in errors.Join(refusal, other) it is the refusal. The text around an error of the
// runtime, or around one that a client interceptor of this package has returned, is not in the status, as it may show keys. The call does not get
// the status of the cause of an error of the runtime.
func Error(err error) error { return statusOf(err, 0) }

// statusOf is Error. The delay of a refusal gets a random part of up to share of it.
func statusOf(err error, share float64) error {
	switch e := deciding(err).(type) {
	case *ratelimit.TooManyRequestsError:
		return refused(e, share)
	case *ratelimit.NeverAdmissibleError:
		if e.Unreported {
			return with(codes.FailedPrecondition, "the call costs more than is ever admitted", info(reasonNever))
		}
		return with(codes.FailedPrecondition, fmt.Sprintf("the call costs %d; at most %d are ever admitted", e.Cost, e.Limit),
			info(reasonNever, "cost", strconv.FormatInt(e.Cost, 10), "limit", strconv.FormatInt(e.Limit, 10)))
	case *ratelimit.KeyError:
		if e.Internal {
			return with(codes.Internal, "the server cannot compute a rate limit", info(reasonKey))
		}
		return with(codes.InvalidArgument, "the call does not say whom its rate limit is for", info(reasonKey))
	case *ratelimit.StoreError:
		return with(codes.Unavailable, "rate limits cannot be decided now", info(reasonStore))
	case *ratelimit.RuleError:
		return with(codes.Internal, "a rate limit is not valid", info(reasonRule))
	case *remote:
		return e.status.Err()
	case interface{ GRPCStatus() *status.Status }:
		if _, isStatus := err.(interface{ GRPCStatus() *status.Status }); !isStatus && hasOfRuntime(err) {
			return e.GRPCStatus().Err() // the text of err shows that of the refusal
		}
	case nil:
		for _, ended := range []error{context.DeadlineExceeded, context.Canceled} {
			if errors.Is(err, ended) {
				return status.FromContextError(ended).Err() // the text of err may show a method
			}
		}
	}
	return err
}

// isOfRuntime reports whether err itself is an error of the runtime.
func isOfRuntime(err error) bool {
	switch err.(type) {
	case *ratelimit.TooManyRequestsError, *ratelimit.NeverAdmissibleError, *ratelimit.KeyError, *ratelimit.StoreError, *ratelimit.RuleError:
		return true
	}
	return false
}

// hasOfRuntime reports whether an error of the runtime is in the tree of err.
func hasOfRuntime(err error) bool {
	if isOfRuntime(err) {
		return true
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return hasOfRuntime(e.Unwrap())
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(e.Unwrap(), hasOfRuntime)
	}
	return false
}

// deciding returns the first error in the tree of err that is one of the runtime or has a status, or nil.
func deciding(err error) error {
	if isOfRuntime(err) {
		return err
	}
	switch e := err.(type) {
	case interface{ GRPCStatus() *status.Status }:
		return err
	case interface{ Unwrap() error }:
		return deciding(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			if found := deciding(one); found != nil {
				return found
			}
		}
	}
	return nil
}

func refused(refusal *ratelimit.TooManyRequestsError, share float64) error {
	failure, delay := &errdetails.QuotaFailure{}, refusal.RetryAfter
	for _, v := range refusal.Violations {
		policy, ok := v.Policy()
		if policy.Concurrent { // nobody knows when calls end: as Retry-After is 1 over HTTP
			delay = max(delay, time.Second)
		}
		if ok {
			failure.Violations = append(failure.Violations, &errdetails.QuotaFailure_Violation{
				Subject: policy.Name, Description: fmt.Sprintf("limit %d, %d left", policy.Quota, v.Remaining),
				QuotaId: policy.Name, QuotaValue: policy.Quota,
			})
		}
	}
	details := []protoadapt.MessageV1{info(reasonRefused)}
	if len(failure.Violations) > 0 || len(refusal.Violations) == 0 { // otherwise only rules that are Unreported refuse
		details = append(details, failure)
	}
	if !refusal.Never { // otherwise retrying is pointless
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(delayed(delay, share))})
	}
	return with(codes.ResourceExhausted, refusal.ClientMessage(), details...)
}

// delayed returns d and a random part of up to share of it.
func delayed(d time.Duration, share float64) time.Duration {
	d = max(0, d) // an error that a program has made may have any
	more := time.Duration(rand.Float64() * share * float64(d))
	return d + min(more, math.MaxInt64-d)
}

func info(reason string, metadata ...string) *errdetails.ErrorInfo {
	i := &errdetails.ErrorInfo{Reason: reason, Domain: domain, Metadata: map[string]string{}}
	for n := 0; n < len(metadata); n += 2 {
		i.Metadata[metadata[n]] = metadata[n+1]
	}
	return i
}

func with(code codes.Code, message string, details ...protoadapt.MessageV1) error {
	s := status.New(code, strings.ToValidUTF8(message, "\ufffd"))
	if detailed, err := s.WithDetails(details...); err == nil { // fails if a text is not UTF-8
		s = detailed
	}
	return s.Err()
}
