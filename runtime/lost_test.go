package ratelimit_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/engine"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/limittest"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// twoNodes is a store on two servers. One of them may be away.
type twoNodes struct {
	*limittest.Outage
	away bool
}

func (s *twoNodes) Decide(ctx context.Context, call *engine.Call) (engine.Verdict, error) {
	if s.away && call.Claims[0].Subject == "away" {
		return engine.Verdict{}, errors.New("one node is away")
	}
	return s.Outage.Decide(ctx, call)
}

// While one of several nodes is away, some calls fail and others succeed. The limiter reports this as one outage: one line and one event when
// it begins, and one of each when the node is back.
func TestPartialOutage(t *testing.T) {
	clock, log, events := limittest.NewClock(), new(bytes.Buffer), []string(nil)
	store := &twoNodes{Outage: limittest.NewOutage(clock), away: true}
	l := ratelimit.New(store, ratelimit.WithLogger(slog.New(slog.NewTextHandler(log, nil))), ratelimit.WithFailurePolicy(ratelimit.FailOpen),
		ratelimit.WithObserver(func(_ context.Context, e *ratelimit.Event) {
			events = append(events, fmt.Sprint(e.Kind, " ", e.Source, " ", e.Err != nil))
		}))
	rule := ratelimit.Rule{Name: "r", Limit: 100, Per: time.Hour}
	call := func(key string) ratelimit.Source {
		d, err := l.Allow(t.Context(), ratelimit.Request{Rule: rule, Key: key})
		if err != nil || !d.Allowed {
			t.Errorf("%s: %+v, error %v", key, d, err)
		}
		clock.Advance(100 * time.Millisecond)
		return d.Source
	}
	for range 3 {
		if call("here") != ratelimit.SourceStore || call("away") != ratelimit.SourcePolicy {
			t.Error("a decision does not say whether a policy made it")
		}
	}
	store.away = false
	call("away")
	clock.Advance(5 * time.Second)
	call("here")
	call("away")
	want := []string{
		"admitted store false", "store_lost store true", "admitted policy true", "admitted store false", "admitted policy true",
		"admitted store false", "admitted policy true", "admitted store false", "store_back store false", "admitted store false",
		"admitted store false",
	}
	if !slices.Equal(events, want) {
		t.Errorf("got events\n%q, want\n%q", events, want)
	}
	if lines := strings.Count(log.String(), "\n"); lines != 2 {
		t.Errorf("%d lines are logged, want two:\n%s", lines, log)
	}
}

// When the store is back, one line says how long it failed, and what became of the calls meanwhile. The next outage begins anew.
func TestLinesOfAnOutage(t *testing.T) {
	clock, log := limittest.NewClock(), new(bytes.Buffer)
	store := limittest.NewOutage(clock)
	l := ratelimit.New(store, ratelimit.WithLogger(slog.New(slog.NewTextHandler(log, nil))))
	call := func(name string, policy ratelimit.FailurePolicy, times int) {
		q := ratelimit.Request{Rule: ratelimit.Rule{Name: name, Limit: 100, Per: time.Hour, OnError: policy}}
		for range times {
			_, _ = l.Allow(t.Context(), q)
			_, _ = l.Peek(t.Context(), q)
		}
	}
	for _, times := range []int{1, 2} {
		log.Reset()
		store.Begin(errors.New("connection refused"))
		call("denied", ratelimit.FailClosed, times)
		call("passed", ratelimit.FailOpen, 2*times)
		clock.Advance(90 * time.Second)
		call("counted", ratelimit.FailLocal, 3*times)
		store.End()
		call("denied", ratelimit.FailClosed, 1)
		clock.Advance(6 * time.Second)
		call("denied", ratelimit.FailClosed, 1)
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		last := fmt.Sprintf(`level=INFO msg="the rate limit store is back" failed_for=1m30s calls_failed=%d calls_passed=%d calls_counted_here=%d`, times, 2*times, 3*times)
		if len(lines) != 2 || !strings.HasSuffix(lines[0], `err="connection refused"`) || !strings.HasSuffix(lines[1], last) {
			t.Errorf("logged\n%s\nwant the last line to end with\n%s", log, last)
		}
	}
}

