package ratelimit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/ratelimit-go/ratelimit/internal/backend"
	"github.com/ratelimit-go/ratelimit/internal/decide"
	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/memory"
)

// take makes a call under the rules of a method.
func take(t *testing.T, l *Limiter, rules *Prepared, uses ...decide.Use) {
	t.Helper()
	c := methodOn(l, rules).Open(false)
	for _, use := range uses {
		c.Add(&use)
	}
	if _, err := c.Take(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// types are those of which rules are the only method.
var types sync.Map

// methodOn returns a method on a limiter, as a wrapper has it.
func methodOn(l *Limiter, rules *Prepared) *decide.Method {
	of, _ := types.LoadOrStore(rules, &decide.Type{Name: rules.Method, Methods: []*decide.Rules{(*decide.Rules)(rules)}})
	return l.machine().LimitsOf(of.(*decide.Type)).Method(0)
}

// Rules returns the rules that a limiter uses. Requests with them find the counts, even if a rule has no name, or its limit comes with calls.
func TestUsedRules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, ctx := memory.New(nil, 1000, 1<<20), context.Background()
		l, other := New(store), New(store)
		written := []Rule{
			{Key: "{phone}", Limit: 5, Per: time.Minute},
			{Key: "{ip}", Limit: 5, Per: time.Minute},
			{Name: "named", Key: "{phone}", Limit: 5, Per: time.Hour, Algorithm: TokenBucket, Burst: 7},
			{Name: "p.T", Key: "{phone}", Limit: 5, Cron: "@daily", TZ: "Europe/Berlin"},
			{Limit: 5, Per: time.Minute, Algorithm: SlidingCounter, Slices: 10},
			{Name: "computed", Computed: true, Per: time.Minute},
			{Name: "here", Limit: 9, Per: time.Minute, Scope: ScopeInstance},
		}
		rules, err := Prepare("p.T.M", written...)
		if err != nil {
			t.Fatal(err)
		}
		charges := make([]decide.Use, len(written))
		for i := range charges {
			charges[i] = decide.Use{Key: "k", Cost: 1}
		}
		charges[5].Limit = 5
		for range 2 {
			take(t, l, rules, charges...)
			take(t, other, rules, charges...)
		}
		time.Sleep(decide.UsedDelay)
		synctest.Wait()
		used, err := New(store).Rules(ctx)
		if err != nil || len(used) != len(written)-1 {
			t.Fatalf("got %+v, error %v", used, err)
		}
		for _, u := range used {
			d, err := other.Peek(ctx, Request{Rule: u.Rule, Key: "k"})
			if err != nil || d.Quotas[0].Remaining != d.Quotas[0].Limit-4 || d.Quotas[0].Rule != u.Name {
				t.Errorf("%+v: got %+v, error %v", u, d, err)
			}
			if u.Computed != (u.Name == "computed") || !u.Seen.Equal(time.Now().Truncate(time.Second)) {
				t.Errorf("got %+v", u)
			}
		}
		for _, r := range rules.Rules() { // as SenderRules returns them
			if n, err := l.Reset(ctx, Request{Rule: r, Key: "k"}); n != 1 || err != nil {
				t.Errorf("%+v: reset %d, error %v", r, n, err)
			}
		}
	})
}

// A program that makes new rules as it runs does not fill the store. A rule that takes too much room is not listed.
func TestUsedRulesAreBounded(t *testing.T) {
	store, ctx := memory.New(nil, 10_000, 1<<24), context.Background()
	l := New(store)
	for name, width := range map[string]int{"long": 700, "longer": fleet.MaxText} {
		_, _ = l.Allow(ctx, Request{Rule: Rule{Name: name, Key: strings.Repeat("x", width), Limit: 1, Per: time.Minute}, Key: "k"})
	}
	for i := range 2 * fleet.MaxRules {
		_, _ = l.Allow(ctx, Request{Rule: Rule{Name: fmt.Sprint("r", i), Limit: 1, Per: time.Minute}})
	}
	rules, err := l.Rules(ctx)
	if err != nil || len(rules) > fleet.MaxRules || len(rules) < fleet.MaxRules-1 {
		t.Errorf("%d are listed, %v", len(rules), err)
	}
	for name, want := range map[string]bool{"long": true, "longer": false} {
		if slices.ContainsFunc(rules, func(r UsedRule) bool { return r.Name == name }) != want {
			t.Errorf("%s is listed: %v, want %v", name, !want, want)
		}
	}
}

