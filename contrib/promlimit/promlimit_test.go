package promlimit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/limittest"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// requireMetrics compares the metrics of a name, without the buckets of histograms.
func requireMetrics(t *testing.T, c *Collector, name, want string) {
	t.Helper()
	if err := testutil.CollectAndCompare(c, strings.NewReader(want), name); err != nil {
		t.Error(err)
	}
}

// A call that gives up is counted for the rules that let it wait, and for no others.
func TestWhoGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		metrics := New()
		l := ratelimit.New(memstore.New(), ratelimit.WithObserver(metrics.Observe))
		orders := ratelimit.Request{Rule: ratelimit.Rule{Name: "orders", Limit: 1, Per: time.Minute}}
		shadow := ratelimit.Request{Rule: ratelimit.Rule{Name: "shadow", Limit: 1, Per: time.Minute, Mode: ratelimit.ModeShadow}}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		for range 2 {
			_, _ = l.Wait(ctx, orders, shadow)
		}
		requireMetrics(t, metrics, "ratelimit_failures_total", `
			# HELP ratelimit_failures_total Calls that were not decided or gave up waiting; refunds, settles and adds that failed.
			# TYPE ratelimit_failures_total counter
			ratelimit_failures_total{event="abandoned",rule="orders"} 1
		`)
	})
}

func TestDecisionsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		metrics, ctx := New(), context.Background()
		l := ratelimit.New(memstore.New(), ratelimit.WithObserver(metrics.Observe))
		login := ratelimit.Request{Rule: ratelimit.Rule{Name: "login", Limit: 2, Per: time.Minute}, Key: "+4915112345678"}
		all := ratelimit.Request{Rule: ratelimit.Rule{Name: "all", Limit: 100, Per: time.Minute}}
		try := ratelimit.Request{Rule: ratelimit.Rule{Name: "try", Limit: 1, Per: time.Minute, Mode: ratelimit.ModeShadow}}
		for range 3 {
			_, _ = l.Allow(ctx, login, all, try)
		}
		if _, err := l.Wait(ctx, login); err != nil {
			t.Fatal(err)
		}
		_, _ = l.Allow(ctx, ratelimit.Request{Rule: login.Rule, Cost: -1})
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, _ = l.Wait(short, all)
		requireMetrics(t, metrics, "ratelimit_decisions_total", `
			# HELP ratelimit_decisions_total What each rule did to a call.
			# TYPE ratelimit_decisions_total counter
			ratelimit_decisions_total{outcome="admitted",rule="all",source="store"} 3
			ratelimit_decisions_total{outcome="other_refused",rule="all",source="store"} 1
			ratelimit_decisions_total{outcome="admitted",rule="login",source="store"} 3
			ratelimit_decisions_total{outcome="refused",rule="login",source="store"} 1
			ratelimit_decisions_total{outcome="admitted",rule="try",source="store"} 1
			ratelimit_decisions_total{outcome="shadow_refused",rule="try",source="store"} 2
		`)
		requireMetrics(t, metrics, "ratelimit_failures_total", `
			# HELP ratelimit_failures_total Calls that were not decided or gave up waiting; refunds, settles and adds that failed.
			# TYPE ratelimit_failures_total counter
			ratelimit_failures_total{event="failed",rule="login"} 1
		`)
		requireMetrics(t, metrics, "ratelimit_wait_seconds", `
			# HELP ratelimit_wait_seconds How long calls under a rule waited for permits, if they waited.
			# TYPE ratelimit_wait_seconds histogram
			ratelimit_wait_seconds_bucket{rule="login",le="0.001"} 0
			ratelimit_wait_seconds_bucket{rule="login",le="0.01"} 0
			ratelimit_wait_seconds_bucket{rule="login",le="0.05"} 0
			ratelimit_wait_seconds_bucket{rule="login",le="0.1"} 0
			ratelimit_wait_seconds_bucket{rule="login",le="0.25"} 0
			ratelimit_wait_seconds_bucket{rule="login",le="0.5"} 0
			ratelimit_wait_seconds_bucket{rule="login",le="1"} 0
			ratelimit_wait_seconds_bucket{rule="login",le="2.5"} 0
			ratelimit_wait_seconds_bucket{rule="login",le="5"} 0
			ratelimit_wait_seconds_bucket{rule="login",le="10"} 0
			ratelimit_wait_seconds_bucket{rule="login",le="30"} 0
			ratelimit_wait_seconds_bucket{rule="login",le="60"} 1
			ratelimit_wait_seconds_bucket{rule="login",le="300"} 1
			ratelimit_wait_seconds_bucket{rule="login",le="+Inf"} 1
			ratelimit_wait_seconds_sum{rule="login"} 60
			ratelimit_wait_seconds_count{rule="login"} 1
		`)
	})
}

