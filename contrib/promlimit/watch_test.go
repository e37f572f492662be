package promlimit

import (
	"errors"
	"log/slog"
	"maps"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/limittest"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// gaugesOf returns the values of a collector's gauges by their names, without ratelimit_, those of rules by the rule, and the pauses that there are.
func gaugesOf(t *testing.T, c *Collector) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if m.GetGauge() != nil {
				name := f.GetName()[len("ratelimit_"):]
				switch labels := m.GetLabel(); {
				case name == "pauses" && m.GetGauge().GetValue() == 0: // of each rule there are two
					continue
				case len(labels) == 2:
					name = labels[1].GetValue() + " by " + labels[0].GetValue()
				case len(labels) == 1:
					name = labels[0].GetValue()
				}
				all[name] = m.GetGauge().GetValue()
			}
		}
	}
	return all
}

// The gauges show the limits and the settings in force, and whether the store works.
func TestWatch(t *testing.T) {
	clock, metrics := limittest.NewClock(), New()
	if got := gaugesOf(t, metrics); len(got) > 0 {
		t.Errorf("got %v without a limiter", got)
	}
	store := limittest.NewOutage(clock)
	l := ratelimit.New(store, ratelimit.WithObserver(metrics.Observe), ratelimit.WithLogger(slog.New(slog.DiscardHandler)))
	metrics.Watch(l)
	rules := wrap.NewRules("p.T.M", ratelimit.Rule{Name: "login", Limit: 3, Per: time.Minute}, ratelimit.Rule{Name: "login", Limit: 20, Per: time.Hour},
		ratelimit.Rule{Name: "day", Limit: 50, Cron: "@daily"}, ratelimit.Rule{Name: "here", Limit: 9, Per: time.Second, Scope: ratelimit.ScopeInstance})
	rules.On(l)
	want := map[string]float64{
		"store_up": 1, "settings": 0, "settings_unusable": 0, "settings_lost": 0, "login": 3, "day": 50, "here": 9,
	}
	require := func(changed map[string]float64) {
		t.Helper()
		maps.Copy(want, changed)
		if got := gaugesOf(t, metrics); !maps.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	require(nil)
	five, ctx := int64(5), t.Context()
	for rule, v := range map[string]ratelimit.Override{
		"login": {Limit: &five, Until: clock.Now().Add(time.Hour).Round(0)}, "day": {Per: time.Hour}, "here": {Key: "k", Limit: &five},
	} {
		if err := l.Overrides().Set(ctx, rule, v); err != nil {
			t.Fatal(err)
		}
	}
	require(map[string]float64{"settings": 3, "settings_unusable": 1, "login": 5})
	clock.Advance(time.Hour)
	require(map[string]float64{"settings": 2, "login": 3})
	far := ratelimit.Rule{Name: "far", Limit: 100, Per: time.Second, Pausable: true}
	farRules := wrap.NewRules("p.T.F", far)
	for _, key := range []string{"ann", "bob"} {
		taken, err := wrap.Begin(ctx, farRules.On(l), farRules, wrap.Charge{Key: key, Cost: 1})
		if err != nil {
			t.Fatal(err)
		}
		taken.Pause(ctx, time.Minute)
	}
	if err := l.Pause(ratelimit.WithActor(ctx, "kim", ""), time.Minute, ratelimit.Request{Rule: far, Key: "eve"}); err != nil {
		t.Fatal(err)
	}
	if err := l.Pause(ctx, time.Minute, ratelimit.Request{Rule: far, Key: "zoe"}); err != nil {
		t.Fatal(err)
	}
	require(map[string]float64{"far": 100, "settings": 3, "far by far side": 2, "far by operator": 2})
	clock.Advance(time.Minute)
	delete(want, "far by far side")
	delete(want, "far by operator")
	require(map[string]float64{"settings": 2})
	store.Begin(errors.New("away"))
	_, _ = l.Allow(ctx, ratelimit.Request{Rule: ratelimit.Rule{Name: "plan", Limit: 1, Per: time.Hour}})
	require(map[string]float64{"store_up": 0, "plan": 1})
	store.End()
	clock.Advance(time.Minute)
	require(map[string]float64{"store_up": 1})
	varied := wrap.NewRules("p.T.V", ratelimit.Rule{Computed: true, Per: time.Hour})
	if err := wrap.TakeCharges(ctx, varied.On(l), varied, wrap.Charge{Cost: 1, Limit: 7}); err != nil {
		t.Fatal(err)
	}
	require(nil) // a limit that depends on the call is not one number
}

// Counters of a rule are there before its first call, so that a first failure is an increase.
func TestCountersBegin(t *testing.T) {
	metrics := New()
	l := ratelimit.New(limittest.NewOutage(limittest.NewClock()), ratelimit.WithObserver(metrics.Observe))
	metrics.Watch(l)
	rules := wrap.NewRules("p.T.M", ratelimit.Rule{Limit: 3, Per: time.Minute})
	limits := rules.On(l)
	for name, want := range map[string]int{"ratelimit_decisions_total": 3, "ratelimit_failures_total": 5, "ratelimit_store_errors_total": 1} {
		if n := testutil.CollectAndCount(metrics, name); n != want {
			t.Errorf("%s has %d series, want %d", name, n, want)
		}
	}
	for range 4 {
		_ = wrap.Take(t.Context(), limits, rules, "")
	}
	if n := testutil.ToFloat64(metrics.decisions.WithLabelValues("p.T.M", "refused", "store")); n != 1 {
		t.Errorf("%v refusals are counted", n)
	}
}
