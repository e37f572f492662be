package grpclimit_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ratelimit-go/ratelimit/contrib/grpclimit"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/limittest"
)

const secretKey = "13800000000"

// refusalOf returns a refusal whose text has a key and a method.
func refusalOf(message string) *ratelimit.TooManyRequestsError {
	return &ratelimit.TooManyRequestsError{Method: "shop.Sender.Send", Message: message, RetryAfter: 5 * time.Second,
		Violations: []ratelimit.Violation{{Rule: "sms", Key: secretKey, Limit: 2}}}
}

// refusedByAFarSide returns the error of a client whose call its own rules do not let pass.
func refusedByAFarSide(t *testing.T) error {
	limiter, _ := limittest.New(t)
	key := func(context.Context, string) (string, error) { return secretKey, nil }
	client := dial(t, "127.0.0.1:1", grpclimit.WithLimits(limiter, key, []ratelimit.Rule{{Name: "far", Per: time.Hour, Message: "Closed."}}))
	err := check(t, client)
	if !strings.Contains(err.Error(), secretKey) {
		t.Fatalf("got %v; expected a key to be in the text", err)
	}
	return err
}

// appError is an error of an application that has a status of its own.
type appError struct{ error }

func (a appError) Unwrap() error              { return a.error }
func (a appError) GRPCStatus() *status.Status { return status.New(codes.Internal, "sorry") }

// Whatever a handler wraps, the first error that decides has its status at the client, and no text around it shows a key.
func TestWrappedErrors(t *testing.T) {
	missing := status.Error(codes.NotFound, "no such page")
	far := refusedByAFarSide(t)
	sent := grpclimit.FromError(grpclimit.Error(refusalOf("Slow down.")))
	for name, test := range map[string]struct {
		err     error
		code    codes.Code
		refused bool
		message string
	}{
		"a refusal":                        {refusalOf("Slow down."), codes.ResourceExhausted, true, "Slow down."},
		"wrapped":                          {fmt.Errorf("save: %w", refusalOf("Slow down.")), codes.ResourceExhausted, true, "Slow down."},
		"wrapped twice":                    {fmt.Errorf("a: %w", fmt.Errorf("b: %w", refusalOf("Slow down."))), codes.ResourceExhausted, true, "Slow down."},
		"joined":                           {errors.Join(errors.New("other"), refusalOf("Slow down.")), codes.ResourceExhausted, true, "Slow down."},
		"joined behind a status":           {errors.Join(status.Error(codes.NotFound, "no doc"), refusalOf("Slow down.")), codes.NotFound, false, "no doc"},
		"joined before a status":           {errors.Join(refusalOf("Slow down."), missing), codes.ResourceExhausted, true, "Slow down."},
		"a store's error before a status":  {errors.Join(&ratelimit.StoreError{Err: missing}, missing), codes.Unavailable, false, "rate limits cannot be decided now"},
		"two of them":                      {fmt.Errorf("%w, %w", &ratelimit.KeyError{Reason: secretKey}, refusalOf("Slow down.")), codes.InvalidArgument, false, "the call does not say whom its rate limit is for"},
		"with a context's":                 {errors.Join(context.Canceled, refusalOf("Slow down.")), codes.ResourceExhausted, true, "Slow down."},
		"of a far side":                    {far, codes.ResourceExhausted, true, "Closed."},
		"of a far side, wrapped":           {fmt.Errorf("far: %w", far), codes.ResourceExhausted, true, "Closed."},
		"of a far side, joined":            {errors.Join(errors.New("other"), far), codes.ResourceExhausted, true, "Closed."},
		"that a client has received":       {fmt.Errorf("far: %w", sent), codes.ResourceExhausted, true, "Slow down."},
		"below a status of your own":       {fmt.Errorf("save: %w", appError{refusalOf("Slow down.")}), codes.Internal, false, "sorry"},
		"a status":                         {missing, codes.NotFound, false, "no such page"},
		"a status, wrapped":                {fmt.Errorf("page: %w", missing), codes.NotFound, false, "page: " + missing.Error()},
		"a deadline":                       {context.DeadlineExceeded, codes.DeadlineExceeded, false, "context deadline exceeded"},
		"a deadline of a call that waited": {fmt.Errorf("shop.Sender.Send: rate limit: %w", context.DeadlineExceeded), codes.DeadlineExceeded, false, "context deadline exceeded"},
		"a cancelled call":                 {fmt.Errorf("shop.Sender.Send: rate limit: %w", context.Canceled), codes.Canceled, false, "context canceled"},
		"another":                          {errors.New("disk full"), codes.Unknown, false, "disk full"},
	} {
		t.Run(name, func(t *testing.T) {
			if code := status.Code(grpclimit.Error(test.err)); code != test.code { // what an interceptor outside sees
				t.Errorf("at the server: %v; expected %v", code, test.code)
			}
			client := serve(t, failing{err: test.err})
			for kind, call := range calls {
				got := call(t, client)
				s, ok := status.FromError(got)
				if !ok || s.Code() != test.code || status.Code(got) != test.code || s.Message() != test.message {
					t.Errorf("%s: %v, %q; expected %v, %q", kind, s.Code(), s.Message(), test.code, test.message)
				}
				again := fmt.Errorf("the application: %w", got)
				for _, err := range []error{got, again, grpclimit.FromError(got), grpclimit.FromError(again)} {
					refusal, is := errors.AsType[*ratelimit.TooManyRequestsError](err)
					if is != test.refused || errors.Is(err, ratelimit.ErrTooManyRequests) != test.refused || status.Code(err) != test.code {
						t.Errorf("%s: %v: %v, %v; expected a refusal %v, %v", kind, err, is, status.Code(err), test.refused, test.code)
					}
					if is && refusal.Message != test.message {
						t.Errorf("%s: the message is %q; expected %q", kind, refusal.Message, test.message)
					}
				}
			}
		})
	}
}

// FromError finds the status in an error that somebody has wrapped, and returns what it has made before as it is.
func TestFromErrorOfWrapped(t *testing.T) {
	wrapped := fmt.Errorf("far: %w", grpclimit.Error(refusalOf("Slow down.")))
	refusal, ok := errors.AsType[*ratelimit.TooManyRequestsError](grpclimit.FromError(wrapped))
	if !ok || refusal.Message != "Slow down." || refusal.RetryAfter != 5*time.Second {
		t.Errorf("got %+v", refusal)
	}
	mine := refusedByAFarSide(t)
	if got := grpclimit.FromError(mine); got != mine {
		t.Errorf("got %v", got)
	}
}

// The lines of the documentation of Error: a service that gives its other errors a status keeps the refusals of what it calls.
func TestServiceWithStatusesOfItsOwn(t *testing.T) {
	answer := func(err error) error {
		if _, ok := status.FromError(grpclimit.Error(err)); ok { // nil, an error of limits, or one that has a status
			return err
		}
		return status.Errorf(codes.Internal, "cannot save: %v", err)
	}
	for err, code := range map[error]codes.Code{
		nil:                                    codes.OK,
		error(refusalOf("Slow down.")):         codes.ResourceExhausted,
		fmt.Errorf("x: %w", refusalOf("")):     codes.ResourceExhausted,
		status.Error(codes.NotFound, "no doc"): codes.NotFound,
		errors.New("disk full"):                codes.Internal,
	} {
		for kind, call := range calls {
			if got := call(t, serve(t, failing{err: answer(err)})); status.Code(got) != code && !(err == nil && kind == "stream") { // it sends nothing
				t.Errorf("%s of %v: got %v; expected %v", kind, err, got, code)
			}
		}
	}
}
