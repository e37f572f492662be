package grpclimit_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/ratelimit-go/ratelimit/contrib/grpclimit"
	"github.com/ratelimit-go/ratelimit/contrib/grpclimit/internal/chat"
	"github.com/ratelimit-go/ratelimit/contrib/grpclimit/internal/chat/chatpb"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/httplimit"
	"github.com/ratelimit-go/ratelimit/runtime/limittest"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

var proxied = grpclimit.WithClients(httplimit.ClientIP(netip.MustParsePrefix("127.0.0.0/8")))

// twice are rules for two calls an hour.
func twice(name string) []ratelimit.Rule {
	return []ratelimit.Rule{{Name: name, Limit: 2, Per: time.Hour, Message: "Twice an hour."}}
}

// Unary calls and streams share the rules. A refused call does not reach the service, and has the status of a refusal.
func TestRules(t *testing.T) {
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			limiter, clock := limittest.New(t)
			side := &far{}
			client := serve(t, side, proxied, grpclimit.WithRules(limiter, grpclimit.ClientIP, twice("calls")))
			from := func(ip string) error { return call(t, client, "x-forwarded-for", ip) }
			limittest.RequireAllowed(t, check(t, client, "x-forwarded-for", "192.0.2.1"))
			limittest.RequireAllowed(t, watch(t, client, "x-forwarded-for", "192.0.2.1"))
			clock.Advance(time.Minute)
			err := from("192.0.2.1")
			refusal := limittest.RequireRefused(t, err, "calls")
			if refusal.Message != "Twice an hour." || refusal.RetryAfter != 59*time.Minute || status.Code(err) != codes.ResourceExhausted {
				t.Errorf("got %+v, %v", refusal, status.Code(err))
			}
			var kinds []string
			for _, detail := range status.Convert(err).Details() {
				kinds = append(kinds, fmt.Sprintf("%T", detail))
			}
			for _, kind := range []any{&errdetails.RetryInfo{}, &errdetails.QuotaFailure{}} {
				if !slices.Contains(kinds, fmt.Sprintf("%T", kind)) {
					t.Errorf("no %T in %v", kind, kinds)
				}
			}
			if n := side.seen.Load(); n != 2 {
				t.Errorf("the service saw %d calls; expected 2", n)
			}
			limittest.RequireAllowed(t, from("192.0.2.2"))
		})
	}
}

// The errors of a key function are those of a caller, or of the program. Rules may leave a method out.
func TestKeyOfRules(t *testing.T) {
	for _, test := range []struct {
		key  func(context.Context, string) (string, error)
		code codes.Code
	}{
		{grpclimit.UserID, codes.Internal}, // there is no WithUserID
		{func(context.Context, string) (string, error) { return "", nil }, codes.InvalidArgument},
		{func(context.Context, string) (string, error) { return "x", errors.New("secret") }, codes.InvalidArgument},
		{func(context.Context, string) (string, error) {
			return "", fmt.Errorf("%w: secret", ratelimit.ErrInternal)
		}, codes.Internal},
		{func(ctx context.Context, method string) (string, error) {
			ip, err := grpclimit.ClientIP(ctx, method)
			if ip != "127.0.0.1" || !strings.HasPrefix(method, "/grpc.health.v1.Health/") {
				return "", errors.New("secret")
			}
			return ip, err
		}, codes.OK},
		{func(context.Context, string) (string, error) {
			return "", fmt.Errorf("health: %w", grpclimit.SkipRules)
		}, codes.OK},
		{nil, codes.OK},
	} {
		limiter, _ := limittest.New(t)
		client := serve(t, &far{}, grpclimit.WithRules(limiter, test.key, twice("calls")), grpclimit.WithMessageRules(limiter, test.key, twice("messages")))
		for name, call := range calls {
			if err := call(t, client); status.Code(err) != test.code || err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("%s: got %v; expected %v", name, err, test.code)
			}
		}
	}
}

// What a key function leaves out is not counted, neither at a server nor at a client.
func TestSkipRules(t *testing.T) {
	limiter, _ := limittest.New(t)
	skip := func(context.Context, string) (string, error) { return "", grpclimit.SkipRules }
	rules := []ratelimit.Rule{{Name: "none", Per: time.Hour}} // refuses all
	client := serve(t, &far{}, grpclimit.WithRules(limiter, skip, rules), grpclimit.WithMessageRules(limiter, skip, rules))
	side := &far{}
	limited := dial(t, listen(t, side), grpclimit.WithLimits(limiter, skip, rules))
	side.asks.Store(wants(t, codes.Unavailable, time.Hour))
	for name, call := range calls {
		if err := call(t, client); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for range 2 { // no key is paused
			if err := call(t, limited); status.Code(err) != codes.Unavailable || errors.Is(err, ratelimit.ErrTooManyRequests) {
				t.Errorf("%s of a client: %v", name, err)
			}
		}
	}
}

