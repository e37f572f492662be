package behaviour_test

import (
	"testing"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/decide"
	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// pauses returns what a limiter's fleet knows of pauses beside counts.
func pauses(t *testing.T, l *ratelimit.Limiter) []fleet.PauseNote {
	t.Helper()
	all, more, err := (*decide.Limiter)(l).Fleet().Pauses(t.Context())
	if err != nil || more > 0 {
		t.Fatalf("%d more, %v", more, err)
	}
	return all
}

// quiet makes a call, whose far side asks for quiet.
func quiet(t *testing.T, l *ratelimit.Limiter, rules *wrap.Rules, key string, d time.Duration) {
	t.Helper()
	taken, err := wrap.Begin(t.Context(), rules.On(l), rules, wrap.Charge{Key: key, Cost: 1})
	if err != nil {
		t.Fatal(err)
	}
	taken.Pause(t.Context(), d)
}

// Everybody sees which keys are paused beside their counts, by whom, and that a pause was ended.
func TestPausesAreSeen(t *testing.T) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		rule, other := far, s.another()
		rule.Key = "{account}"
		rules, ann, bob := wrap.NewRules("p.T.Far", rule), ratelimit.Request{Rule: rule, Key: "ann"}, ratelimit.Request{Rule: rule, Key: "bob"}
		if err := s.limiter.Pause(t.Context(), time.Hour, bob); err != nil {
			t.Fatal(err)
		}
		quiet(t, s.limiter, rules, "ann", 2*time.Hour)
		redistest.Eventually(t, "two pauses are seen", func() bool { return len(pauses(t, other)) == 2 })
		for i, p := range pauses(t, other) {
			if p.Rule != "far" || p.Subject != []string{"ann", "bob"}[i] || p.FarSide != (i == 0) || p.Until.Sub(p.Since) != time.Duration(2-i)*time.Hour {
				t.Errorf("got %+v", p)
			}
		}
		if _, err := other.Reset(t.Context(), ann); err != nil {
			t.Fatal(err)
		}
		redistest.Eventually(t, "one pause is left", func() bool { return len(pauses(t, s.limiter)) == 1 })
		if err := other.Resume(t.Context(), bob); err != nil {
			t.Fatal(err)
		}
		if all := pauses(t, s.limiter); len(all) > 0 {
			t.Errorf("got %+v", all)
		}
		if err := other.Pause(ratelimit.WithActor(t.Context(), "kim", "maintenance"), time.Hour, ann); err != nil {
			t.Fatal(err)
		}
		settings, err := (*decide.Limiter)(s.limiter).Fleet().List(t.Context())
		if all := pauses(t, s.limiter); len(all) > 0 || err != nil || len(settings) != 1 || settings[0].Reason != "maintenance" {
			t.Errorf("got %+v and the settings %+v, %v", all, settings, err)
		}
	})
}

// After the store has lost everything, a process that knows a pause pauses the key again, and so does one that knows what an actor paused.
func TestPausesAfterALoss(t *testing.T) {
	onEveryServer(t, func(t *testing.T, server *redistest.Server) {
		limiter, other := ratelimit.New(scripted(connect(t, server.Addr))), ratelimit.New(scripted(connect(t, server.Addr)))
		rule := far
		rule.Key = "{account}"
		rules := wrap.NewRules("p.T.Far", rule)
		ann, bob := ratelimit.Request{Rule: rule, Key: "ann"}, ratelimit.Request{Rule: rule, Key: "bob"}
		quiet(t, limiter, rules, "ann", 2*time.Hour)
		if err := other.Pause(ratelimit.WithActor(t.Context(), "kim", ""), time.Hour, bob); err != nil {
			t.Fatal(err)
		}
		paused := func(l *ratelimit.Limiter, of ratelimit.Request) bool {
			d, err := l.Peek(t.Context(), of)
			return err == nil && !d.Allowed && d.RetryAfter > 50*time.Minute
		}
		redistest.Eventually(t, "the process follows and is listed", func() bool {
			return paused(limiter, bob) && paused(other, ann) && len(pauses(t, other)) == 1 && server.Do("HLEN ratelimit.seen:{ratelimit}:processes") == "1"
		})
		server.Do("FLUSHALL")
		redistest.Eventually(t, "the pauses are back", func() bool { return paused(limiter, bob) && paused(other, ann) && len(pauses(t, other)) == 1 })
	})
}
