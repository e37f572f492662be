package grpclimit_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/ratelimit-go/ratelimit/contrib/grpclimit"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/limittest"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// told is a stream that ends with a status and a trailer.
type told struct {
	grpc.ClientStream
	trailer metadata.MD
}

func (s told) RecvMsg(any) error    { return status.Error(codes.Unavailable, "later") }
func (s told) Trailer() metadata.MD { return s.trailer }

// What a trailer asks for pauses the key, after a call and after a stream.
func TestTrailersPause(t *testing.T) {
	for name, trailer := range map[string]metadata.MD{
		"seconds": metadata.Pairs("retry-after", "40"), "pushback": metadata.Pairs("grpc-retry-pushback-ms", "40000"),
	} {
		limiter, _ := limittest.New(t)
		rule := ratelimit.Rule{Name: name, Limit: 100, Per: time.Second}
		option := grpclimit.WithLimits(limiter, nil, []ratelimit.Rule{rule})
		requirePaused := func(what string) {
			t.Helper()
			q := ratelimit.Request{Rule: rule}
			q.Rule.Pausable = true
			if d, err := limiter.Peek(t.Context(), q); err != nil || d.Allowed || d.RetryAfter != 40*time.Second {
				t.Errorf("%s, %s: got %+v, %v", name, what, d, err)
			}
			if err := limiter.Resume(t.Context(), q); err != nil {
				t.Fatal(err)
			}
		}
		invoke := func(_ context.Context, _ string, _, _ any, _ *grpc.ClientConn, opts ...grpc.CallOption) error {
			for _, o := range opts {
				if o, ok := o.(grpc.TrailerCallOption); ok {
					*o.TrailerAddr = trailer
				}
			}
			return status.Error(codes.Unavailable, "later")
		}
		if err := grpclimit.UnaryClientInterceptor(option)(t.Context(), "/far/Call", nil, nil, nil, invoke); status.Code(err) != codes.Unavailable {
			t.Errorf("got %v", err)
		}
		requirePaused("a call")
		open := func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, ...grpc.CallOption) (grpc.ClientStream, error) {
			return told{trailer: trailer}, nil
		}
		stream, err := grpclimit.StreamClientInterceptor(option)(t.Context(), nil, nil, "/far/Call", open)
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.RecvMsg(nil); status.Code(err) != codes.Unavailable {
			t.Errorf("got %v", err)
		}
		requirePaused("a stream")
	}
}

// retryAfter reads the refusal of another program, and not one by a rule of this program, through whichever interceptors it has come.
func TestRetryAfterIsOfTheFarSide(t *testing.T) {
	refusal := &ratelimit.TooManyRequestsError{Message: "Slow down.", RetryAfter: 7 * time.Second}
	far := grpclimit.FromError(grpclimit.Error(refusal))
	if got := wrap.RetryAfter(fmt.Errorf("call: %w", far)); got != 7*time.Second {
		t.Errorf("a far side's refusal: got %s", got)
	}
	limiter, _ := limittest.New(t)
	client := grpclimit.UnaryClientInterceptor(grpclimit.WithLimits(limiter, nil, []ratelimit.Rule{{Name: "none", Limit: 1, Per: time.Hour}}))
	invoke := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return nil }
	_ = client(t.Context(), "/far/Call", nil, nil, nil, invoke)
	outer := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, opts ...grpc.CallOption) error {
		return client(ctx, method, req, reply, cc, invoke, opts...)
	}
	err := grpclimit.UnaryClientInterceptor()(t.Context(), "/far/Call", nil, nil, nil, outer)
	if got := wrap.RetryAfter(err); !errors.Is(err, ratelimit.ErrTooManyRequests) || status.Code(err) != codes.ResourceExhausted || got != 0 {
		t.Errorf("a refusal of this program: got %v, %s", err, got)
	}
}