// The level that refuses a call has the refusal, and no other one.
func TestLevelsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the clock stands still
		metrics, ctx := New(), t.Context()
		rules := []ratelimit.Rule{
			{Name: "org", Limit: 100_000, Per: time.Minute}, {Name: "team", Limit: 50_000, Per: time.Minute}, {Name: "user", Limit: 90_000, Cron: "@daily"},
		}
		for i, rule := range rules {
			l := ratelimit.New(memstore.New(), ratelimit.WithObserver(metrics.Observe))
			_, _ = l.Allow(ctx, ratelimit.Request{Rule: rule, Cost: rule.Limit})
			for range i + 1 {
				_, _ = l.Allow(ctx, ratelimit.Request{Rule: rules[0]}, ratelimit.Request{Rule: rules[1]}, ratelimit.Request{Rule: rules[2]})
			}
		}
		for i, rule := range rules {
			for outcome, want := range map[string]float64{"admitted": 1, "refused": float64(i + 1), "other_refused": float64(5 - i)} {
				if n := testutil.ToFloat64(metrics.decisions.WithLabelValues(rule.Name, outcome, "store")); n != want {
					t.Errorf("%s %s: %v are counted; expected %v", rule.Name, outcome, n, want)
				}
			}
		}
	})
}

// Refusals by Limiter.Block, and of keys that a rule with Block refused before, have their own source.
func TestBlocksAreCounted(t *testing.T) {
	metrics, ctx := New(), t.Context()
	l := ratelimit.New(memstore.New(), ratelimit.WithObserver(metrics.Observe))
	login := ratelimit.Request{Rule: ratelimit.Rule{Name: "login", Limit: 2, Per: time.Minute}, Key: "eve"}
	if err := l.Block(ctx, time.Hour, login); err != nil {
		t.Fatal(err)
	}
	_, _ = l.Allow(ctx, login)
	mail := ratelimit.Request{Rule: ratelimit.Rule{Name: "mail", Limit: 1, Per: time.Minute, Block: time.Hour}, Key: "eve"}
	for range 4 { // the first is admitted, and the second begins the block
		_, _ = l.Allow(ctx, mail)
	}
	for rule, want := range map[string]float64{"login": 1, "mail": 2} {
		if n := testutil.ToFloat64(metrics.decisions.WithLabelValues(rule, "refused", "block")); n != want {
			t.Errorf("%s: %v are counted, want %v", rule, n, want)
		}
	}
}