// What a process says of itself has the last error of its store, and its time, until the store has worked for some seconds.
func TestProcessSaysWhyItsStoreFails(t *testing.T) {
	clock := limittest.NewClock()
	store := limittest.NewOutage(clock)
	l := ratelimit.New(store, ratelimit.WithLogger(slog.New(slog.DiscardHandler)))
	call := func(want string) {
		t.Helper()
		_, _ = l.Allow(t.Context(), ratelimit.Request{Rule: ratelimit.Rule{Name: "r", Limit: 100, Per: time.Hour}})
		store.End()
		if all, err := store.Fleet(ratelimit.DefaultPrefix).Processes(t.Context()); err != nil || len(all) != 1 || all[0].Store != want {
			t.Errorf("got %+v, %v; want the error %q", all, err, want)
		}
	}
	call("")
	for range 2 {
		store.Begin(errors.New("connection refused"))
		refused := clock.Now().UTC().Format("at 2006-01-02 15:04:05 UTC: connection refused")
		call(refused)
		clock.Advance(time.Second)
		call(refused) // another server of the store may still fail
		clock.Advance(6 * time.Second)
		call("")
	}
}

// Under FailOpen nothing counts the calls, so reports have no quotas for the rules of the lost store.
func TestReportOfALostStore(t *testing.T) {
	store := limittest.NewOutage(limittest.NewClock())
	l := ratelimit.New(store, ratelimit.WithFailurePolicy(ratelimit.FailOpen), ratelimit.WithLogger(slog.New(slog.DiscardHandler)))
	fleet := ratelimit.Request{Rule: ratelimit.Rule{Name: "fleet", Limit: 9, Per: time.Hour}}
	here := ratelimit.Request{Rule: ratelimit.Rule{Name: "here", Limit: 9, Per: time.Hour, Scope: ratelimit.ScopeInstance}}
	store.Begin(nil)
	ctx, report := ratelimit.WithReport(t.Context())
	d, err := l.Allow(ctx, fleet, here)
	isQuota := len(d.Quotas) == 1 && d.Quotas[0].Rule == "here" && d.Quotas[0].Remaining == 8
	if err != nil || !d.Allowed || !isQuota || len(report.Quotas()) != 1 {
		t.Errorf("got %+v, error %v", d, err)
	}
	if d, err := l.Peek(t.Context(), fleet); err != nil || !d.Allowed || len(d.Quotas) > 0 {
		t.Errorf("got %+v, error %v", d, err)
	}
}

// A rule at a cost of 0 is asked of nobody. So its settlement goes to the store, even if a policy counted the other rules of its call.
func TestSettlementOfNoCostAfterAnOutage(t *testing.T) {
	store := limittest.NewOutage(limittest.NewClock())
	l := ratelimit.New(store, ratelimit.WithFailurePolicy(ratelimit.FailLocal), ratelimit.WithLogger(slog.New(slog.DiscardHandler)))
	calls := ratelimit.Rule{Name: "calls", Limit: 10, Per: time.Minute}
	tokens := ratelimit.Rule{Name: "tokens", Limit: 100, Per: time.Minute}
	rules := wrap.NewRules("shop.T.M", calls, tokens)
	store.Begin(nil)
	taken, err := wrap.Begin(t.Context(), rules.On(l), rules, wrap.Charge{Key: "k", Cost: 4}, wrap.Charge{Key: "k"})
	if err != nil {
		t.Fatal(err)
	}
	taken.Settle(t.Context(), 3, wrap.Keep)
	store.End()
	taken.Settle(t.Context(), wrap.Keep, 40)
	for rule, want := range map[ratelimit.Rule]int64{calls: 10, tokens: 60} { // this process counted the call
		if left := remaining(t, l, ratelimit.Request{Rule: rule, Key: "k"}); left != want {
			t.Errorf("%s has %d left, want %d", rule.Name, left, want)
		}
	}
}

