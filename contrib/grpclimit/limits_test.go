package grpclimit_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/quick"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/ratelimit-go/ratelimit/contrib/grpclimit"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/limittest"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// far is a far side that counts calls, and answers with the error that asks has.
type far struct {
	healthpb.UnimplementedHealthServer
	seen atomic.Int32
	asks atomic.Pointer[status.Status]
}

func (f *far) answer() error {
	f.seen.Add(1)
	return f.asks.Load().Err()
}

func (f *far) Check(context.Context, *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	return &healthpb.HealthCheckResponse{}, f.answer()
}

func (f *far) Watch(_ *healthpb.HealthCheckRequest, stream grpc.ServerStreamingServer[healthpb.HealthCheckResponse]) error {
	if err := f.answer(); err != nil {
		return err
	}
	return stream.Send(&healthpb.HealthCheckResponse{})
}

// wants returns a status with a RetryInfo.
func wants(t testing.TB, code codes.Code, delay time.Duration) *status.Status {
	t.Helper()
	s, err := status.New(code, "slow down").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(delay)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// listen serves the far side, and returns its address.
func listen(t *testing.T, side *far) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	healthpb.RegisterHealthServer(server, side)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return listener.Addr().String()
}

// dial returns a client with limits.
func dial(t *testing.T, addr string, limits grpclimit.ClientOption) healthpb.HealthClient {
	t.Helper()
	connection, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithUnaryInterceptor(grpclimit.UnaryClientInterceptor(limits)), grpc.WithStreamInterceptor(grpclimit.StreamClientInterceptor(limits)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	return healthpb.NewHealthClient(connection)
}

var outbound = ratelimit.Rule{Name: "far", Limit: 100, Per: time.Second, Wait: time.Minute}

// A RetryInfo holds the next call until its end.
func TestClientWaits(t *testing.T) {
	for name, call := range calls {
		for _, code := range []codes.Code{codes.ResourceExhausted, codes.Unavailable} {
			t.Run(fmt.Sprint(name, code), func(t *testing.T) {
				limiter, clock := limittest.New(t)
				side := &far{}
				client := dial(t, listen(t, side), grpclimit.WithLimits(limiter, nil, []ratelimit.Rule{outbound}))
				side.asks.Store(wants(t, code, 2*time.Second))
				if err := call(t, client); status.Code(err) != code {
					t.Fatalf("got %v", err)
				}
				side.asks.Store(nil)
				done := make(chan error)
				go func() { done <- call(t, client) }()
				clock.AwaitSleepers(1)
				clock.Advance(1900 * time.Millisecond)
				clock.AwaitSleepers(1)
				if n := side.seen.Load(); n != 1 {
					t.Fatalf("the far side saw %d calls during the pause", n)
				}
				clock.Advance(200 * time.Millisecond)
				if err := <-done; err != nil || side.seen.Load() != 2 {
					t.Errorf("after the pause: %v, %d calls", err, side.seen.Load())
				}
			})
		}
	}
}

// A call that may not wait is refused, with the error of the runtime and its status. Other keys, and other errors, go on.
func TestClientRefuses(t *testing.T) {
	limiter, _ := limittest.New(t)
	rule, side := outbound, &far{}
	rule.Wait = 0
	key := func(_ context.Context, method string) (string, error) { return method, nil }
	client := dial(t, listen(t, side), grpclimit.WithLimits(limiter, key, []ratelimit.Rule{rule}))
	for _, s := range []*status.Status{
		status.New(codes.ResourceExhausted, "no RetryInfo"), wants(t, codes.Internal, time.Hour), wants(t, codes.Unavailable, -time.Hour), nil,
	} {
		side.asks.Store(s)
		if err := check(t, client); status.Code(err) != s.Code() {
			t.Errorf("%v: got %v", s, err)
		}
	}
	side.asks.Store(wants(t, codes.ResourceExhausted, time.Hour))
	if err := check(t, client); status.Code(err) != codes.ResourceExhausted {
		t.Fatal(err)
	}
	seen := side.seen.Load()
	err := check(t, client)
	refusal, ok := errors.AsType[*ratelimit.TooManyRequestsError](err)
	if !ok || refusal.RetryAfter < time.Minute || status.Code(err) != codes.ResourceExhausted || side.seen.Load() != seen {
		t.Errorf("got %v, code %s, %d calls", err, status.Code(err), side.seen.Load()-seen)
	}
	side.asks.Store(nil)
	if err := watch(t, client); err != nil {
		t.Errorf("another key: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := client.Check(ended, &healthpb.HealthCheckRequest{}); status.Code(err) != codes.Canceled {
		t.Errorf("a context that has ended: %v", err)
	}
}

// A call that could not be sent has its permit back.
func TestClientOfALostServer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := listener.Addr().String()
	_ = listener.Close()
	limiter, _ := limittest.New(t)
	client := dial(t, addr, grpclimit.WithLimits(limiter, nil, []ratelimit.Rule{{Name: "far", Limit: 1, Per: time.Hour}}))
	for range 3 {
		for name, call := range calls {
			if err := call(t, client); status.Code(err) != codes.Unavailable {
				t.Errorf("%s: got %v", name, err)
			}
		}
	}
}

// What cannot be limited is told at once.
func TestLimitsAreMisused(t *testing.T) {
	limiter, _ := limittest.New(t)
	for text, rules := range map[string][]ratelimit.Rule{
		"there is no rule":       nil,
		`rule "d" counts member`: {{Name: "d", Limit: 1, Per: time.Minute, Distinct: "{x}"}},
		`rule "c" counts member`: {{Name: "c", Limit: 1, Algorithm: ratelimit.Concurrency}},
		`rule "l" has Computed`:  {{Name: "l", Computed: true, Per: time.Minute}},
		`rule "e" has Every`:     {{Name: "e", Limit: 1, Every: "1mo"}},
	} {
		func() {
			defer func() {
				if said, _ := recover().(string); !strings.Contains(said, text) {
					t.Errorf("%s: %q", text, said)
				}
			}()
			grpclimit.WithLimits(limiter, nil, rules)
		}()
	}
	nobody := func(context.Context, string) (string, error) { return "", nil }
	client := dial(t, "127.0.0.1:1", grpclimit.WithLimits(limiter, nobody, []ratelimit.Rule{outbound}))
	err := check(t, client)
	if _, ok := errors.AsType[*ratelimit.KeyError](err); !ok || status.Code(err) != codes.InvalidArgument {
		t.Errorf("got %v", err)
	}
}

// untouched is a stream whose Context nobody may call: gRPC does not try a call again afterwards.
type untouched struct {
	grpc.ClientStream
	t *testing.T
}

func (u untouched) Context() context.Context {
	u.t.Error("the context of the stream is used")
	return u.t.Context()
}

func (u untouched) SendMsg(any) error { return status.Error(codes.ResourceExhausted, "quota") }

// The interceptor leaves gRPC's own retries of a stream alone.
func TestStreamsAreTriedAgain(t *testing.T) {
	limiter, _ := limittest.New(t)
	for _, option := range [][]grpclimit.ClientOption{nil, {grpclimit.WithLimits(limiter, nil, []ratelimit.Rule{outbound})}} {
		open := func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, ...grpc.CallOption) (grpc.ClientStream, error) {
			return untouched{t: t}, nil
		}
		stream, err := grpclimit.StreamClientInterceptor(option...)(t.Context(), nil, nil, "/far/Call", open)
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.SendMsg(nil); status.Code(err) != codes.ResourceExhausted {
			t.Errorf("got %v", err)
		}
	}
}

// retryAfter of directives reads the RetryInfo of every status as the types of gRPC do.
func TestRetryAfterIsRetryInfo(t *testing.T) {
	err := quick.Check(func(nanoseconds int64) bool {
		delay := time.Duration(nanoseconds % int64(100*time.Hour))
		got := wrap.RetryAfter(fmt.Errorf("call: %w", wants(t, codes.Unavailable, delay).Err()))
		return got == min(max(0, delay), 24*time.Hour)
	}, nil)
	if err != nil {
		t.Error(err)
	}
}