// Failures of the store are counted, even if a failure policy lets the calls pass.
func TestStoreErrorsAreCounted(t *testing.T) {
	metrics, gone := New(), errors.New("gone")
	metrics.Observe(t.Context(), &ratelimit.Event{
		Kind: ratelimit.EventFailed, Err: &ratelimit.StoreError{Err: gone}, Rules: []ratelimit.Outcome{{Rule: "a"}, {Rule: "b"}},
	})
	metrics.Observe(t.Context(), &ratelimit.Event{Kind: ratelimit.EventAdmitted, Err: gone, Source: ratelimit.SourcePolicy})
	metrics.Observe(t.Context(), &ratelimit.Event{Kind: ratelimit.EventFailed, Err: &ratelimit.KeyError{}})
	metrics.Observe(t.Context(), &ratelimit.Event{Kind: ratelimit.EventStoreLost, Err: &ratelimit.StoreError{Err: gone}}) // no failure by itself
	if n := testutil.ToFloat64(metrics.storeErrors); n != 2 {
		t.Errorf("%v store errors", n)
	}
	for _, rule := range []string{"a", "b", ""} {
		if n := testutil.ToFloat64(metrics.failures.WithLabelValues(rule, "failed")); n != 1 {
			t.Errorf("%v failures of rule %q", n, rule)
		}
	}
	if n := testutil.CollectAndCount(metrics.failures); n != 3 {
		t.Errorf("failures of %d kinds", n)
	}
}

// Calls that ask for more permits are counted apart from the others: what rules did to them, and what nobody decided.
func TestAddsAreCounted(t *testing.T) {
	metrics, store := New(), limittest.NewOutage(limittest.NewClock())
	l := ratelimit.New(store, ratelimit.WithObserver(metrics.Observe), ratelimit.WithLogger(slog.New(slog.DiscardHandler)))
	rules := wrap.NewRules("p.T.M", ratelimit.Rule{Name: "a", Limit: 10, Per: time.Hour}, ratelimit.Rule{Name: "b", Limit: 5, Per: time.Hour}).WithCost()
	ctx, charge := ratelimit.WithCharge(t.Context())
	if err := wrap.Take(ctx, rules.On(l), rules, "", ""); err != nil {
		t.Fatal(err)
	}
	_, _, _ = charge.Add(ctx, 3), charge.Add(ctx, 4), charge.Add(ctx, 6)
	store.Begin(nil)
	_ = charge.Add(ctx, 1)
	for labels, want := range map[[3]string]float64{
		{"a", "admitted", "store"}: 1, {"b", "admitted", "store"}: 1, {"a", "other_refused", "store"}: 1, {"b", "refused", "store"}: 1,
	} {
		if n := testutil.ToFloat64(metrics.adds.WithLabelValues(labels[:]...)); n != want {
			t.Errorf("%v counts %v, want %v", labels, n, want)
		}
	}
	for rule, want := range map[string]float64{"a": 1, "b": 2} { // 6 more never fit into b
		if n := testutil.ToFloat64(metrics.failures.WithLabelValues(rule, "added")); n != want {
			t.Errorf("%v failures of rule %s, want %v", n, rule, want)
		}
	}
	if n := testutil.ToFloat64(metrics.storeErrors); n != 1 {
		t.Errorf("%v store errors", n)
	}
	if n := testutil.CollectAndCount(metrics.decisions); n != 2 {
		t.Errorf("%d series of decisions, want those of the call", n)
	}
}

// The number of series is bounded, even if a program makes up names of rules as it runs.
func TestRulesAreBounded(t *testing.T) {
	metrics := New()
	for i := range 2 * maxRules {
		metrics.count(fmt.Sprint("rule", i), ratelimit.ResultRefused, 0)
	}
	if n := testutil.CollectAndCount(metrics, "ratelimit_decisions_total"); n != maxRules+1 {
		t.Errorf("%d series", n)
	}
	if n := testutil.ToFloat64(metrics.decisions.WithLabelValues(other, "refused", "store")); n != maxRules {
		t.Errorf("%v are counted as others", n)
	}
}

// The metrics pass the linter of Prometheus.
func TestLint(t *testing.T) {
	metrics := New()
	metrics.count("r", ratelimit.ResultRefused, 0)
	metrics.Observe(t.Context(), &ratelimit.Event{Kind: ratelimit.EventFailed, Err: errors.New("x")})
	problems, err := testutil.CollectAndLint(metrics)
	if len(problems) > 0 || err != nil {
		t.Errorf("got %v, error %v", problems, err)
	}
	prometheus.NewPedanticRegistry().MustRegister(metrics)
}

