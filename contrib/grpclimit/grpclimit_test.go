package grpclimit_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	grpchealth "google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/ratelimit-go/ratelimit/contrib/grpclimit"
	"github.com/ratelimit-go/ratelimit/contrib/grpclimit/internal/health"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/httplimit"
	"github.com/ratelimit-go/ratelimit/runtime/limittest"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// serve serves a service over TCP and returns a client of it.
func serve(t *testing.T, service healthpb.HealthServer, options ...grpclimit.Option) healthpb.HealthClient {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return serveOn(t, listener, listener.Addr().String(), service, options...)
}

// serveOn is serve for a listener at a target.
func serveOn(t *testing.T, listener net.Listener, target string, service healthpb.HealthServer, options ...grpclimit.Option) healthpb.HealthClient {
	t.Helper()
	server := grpc.NewServer(
		grpc.UnaryInterceptor(grpclimit.UnaryServerInterceptor(options...)), grpc.StreamInterceptor(grpclimit.StreamServerInterceptor(options...)))
	healthpb.RegisterHealthServer(server, service)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	connection, err := grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithUnaryInterceptor(grpclimit.UnaryClientInterceptor()), grpc.WithStreamInterceptor(grpclimit.StreamClientInterceptor()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	return healthpb.NewHealthClient(connection)
}

// check makes a unary call, with metadata.
func check(t *testing.T, client healthpb.HealthClient, headers ...string) error {
	t.Helper()
	_, err := client.Check(metadata.AppendToOutgoingContext(t.Context(), headers...), &healthpb.HealthCheckRequest{})
	return err
}

// watch makes a streaming call, and reads one message.
func watch(t *testing.T, client healthpb.HealthClient, headers ...string) error {
	t.Helper()
	ctx, cancel := context.WithCancel(metadata.AppendToOutgoingContext(t.Context(), headers...))
	defer cancel()
	stream, err := client.Watch(ctx, &healthpb.HealthCheckRequest{})
	if err == nil {
		_, err = stream.Recv()
	}
	return err
}

var calls = map[string]func(*testing.T, healthpb.HealthClient, ...string) error{"unary": check, "stream": watch}

func TestLimitedService(t *testing.T) {
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			limiter, clock := limittest.New(t)
			client := serve(t, health.NewLimitedHealthServer(grpchealth.NewServer(), limiter))
			send := func() error { return call(t, client, "x-forwarded-for", "192.0.2.66") }
			if n := limittest.Exhaust(t, send); n != 2 {
				t.Errorf("admitted %d; expected 2", n)
			}
			clock.Advance(time.Minute)
			err := send()
			refusal := limittest.RequireRefused(t, err, "address")
			if refusal.Message != "Twice an hour." || refusal.RetryAfter != 59*time.Minute || refusal.Never || refusal.Violations[0].Limit != 2 {
				t.Errorf("got %+v", refusal)
			}
			if status.Code(err) != codes.ResourceExhausted {
				t.Errorf("got %v", status.Code(err))
			}
			if text := fmt.Sprint(status.Convert(err).Proto()); strings.Contains(text, "127.0.0.1") || strings.Contains(text, "HealthServer") {
				t.Errorf("the status shows a key or a method: %s", text)
			}
			clock.Advance(time.Hour)
			limittest.RequireAllowed(t, send())
		})
	}
}

// Behind a trusted proxy, the client's address is the one that the proxy reports, whatever the client itself wrote.
func TestClients(t *testing.T) {
	limiter, _ := limittest.New(t)
	trusted := httplimit.ClientIP(netip.MustParsePrefix("127.0.0.0/8"))
	client := serve(t, health.NewLimitedHealthServer(grpchealth.NewServer(), limiter), grpclimit.WithClients(trusted))
	for i := range 2 {
		limittest.RequireAllowed(t, check(t, client, "x-forwarded-for", fmt.Sprintf("192.0.2.%d, 203.0.113.9", i)))
	}
	limittest.RequireRefused(t, check(t, client, "x-forwarded-for", "192.0.2.66", "x-forwarded-for", "203.0.113.9"), "address")
	limittest.RequireAllowed(t, check(t, client, "x-forwarded-for", "203.0.113.10"))
}