// narrow is a store whose user may not run all commands.
type narrow struct{ *memory.Store }

func (narrow) Ping(_ context.Context, _ string, rules []*engine.Rule) error {
	for _, r := range rules {
		if r.Kind == engine.TokenBucket {
			return errors.New("the user may not run SETRANGE")
		}
	}
	return nil
}

// A command that a rule needs and the user lacks is logged once, soon after the rule is first used.
func TestMissingCommandIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		l := New(narrow{memory.New(nil, 100, 1<<20)}, WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		for i, want := range []int{0, 1, 1} {
			rule := Rule{Name: fmt.Sprint("r", i), Limit: 5, Per: time.Minute, Algorithm: []Algorithm{SlidingWindow, TokenBucket, TokenBucket}[i]}
			if _, err := l.Allow(t.Context(), Request{Rule: rule}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(decide.UsedDelay)
			synctest.Wait()
			if got := strings.Count(log.String(), "may not run SETRANGE"); got != want {
				t.Errorf("rule %d: %d lines are logged, want %d:\n%s", i, got, want, &log)
			}
		}
	})
}

// returning is a store whose server is away when it is first asked what it permits, and then does not permit SETRANGE.
type returning struct {
	narrow
	asked int
}

func (s *returning) Ping(ctx context.Context, prefix string, rules []*engine.Rule) error {
	if s.asked++; s.asked <= 3 {
		return fmt.Errorf("127.0.0.1:1: %w", &backend.AwayError{Err: errors.New("the server is away")})
	}
	return s.narrow.Ping(ctx, prefix, rules)
}

// What the rules need is checked when the server is back. That it is away is told by decisions, not by this check.
func TestRulesAreCheckedAfterAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		l := New(&returning{narrow: narrow{memory.New(nil, 100, 1<<20)}}, WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		if _, err := l.Allow(t.Context(), Request{Rule: Rule{Name: "r", Limit: 5, Per: time.Minute, Algorithm: TokenBucket}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "may not run SETRANGE") {
			t.Errorf("logged:\n%s", text)
		}
		runtime.KeepAlive(l)
	})
}

// A limiter whose server is away is collected when the program drops it.
func TestDroppedLimiterIsNotChecked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &returning{narrow: narrow{memory.New(nil, 100, 1<<20)}}
		l := New(store)
		if _, err := l.Allow(t.Context(), Request{Rule: PerSecond(1)}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(decide.UsedDelay)
		synctest.Wait()
		runtime.KeepAlive(l)
		dropped := weak.Make(l)
		l = nil
		runtime.GC()
		runtime.GC()
		time.Sleep(time.Minute)
		synctest.Wait()
		if store.asked != 1 || dropped.Value() != nil {
			t.Errorf("asked %d times, limiter %p", store.asked, dropped.Value())
		}
	})
}

// closing is a store whose client is closed before it is asked what it permits.
type closing struct{ *memory.Store }

func (closing) Ping(context.Context, string, []*engine.Rule) error {
	return fmt.Errorf("%w: really", backend.ErrClosed)
}

// A program that ends soon after a rule is first used logs nothing.
func TestClosedClientIsNotTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		l := New(closing{memory.New(nil, 100, 1<<20)}, WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		if _, err := l.Allow(t.Context(), Request{Rule: PerSecond(1)}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(decide.UsedDelay)
		synctest.Wait()
		if log.Len() > 0 {
			t.Errorf("logged:\n%s", &log)
		}
	})
}

// Several limiters share a rule, as methods do that are generated once. Each notes the rule once, and calls go round among them at no cost.
func TestLimitersShareARule(t *testing.T) {
	rules, err := Prepare("p.T.M", Rule{Name: "r", Limit: 100, Per: time.Hour, Algorithm: FixedWindow})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 16 {
		l := New(memory.New(nil, 100, 1<<20))
		take(t, l, rules, decide.Use{Key: "k", Cost: 1})
		if rules, err := l.Rules(t.Context()); err != nil || len(rules) != 1 || rules[0].Limits[100] != 1 {
			t.Errorf("limiter %d has %+v, %v", i, rules, err)
		}
	}
}
