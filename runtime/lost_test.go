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