// Behind a proxy on a Unix socket, the client's address is the one that the proxy reports. Who does not trust the socket has no address.
func TestUnixSocket(t *testing.T) {
	for name, clients := range map[string]httplimit.Clients{"socket": httplimit.ClientIP().Socket(), "hops": httplimit.ClientIP().Hops(1), "none": httplimit.ClientIP()} {
		for _, call := range calls {
			path := filepath.Join(t.TempDir(), "s")
			listener, err := net.Listen("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			limiter, _ := limittest.New(t)
			client := serveOn(t, listener, "unix:"+path, health.NewLimitedHealthServer(grpchealth.NewServer(), limiter), grpclimit.WithClients(clients))
			var missing *ratelimit.KeyError
			if err := call(t, client); !errors.As(err, &missing) || !missing.Internal {
				t.Errorf("%s, without a header: got %v", name, err)
			}
			if name == "none" {
				continue
			}
			for range 2 {
				limittest.RequireAllowed(t, call(t, client, "x-forwarded-for", "192.0.2.66, 203.0.113.9"))
			}
			limittest.RequireRefused(t, call(t, client, "x-forwarded-for", "192.0.2.67", "x-forwarded-for", "203.0.113.9"), "address")
			limittest.RequireAllowed(t, call(t, client, "x-forwarded-for", "203.0.113.10"))
		}
	}
}

func TestUserID(t *testing.T) {
	limiter, _ := limittest.New(t)
	users := grpclimit.WithUserID(func(ctx context.Context) (string, error) {
		switch token := metadata.ValueFromIncomingContext(ctx, "token"); { // in place of authentication
		case slices.Equal(token, []string{"banned"}):
			return "", status.Error(codes.PermissionDenied, "banned")
		case slices.Equal(token, []string{"often"}):
			return "", fmt.Errorf("users: %w", refusalOf("Slow down."))
		case slices.Equal(token, []string{"late"}):
			return "", fmt.Errorf("users: %w", context.DeadlineExceeded)
		case len(token) > 0:
			return "", errors.New("secret")
		}
		return "ann", nil
	})
	proxied := httplimit.ClientIP(netip.MustParsePrefix("127.0.0.0/8"))
	client := serve(t, health.NewLimitedHealthServer(grpchealth.NewServer(), limiter), users, grpclimit.WithClients(proxied))
	for name, call := range calls {
		if err := call(t, client, "token", "banned"); status.Code(err) != codes.PermissionDenied {
			t.Errorf("%s: got %v", name, err)
		}
		if err := call(t, client, "token", "often"); status.Code(err) != codes.ResourceExhausted {
			t.Errorf("%s: got %v", name, err)
		}
		if err := call(t, client, "token", "late"); status.Code(err) != codes.DeadlineExceeded {
			t.Errorf("%s: got %v", name, err)
		}
		if err := call(t, client, "token", "wrong"); status.Code(err) != codes.Unauthenticated || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	for i := range 3 {
		limittest.RequireAllowed(t, check(t, client, "x-forwarded-for", fmt.Sprintf("203.0.113.%d", i)))
	}
	limittest.RequireRefused(t, watch(t, client, "x-forwarded-for", "203.0.113.66"), "rule-2")
}

// failing is a service whose calls fail.
type failing struct {
	healthpb.UnimplementedHealthServer
	err error
}

func (f failing) Check(context.Context, *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	return nil, f.err
}

func (f failing) Watch(*healthpb.HealthCheckRequest, grpc.ServerStreamingServer[healthpb.HealthCheckResponse]) error {
	return f.err
}

// Each error of the runtime arrives with its type and its code, and without keys, methods and causes.
func TestErrors(t *testing.T) {
	const secret = "13800000000"
	for _, test := range []struct {
		err  error
		code codes.Code
		is   func(error) bool
	}{
		{&ratelimit.TooManyRequestsError{Method: secret, Never: true, Violations: []ratelimit.Violation{{Rule: "r", Key: secret, Never: true}}},
			codes.ResourceExhausted, func(err error) bool {
				e, ok := errors.AsType[*ratelimit.TooManyRequestsError](err)
				return ok && e.Never && e.RetryAfter == 0 && e.Violations[0].Never
			}},
		{&ratelimit.TooManyRequestsError{Method: secret, RetryAfter: 1500 * time.Millisecond}, codes.ResourceExhausted, func(err error) bool {
			e, ok := errors.AsType[*ratelimit.TooManyRequestsError](err)
			return ok && !e.Never && e.RetryAfter == 1500*time.Millisecond
		}},
		{&ratelimit.NeverAdmissibleError{Method: secret, Key: secret, Cost: 5, Limit: 3}, codes.FailedPrecondition, func(err error) bool {
			e, ok := errors.AsType[*ratelimit.NeverAdmissibleError](err)
			return ok && e.Cost == 5 && e.Limit == 3
		}},
		{&ratelimit.KeyError{Method: secret, Reason: secret}, codes.InvalidArgument, func(err error) bool {
			_, ok := errors.AsType[*ratelimit.KeyError](err)
			return ok
		}},
		{&ratelimit.KeyError{Method: secret, Reason: secret, Internal: true}, codes.Internal, func(err error) bool {
			e, ok := errors.AsType[*ratelimit.KeyError](err)
			return ok && e.Internal
		}},
		{fmt.Errorf("%w", &ratelimit.KeyError{Err: status.Error(codes.NotFound, secret), Internal: true}), codes.Internal, func(err error) bool {
			_, ok := errors.AsType[*ratelimit.KeyError](err)
			return ok
		}},
		{&ratelimit.StoreError{Method: secret, Err: errors.New(secret)}, codes.Unavailable, func(err error) bool {
			_, ok := errors.AsType[*ratelimit.StoreError](err)
			return ok
		}},
		{&ratelimit.RuleError{Rule: secret, Reason: secret}, codes.Internal, func(err error) bool {
			_, ok := errors.AsType[*ratelimit.RuleError](err)
			return ok
		}},
		{fmt.Errorf("waiting: %w", context.DeadlineExceeded), codes.DeadlineExceeded, func(err error) bool { return status.Code(err) != codes.OK }},
		{status.Error(codes.ResourceExhausted, "another quota"), codes.ResourceExhausted, func(err error) bool {
			return !errors.Is(err, ratelimit.ErrTooManyRequests)
		}},
	} {
		client := serve(t, failing{err: fmt.Errorf("service: %w", test.err)})
		for name, call := range calls {
			err := call(t, client)
			if status.Code(err) != test.code || !test.is(err) || strings.Contains(fmt.Sprint(status.Convert(err).Proto()), secret) {
				t.Errorf("%s of %T: got %v", name, test.err, err)
			}
		}
	}
	for _, err := range []error{nil, io.EOF, errors.New("other")} {
		if grpclimit.Error(err) != err || grpclimit.FromError(err) != err {
			t.Errorf("%v was changed", err)
		}
	}
}

// Statuses have the standard details, for clients in other languages.
func TestDetails(t *testing.T) {
	limiter, _ := limittest.New(t)
	client := serve(t, health.NewLimitedHealthServer(grpchealth.NewServer(), limiter))
	limittest.Exhaust(t, func() error { return check(t, client) })
	var retry *errdetails.RetryInfo
	var failure *errdetails.QuotaFailure
	for _, detail := range status.Convert(check(t, client)).Details() {
		switch d := detail.(type) {
		case *errdetails.RetryInfo:
			retry = d
		case *errdetails.QuotaFailure:
			failure = d
		}
	}
	if got := retry.GetRetryDelay().AsDuration(); got != time.Hour {
		t.Errorf("RetryInfo: got %v", got)
	}
	if v := failure.GetViolations(); len(v) != 1 || v[0].Subject != "address" || v[0].QuotaValue != 2 || v[0].Description != "limit 2, 0 left" {
		t.Errorf("QuotaFailure: got %v", v)
	}
}

// tokens is a service with budgets at three levels. It settles a stream by the charge that the interceptor keeps.
type tokens struct {
	healthpb.UnimplementedHealthServer
	limiter *ratelimit.Limiter
	settled chan error
}

var tokenRules = wrap.NewRules("tokens.Health.Watch",
	ratelimit.Rule{Name: "org", Key: "{org}", Limit: 100_000, Per: time.Minute},
	ratelimit.Rule{Name: "team", Key: "{team}", Limit: 20_000, Per: time.Minute},
	ratelimit.Rule{Name: "user", Key: "{user}", Limit: 50_000, Cron: "@daily"},
).WithCost("org", "team", "user")

// Watch is the method of a generated wrapper, and then that of the service.
func (s *tokens) Watch(r *healthpb.HealthCheckRequest, stream grpc.ServerStreamingServer[healthpb.HealthCheckResponse]) error {
	charge := wrap.Charge{Key: "secret", Cost: 10_000}
	if err := wrap.TakeCharges(stream.Context(), tokenRules.On(s.limiter), tokenRules, charge, charge, charge); err != nil {
		return err
	}
	for range 3 {
		_ = stream.Send(&healthpb.HealthCheckResponse{}) // it fails if the client has gone after the first one
	}
	<-stream.Context().Done()
	s.settled <- ratelimit.ChargeFrom(stream.Context()).Settle(stream.Context(), 3)
	return nil
}

// A stream of a server is charged what it has sent, although its context has ended. A refusal names the level.
func TestSettledStream(t *testing.T) {
	limiter, _ := limittest.New(t)
	service := &tokens{limiter: limiter, settled: make(chan error, 1)}
	client := serve(t, service)
	for range 5 { // without settlements the third one would be refused
		if err := watch(t, client); err != nil {
			t.Fatal(err)
		}
		if err := <-service.settled; err != nil {
			t.Fatal(err)
		}
	}
	for i, rule := range tokenRules.Rules() {
		d, err := limiter.Peek(t.Context(), ratelimit.Request{Rule: rule, Key: "secret"})
		if err != nil || rule.Limit-d.Quotas[0].Remaining != 15 {
			t.Errorf("rule %d: %+v, %v; expected 15 permits to be used", i, d, err)
		}
	}
	team := tokenRules.Rules()[1]
	if _, err := limiter.Allow(t.Context(), ratelimit.Request{Rule: team, Key: "secret", Cost: 15_000}); err != nil {
		t.Fatal(err)
	}
	err := watch(t, client)
	if refused := limittest.RequireRefused(t, err, "team"); len(refused.Violations) != 1 {
		t.Errorf("got %v", refused.Violations)
	}
	for _, detail := range status.Convert(err).Details() {
		if d, ok := detail.(*errdetails.QuotaFailure); ok && (len(d.Violations) != 1 || d.Violations[0].Subject != "team") {
			t.Errorf("QuotaFailure: got %v", d)
		}
	}
}