// While the store fails, the failure policy decides.
func TestRulesInAnOutage(t *testing.T) {
	for policy, code := range map[ratelimit.FailurePolicy]codes.Code{ratelimit.FailClosed: codes.Unavailable, ratelimit.FailOpen: codes.OK} {
		outage := limittest.NewOutage(limittest.NewClock())
		limiter := ratelimit.New(outage, ratelimit.WithFailurePolicy(policy))
		outage.Begin(errors.New("secret"))
		client := serve(t, &far{}, grpclimit.WithRules(limiter, nil, twice("calls")))
		for name, call := range calls {
			if err := call(t, client); status.Code(err) != code || err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("%s: got %v; expected %v", name, err, code)
			}
		}
	}
}

// A call waits for its permit.
func TestRulesThatWait(t *testing.T) {
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			limiter, clock := limittest.New(t)
			side, rule := &far{}, ratelimit.Rule{Name: "calls", Limit: 1, Per: time.Minute, Wait: time.Hour}
			client := serve(t, side, grpclimit.WithRules(limiter, nil, []ratelimit.Rule{rule}))
			limittest.RequireAllowed(t, call(t, client))
			done := make(chan error)
			go func() { done <- call(t, client) }()
			clock.AwaitSleepers(1)
			clock.Advance(time.Minute)
			if err := <-done; err != nil || side.seen.Load() != 2 {
				t.Errorf("got %v; the service saw %d calls", err, side.seen.Load())
			}
		})
	}
}

// A call whose client has gone does not wait on, is charged nothing, and ends with the code of its context.
func TestRulesOfACallThatEnds(t *testing.T) {
	limiter, clock := limittest.New(t)
	rule := ratelimit.Rule{Name: "calls", Limit: 1, Per: time.Minute, Wait: time.Hour}
	limit, calls := grpclimit.UnaryServerInterceptor(grpclimit.WithRules(limiter, nil, []ratelimit.Rule{rule})), 0
	call := func(ctx context.Context) error {
		_, err := limit(ctx, nil, &grpc.UnaryServerInfo{FullMethod: "/m"}, func(context.Context, any) (any, error) {
			calls++
			return nil, nil
		})
		return err
	}
	limittest.RequireAllowed(t, call(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error)
	go func() { gone <- call(ctx) }()
	clock.AwaitSleepers(1)
	cancel()
	if err := <-gone; status.Code(err) != codes.Canceled || status.Convert(err).Message() != "context canceled" {
		t.Errorf("got %v", err)
	}
	clock.Advance(time.Minute)
	if err := call(t.Context()); err != nil || calls != 2 {
		t.Errorf("got %v, %d calls", err, calls)
	}
}

// busy is a service whose calls ask before they return.
type busy struct {
	healthpb.UnimplementedHealthServer
	answer func() error
}

func (b busy) Check(context.Context, *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	return &healthpb.HealthCheckResponse{}, b.answer()
}

func (b busy) Watch(*healthpb.HealthCheckRequest, grpc.ServerStreamingServer[healthpb.HealthCheckResponse]) error {
	return b.answer()
}

// serveChain serves a service behind interceptors that make errors of panics.
func serveChain(t *testing.T, service healthpb.HealthServer, options ...grpclimit.Option) healthpb.HealthClient {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	recovers := func(err *error) {
		if recover() != nil {
			*err = status.Error(codes.Aborted, "a panic")
		}
	}
	server := grpc.NewServer(
		grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (_ any, err error) {
			defer recovers(&err)
			return handle(ctx, req)
		}, grpclimit.UnaryServerInterceptor(options...)),
		grpc.ChainStreamInterceptor(func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) (err error) {
			defer recovers(&err)
			return handle(srv, stream)
		}, grpclimit.StreamServerInterceptor(options...)))
	healthpb.RegisterHealthServer(server, service)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	connection, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	return healthpb.NewHealthClient(connection)
}