// The gauge goes up when a call is admitted, and down when it is over.
func TestRunning(t *testing.T) {
	metrics := New()
	l := ratelimit.New(memstore.New(), ratelimit.WithObserver(metrics.Observe))
	rules := wrap.NewRules("docs.Store.Get", ratelimit.Rule{Name: "run", Algorithm: ratelimit.Concurrency, Limit: 3}, ratelimit.PerHour(100))
	begin := func() (*wrap.Taken, error) {
		return wrap.Begin(t.Context(), rules.On(l), rules, wrap.Charge{Cost: 2}, wrap.Charge{Cost: 1})
	}
	taken, err := begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := begin(); err == nil {
		t.Fatal("four permits of three are taken")
	}
	if got := testutil.ToFloat64(metrics.running.WithLabelValues("run")); got != 2 {
		t.Errorf("%v permits are taken, want 2", got)
	}
	taken.Release(t.Context())
	taken.Release(t.Context())
	if got := testutil.ToFloat64(metrics.running.WithLabelValues("run")); got != 0 {
		t.Errorf("%v permits are taken after the release", got)
	}
	if n := testutil.CollectAndCount(metrics.running); n != 1 {
		t.Errorf("%d rules count calls that run", n)
	}
}

// BenchmarkOverhead compares whole decisions in memory: without an observer, with an empty one, and with metrics. They run in turns, and the
// fastest turn of each counts.
func BenchmarkOverhead(b *testing.B) {
	bucket := ratelimit.Rule{Limit: 10_000_000, Per: time.Second, Algorithm: ratelimit.TokenBucket}
	used := ratelimit.Rule{Limit: 1, Per: 1000 * time.Hour, Algorithm: ratelimit.FixedWindow}
	other, another := bucket, bucket
	other.Name, another.Name = "other", "another"
	for _, call := range []struct {
		name  string
		rules []ratelimit.Rule
	}{
		{"one", []ratelimit.Rule{bucket}}, {"three", []ratelimit.Rule{bucket, other, another}},
		{"refused", []ratelimit.Rule{used}}, {"refused-of-three", []ratelimit.Rule{other, another, used}},
	} {
		b.Run(call.name, func(b *testing.B) { compare(b, call.rules) })
	}
}

func compare(b *testing.B, rules []ratelimit.Rule) {
	const turn = 1000 // decisions
	observers := []func(context.Context, *ratelimit.Event){nil, func(context.Context, *ratelimit.Event) {}, New().Observe}
	var decide []func()
	fastest := []time.Duration{}
	for _, observe := range observers {
		options := []ratelimit.Option{}
		if observe != nil {
			options = append(options, ratelimit.WithObserver(observe))
		}
		l, prepared, ctx := ratelimit.New(memstore.New(), options...), wrap.NewRules("docs.Store.Get", rules...), b.Context()
		subjects := make([]string, len(rules))
		for i := range subjects {
			subjects[i] = wrap.Everybody
		}
		limits := prepared.On(l)
		decide = append(decide, func() { _ = wrap.Take(ctx, limits, prepared, subjects...) })
		fastest = append(fastest, time.Hour)
	}
	for b.Loop() {
		for i := range decide {
			began := time.Now()
			for range turn {
				decide[i]()
			}
			fastest[i] = min(fastest[i], time.Since(began))
		}
	}
	for i, name := range []string{"plain", "observed", "prometheus"} {
		b.ReportMetric(float64(fastest[i].Nanoseconds())/turn, name+"-ns")
	}
}

// BenchmarkObserve measures the observer alone.
func BenchmarkObserve(b *testing.B) {
	metrics, ctx := New(), context.Background()
	e := &ratelimit.Event{Kind: ratelimit.EventAdmitted, Rules: []ratelimit.Outcome{{Rule: "docs.Store.Get"}}, Took: 300 * time.Microsecond}
	b.ReportAllocs()
	for b.Loop() {
		metrics.Observe(ctx, e)
	}
}