// What a policy decided is forgotten when the call asks again: a pause that refuses it then is reported, and the store's old error is not.
func TestPauseAfterAnOutage(t *testing.T) {
	clock := limittest.NewClock()
	store, events := limittest.NewOutage(clock), []ratelimit.Event(nil)
	l := ratelimit.New(store, ratelimit.WithFailurePolicy(ratelimit.FailOpen), ratelimit.WithLogger(slog.New(slog.DiscardHandler)),
		ratelimit.WithObserver(func(_ context.Context, e *ratelimit.Event) { events = append(events, *e) }))
	here := ratelimit.Rule{Name: "here", Limit: 1, Per: time.Minute, Scope: ratelimit.ScopeInstance}
	fleet := ratelimit.Rule{Name: "fleet", Limit: 10, Per: time.Minute}
	allow(t, l, ratelimit.Request{Rule: here, Key: "k"})
	paused := ratelimit.Request{Rule: fleet, Key: "k"}
	here.Wait, fleet.Wait = 2*time.Minute, 2*time.Minute
	rules := wrap.NewRules("shop.T.M", here, fleet)
	ctx, report := ratelimit.WithReport(t.Context())
	store.Begin(nil)
	result := make(chan error, 1)
	go func() { result <- wrap.Take(ctx, rules.On(l), rules, "k", "k") }()
	clock.AwaitSleepers(1)
	store.End()
	if err := l.Pause(t.Context(), time.Hour, paused); err != nil {
		t.Fatal(err)
	}
	clock.Advance(2 * time.Minute)
	if err := <-result; !errors.Is(err, ratelimit.ErrTooManyRequests) {
		t.Errorf("got error %v, want a refusal", err)
	}
	if quotas := report.Quotas(); len(quotas) != 1 || quotas[0].Rule != "fleet" { // nobody has looked at the other rule
		t.Errorf("reported are %+v, want the paused rule", quotas)
	}
	if last := events[len(events)-1]; last.Kind != ratelimit.EventRefused || last.Err != nil {
		t.Errorf("observed %v with error %v", last.Kind, last.Err)
	}
}

// An observer that panics when it is told of an outage, or of its end, keeps no permits.
func TestPanicsAboutAnOutageKeepNothing(t *testing.T) {
	for _, when := range []ratelimit.EventKind{ratelimit.EventStoreLost, ratelimit.EventStoreBack} {
		clock := limittest.NewClock()
		store := limittest.NewOutage(clock)
		l := ratelimit.New(store, ratelimit.WithFailurePolicy(ratelimit.FailOpen), ratelimit.WithLogger(slog.New(slog.DiscardHandler)),
			ratelimit.WithObserver(func(_ context.Context, e *ratelimit.Event) {
				if e.Kind == when {
					panic("a bug of the observer")
				}
			}))
		running := ratelimit.Rule{Name: "r", Algorithm: ratelimit.Concurrency, Limit: 1, Per: time.Hour}
		here := running
		here.Scope = ratelimit.ScopeInstance
		call := func() (panicked bool) {
			defer func() { panicked = recover() != nil }()
			d, err := l.Allow(t.Context(), ratelimit.Request{Rule: running, Key: "k"}, ratelimit.Request{Rule: here, Key: "k"})
			if err != nil || !d.Allowed {
				t.Errorf("%s: got %+v, error %v", when, d, err)
			} else if err := d.Release(t.Context()); err != nil {
				t.Error(err)
			}
			return panicked
		}
		store.Begin(nil)
		lost := call()
		store.End()
		clock.Advance(time.Minute)
		if back := call(); lost == back {
			t.Errorf("%s: panicked %t and %t", when, lost, back)
		}
		call()
	}
}