// A permit of a call that runs comes back when its handler returns, fails or panics, and when later rules refuse the call.
func TestConcurrencyRules(t *testing.T) {
	one := []ratelimit.Rule{{Name: "running", Algorithm: ratelimit.Concurrency, Limit: 1}}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			limiter, _ := limittest.New(t)
			var nested atomic.Pointer[func() error]
			client := serveChain(t, busy{answer: func() error { return (*nested.Load())() }},
				grpclimit.WithRules(limiter, nil, one), grpclimit.WithRules(limiter, nil, []ratelimit.Rule{{Name: "few", Limit: 5, Per: time.Hour}}))
			while := func() error { // while the first call runs, there is no other permit
				if err := call(t, client); status.Code(err) != codes.ResourceExhausted {
					return fmt.Errorf("a second call: %w", err)
				}
				return status.Error(codes.OutOfRange, "as expected")
			}
			for i, answer := range []func() error{while, func() error { panic("broken") }, while, func() error { panic("broken") }, while} {
				nested.Store(&answer)
				want := []codes.Code{codes.OutOfRange, codes.Aborted}[i%2]
				if err := call(t, client); status.Code(err) != want {
					t.Errorf("call %d: got %v; expected %v", i, err, want)
				}
			}
			for range 2 { // the rules that count last refuse
				if err := call(t, client); status.Code(err) != codes.ResourceExhausted || !strings.Contains(fmt.Sprint(status.Convert(err).Proto()), "few") {
					t.Errorf("got %v", err)
				}
			}
			running, err := limiter.Peek(t.Context(), ratelimit.Request{Rule: one[0]})
			if err != nil || running.Quotas[0].Remaining != 1 {
				t.Errorf("got %+v, %v; expected no running call", running, err)
			}
		})
	}
}

// A Charge is that of the service's wrapper, also if it comes from an interceptor outside.
func TestRulesLeaveTheCharge(t *testing.T) {
	limiter, _ := limittest.New(t)
	service := chat.NewLimitedService(&chat.Service{Answer: strings.Fields}, limiter)
	client, stop := dialChat(service, grpclimit.WithUserID(userOf), grpclimit.WithRules(limiter, grpclimit.UserID, twice("calls")),
		grpclimit.WithMessageRules(limiter, grpclimit.UserID, twice("messages")))
	ctx := metadata.AppendToOutgoingContext(t.Context(), "user", "ann")
	for i, code := range []codes.Code{codes.OK, codes.OK, codes.ResourceExhausted} {
		stream, err := client.Ask(ctx, &chatpb.Question{Text: "one two"})
		for err == nil {
			_, err = stream.Recv()
		}
		if err == io.EOF {
			err = nil
		}
		if status.Code(err) != code {
			t.Errorf("call %d: %v", i, err)
		}
	}
	stop()
	for rule, used := range map[*ratelimit.Rule]int64{&chat.ServiceRules()[0]: 4, &twice("calls")[0]: 2, &twice("messages")[0]: 2} {
		d, err := limiter.Peek(t.Context(), ratelimit.Request{Rule: *rule, Key: "ann"})
		if err != nil || rule.Limit-d.Quotas[0].Remaining != used {
			t.Errorf("%s: got %+v, %v; expected %d to be used", rule.Name, d, err, used)
		}
	}

	outside, charge := ratelimit.WithCharge(ratelimit.WithUserID(t.Context(), "bob"))
	limit := grpclimit.UnaryServerInterceptor(grpclimit.WithRules(limiter, grpclimit.UserID, twice("calls")))
	if _, err := limit(outside, nil, &grpc.UnaryServerInfo{FullMethod: "/m"}, func(context.Context, any) (any, error) { return nil, nil }); err != nil {
		t.Fatal(err)
	}
	if err := charge.Settle(outside, 1); !strings.Contains(fmt.Sprint(err), "no call was admitted") {
		t.Errorf("the rules have filled the Charge: %v", err)
	}
}

// bareStream is a stream that only has a context.
type bareStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s bareStream) Context() context.Context { return s.ctx }

// The charge of a stream grows while the handler runs, and no more when it has returned.
func TestStreamThatGrows(t *testing.T) {
	limiter, _ := limittest.New(t)
	rules := wrap.NewRules("p.Chat.Ask", ratelimit.Rule{Name: "tokens", Limit: 1000, Per: time.Minute}).WithCost()
	var charge *ratelimit.Charge
	err := grpclimit.StreamServerInterceptor()(nil, bareStream{ctx: t.Context()}, &grpc.StreamServerInfo{}, func(_ any, stream grpc.ServerStream) error {
		ctx := stream.Context()
		charge = ratelimit.ChargeFrom(ctx)
		if err := wrap.TakeCharges(ctx, rules.On(limiter), rules, wrap.Charge{Cost: 500}); err != nil {
			return err
		}
		if err := charge.Add(ctx, 500); err != nil {
			t.Error(err)
		}
		return charge.Add(ctx, 500)
	})
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("got error %v", err)
	}
	if wrong, ok := errors.AsType[*ratelimit.RuleError](charge.Add(t.Context(), 1)); !ok {
		t.Errorf("after the handler: got error %v", wrong)
	}
	if err := charge.Settle(t.Context(), 700); err != nil {
		t.Error(err)
	}
	d, err := limiter.Peek(t.Context(), ratelimit.Request{Rule: rules.Rules()[0]})
	if err != nil || d.Quotas[0].Remaining != 300 {
		t.Errorf("got %+v, error %v; want 300 left", d.Quotas, err)
	}
}

// A stream that its client has left costs what was sent.
func TestCancelledStreamIsSettled(t *testing.T) {
	limiter, _ := limittest.New(t)
	ctx, cancel := context.WithCancel(metadata.AppendToOutgoingContext(t.Context(), "user", "ann"))
	words := func(string) []string {
		return slices.Repeat([]string{strings.Repeat("x", 1000)}, 4000) // more than flow control lets pass unread
	}
	client, stop := dialChat(chat.NewLimitedService(&chat.Service{Answer: words}, limiter), grpclimit.WithUserID(userOf))
	stream, err := client.Ask(ctx, &chatpb.Question{MaxTokens: 20_000})
	if err == nil {
		_, err = stream.Recv()
	}
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	stop() // when the handler has returned
	d, err := limiter.Peek(t.Context(), ratelimit.Request{Rule: chat.ServiceRules()[0], Key: "ann"})
	if err != nil || d.Quotas[0].Remaining <= 16_000 || d.Quotas[0].Remaining >= 20_000 {
		t.Errorf("got %+v, %v; expected some of 4,000 tokens to be used, and not the estimate", d, err)
	}
}

// talk opens a stream, and returns a function that sends a message and returns the error of its answer.
func talk(t *testing.T, client chatpb.ChatClient) (grpc.BidiStreamingClient[chatpb.Question, chatpb.Token], func() error) {
	t.Helper()
	stream, err := client.Talk(metadata.AppendToOutgoingContext(t.Context(), "user", "ann"))
	if err != nil {
		t.Fatal(err)
	}
	return stream, func() error {
		_ = stream.Send(&chatpb.Question{Text: "hello"})
		_, err := stream.Recv()
		return err
	}
}

// Messages take a permit each, over all streams, and their end none. One that is refused ends its stream with the status. Unary calls are free.
func TestMessageRules(t *testing.T) {
	limiter, _ := limittest.New(t)
	rule := ratelimit.Rule{Name: "messages", Limit: 5, Per: time.Hour}
	client, stop := dialChat(&chat.Service{Answer: strings.Fields}, grpclimit.WithUserID(userOf),
		grpclimit.WithMessageRules(limiter, grpclimit.UserID, []ratelimit.Rule{rule}), grpclimit.WithMessageRules(limiter, nil, twice("all")))
	defer stop()
	first, say := talk(t, client)
	limittest.RequireAllowed(t, say())
	_ = first.CloseSend()
	if _, err := first.Recv(); err != io.EOF {
		t.Errorf("the end of a stream: %v", err)
	}
	if _, err := client.Count(t.Context(), &chatpb.Question{}); err != nil {
		t.Errorf("a unary call: %v", err)
	}
	_, say = talk(t, client)
	limittest.RequireAllowed(t, say())
	err := say()
	refusal := limittest.RequireRefused(t, err, "all")
	if status.Code(err) != codes.ResourceExhausted || refusal.Never || refusal.RetryAfter != time.Hour || refusal.Message != "Twice an hour." {
		t.Errorf("got %v, %+v", status.Code(err), refusal)
	}
	used, err := limiter.Peek(t.Context(), ratelimit.Request{Rule: rule, Key: "ann"})
	if err != nil || used.Quotas[0].Remaining != 2 {
		t.Errorf("got %+v, %v; expected 3 messages", used, err)
	}
}

// patient is a service that reads on after a refusal, whose errors it notes.
type patient struct {
	chatpb.UnimplementedChatServer
	seen    []string
	refused []error
	done    chan struct{}
}

func (p *patient) Talk(stream grpc.BidiStreamingServer[chatpb.Question, chatpb.Token]) error {
	defer close(p.done)
	for {
		question, err := stream.Recv()
		switch {
		case errors.Is(err, ratelimit.ErrTooManyRequests):
			p.refused = append(p.refused, err)
		case err != nil:
			return fmt.Errorf("receiving: %w", err)
		default:
			p.seen = append(p.seen, question.GetText())
		}
		if err := stream.Send(&chatpb.Token{}); err != nil {
			return err
		}
	}
}

// A handler that goes on reading does not see what was refused, and the next message asks anew.
func TestRefusedMessageIsDropped(t *testing.T) {
	limiter, clock := limittest.New(t)
	service := &patient{done: make(chan struct{})}
	client, stop := dialChat(service, grpclimit.WithMessageRules(limiter, nil, twice("messages")))
	defer stop()
	stream, err := client.Talk(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"a", "b", "c", "d"} {
		if text == "d" {
			clock.Advance(time.Hour)
		}
		_ = stream.Send(&chatpb.Question{Text: text})
		if _, err := stream.Recv(); err != nil {
			t.Fatal(err)
		}
	}
	_ = stream.CloseSend()
	<-service.done
	if !slices.Equal(service.seen, []string{"a", "b", "d"}) || len(service.refused) != 1 || status.Code(service.refused[0]) != codes.ResourceExhausted {
		t.Errorf("got %q, %v", service.seen, service.refused)
	}
}

// A rule with Wait paces a stream: the next message comes when its permit is there. A stream whose client has gone does not wait on.
func TestMessagesWait(t *testing.T) {
	limiter, clock := limittest.New(t)
	service := &patient{done: make(chan struct{})}
	rule := ratelimit.Rule{Name: "messages", Limit: 1, Per: time.Second, Wait: time.Hour}
	client, stop := dialChat(service, grpclimit.WithMessageRules(limiter, nil, []ratelimit.Rule{rule}))
	defer stop()
	ctx, cancel := context.WithCancel(t.Context())
	stream, err := client.Talk(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for range 4 {
		_ = stream.Send(&chatpb.Question{Text: "x"})
	}
	for i := range 3 {
		if _, err := stream.Recv(); err != nil {
			t.Fatal(err)
		}
		clock.AwaitSleepers(1)
		if i < 2 {
			clock.Advance(time.Second)
		}
	}
	cancel()
	<-service.done
	if len(service.seen) != 3 || len(service.refused) != 0 {
		t.Errorf("the service saw %d messages, and %v", len(service.seen), service.refused)
	}
}

// The only request of a method that streams answers is a message.
func TestRequestOfAStreamIsAMessage(t *testing.T) {
	limiter, _ := limittest.New(t)
	side := &far{}
	client := serve(t, side, grpclimit.WithMessageRules(limiter, nil, twice("messages")))
	for range 2 {
		limittest.RequireAllowed(t, watch(t, client))
	}
	limittest.RequireRefused(t, watch(t, client), "messages")
	if n := side.seen.Load(); n != 2 {
		t.Errorf("the service saw %d calls", n)
	}
}

// What cannot be limited is told at once, in one sentence.
func TestRulesAreMisused(t *testing.T) {
	limiter, _ := limittest.New(t)
	for _, test := range []struct {
		of    func(*ratelimit.Limiter, func(context.Context, string) (string, error), []ratelimit.Rule) grpclimit.Option
		l     *ratelimit.Limiter
		rules []ratelimit.Rule
		says  string
	}{
		{grpclimit.WithRules, limiter, nil, "grpclimit.WithRules: there is no rule"},
		{grpclimit.WithRules, nil, twice("a"), "limits of grpclimit.WithRules: the limiter is nil"},
		{grpclimit.WithRules, limiter, []ratelimit.Rule{{Name: "a", Limit: 1}}, `rule "a"`},
		{grpclimit.WithRules, limiter, []ratelimit.Rule{{Name: "d", Limit: 1, Per: time.Hour, Distinct: "{x}"}}, `rule "d" has Distinct`},
		{grpclimit.WithRules, limiter, []ratelimit.Rule{{Name: "l", Per: time.Hour, Computed: true}}, `rule "l" has Computed`},
		{grpclimit.WithRules, limiter, []ratelimit.Rule{{Name: "e", Limit: 1, Every: "1mo"}}, `rule "e" has Every`},
		{grpclimit.WithMessageRules, limiter, []ratelimit.Rule{{Name: "e", Limit: 1, Every: "1mo"}}, `rule "e" has Every`},
		{grpclimit.WithMessageRules, limiter, nil, "grpclimit.WithMessageRules: there is no rule"},
		{grpclimit.WithMessageRules, limiter, []ratelimit.Rule{{Name: "c", Limit: 1, Algorithm: ratelimit.Concurrency}}, `rule "c" counts calls that run`},
	} {
		func() {
			defer func() {
				if said := fmt.Sprint(recover()); !strings.Contains(said, test.says) || strings.Contains(said, "\n") {
					t.Errorf("got %q; expected %q", said, test.says)
				}
			}()
			test.of(test.l, nil, test.rules)
		}()
	}
}
