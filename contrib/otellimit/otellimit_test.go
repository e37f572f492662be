package otellimit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/limittest"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
)

// open returns an observer and a reader of its metrics.
func open(t testing.TB) (func(context.Context, *ratelimit.Event), *metric.ManualReader) {
	reader := metric.NewManualReader()
	observe, err := Observer(metric.NewMeterProvider(metric.WithReader(reader)))
	if err != nil {
		t.Fatal(err)
	}
	return observe, reader
}

// read returns the metrics as lines, without times.
func read(t *testing.T, reader *metric.ManualReader) []string {
	var all metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &all); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, m := range all.ScopeMetrics[0].Metrics {
		switch data := m.Data.(type) {
		case metricdata.Sum[int64]:
			for _, p := range data.DataPoints {
				lines = append(lines, fmt.Sprintf("%s %s %d", m.Name, labels(p.Attributes), p.Value))
			}
		case metricdata.Gauge[int64]:
			for _, p := range data.DataPoints {
				lines = append(lines, fmt.Sprintf("%s %s %d", m.Name, labels(p.Attributes), p.Value))
			}
		case metricdata.Histogram[float64]:
			for _, p := range data.DataPoints {
				lines = append(lines, fmt.Sprintf("%s %s %d in %v%s", m.Name, labels(p.Attributes), p.Count, p.Sum, m.Unit))
			}
		}
	}
	slices.Sort(lines)
	return lines
}

func labels(set attribute.Set) string {
	var all []string
	for _, a := range set.ToSlice() {
		all = append(all, strings.TrimPrefix(string(a.Key), "ratelimit.")+"="+fmt.Sprint(a.Value.AsInterface()))
	}
	return strings.Join(all, ",")
}

func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		observe, reader := open(t)
		l, ctx := ratelimit.New(memstore.New(), ratelimit.WithObserver(observe)), context.Background()
		login := ratelimit.Request{Rule: ratelimit.Rule{Name: "login", Limit: 2, Per: time.Minute}, Key: "+4915112345678"}
		try := ratelimit.Request{Rule: ratelimit.Rule{Name: "try", Limit: 1, Per: time.Minute, Mode: ratelimit.ModeShadow}}
		for range 3 {
			_, _ = l.Allow(ctx, login, try)
		}
		if _, err := l.Wait(ctx, login); err != nil {
			t.Fatal(err)
		}
		_, _ = l.Allow(ctx, ratelimit.Request{Rule: login.Rule, Cost: -1})
		observe(ctx, &ratelimit.Event{Kind: ratelimit.EventStoreLost, Err: &ratelimit.StoreError{Err: errors.New("gone")}}) // no failure by itself
		grown := []ratelimit.Outcome{{Rule: "login", CostBefore: 1, Cost: 2}}
		observe(ctx, &ratelimit.Event{Kind: ratelimit.EventAdded, Rules: grown})
		observe(ctx, &ratelimit.Event{Kind: ratelimit.EventAdded, Rules: grown, Err: &ratelimit.TooManyRequestsError{}})
		observe(ctx, &ratelimit.Event{Kind: ratelimit.EventAdded, Rules: grown, Err: &ratelimit.KeyError{}})
		observe(ctx, &ratelimit.Event{Kind: ratelimit.EventRefunded, Err: &ratelimit.StoreError{Err: errors.New("gone")}})
		want := []string{
			"ratelimit.adds outcome=admitted,rule=login,source=store 1",
			"ratelimit.adds outcome=other_refused,rule=login,source=store 1",
			"ratelimit.decision.duration source=store 4 in 0s",
			"ratelimit.decisions outcome=admitted,rule=login,source=store 3",
			"ratelimit.decisions outcome=admitted,rule=try,source=store 1",
			"ratelimit.decisions outcome=refused,rule=login,source=store 1",
			"ratelimit.decisions outcome=shadow_refused,rule=try,source=store 2",
			"ratelimit.failures event=added,rule=login 1",
			"ratelimit.failures event=failed,rule=login 1",
			"ratelimit.failures event=refunded,rule= 1",
			"ratelimit.store.errors  1",
			"ratelimit.wait.duration rule=login 1 in 60s",
		}
		if got := read(t, reader); !slices.Equal(got, want) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}

// The gauges show the limits and the settings in force, and whether the store works. Counters of a rule are 0 before its first call.
func TestWatch(t *testing.T) {
	reader, store := metric.NewManualReader(), limittest.NewOutage(limittest.NewClock())
	provider := metric.NewMeterProvider(metric.WithReader(reader))
	observe, err := Observer(provider)
	if err != nil {
		t.Fatal(err)
	}
	l := ratelimit.New(store, ratelimit.WithLogger(slog.New(slog.DiscardHandler)), ratelimit.WithObserver(observe))
	if err := Watch(provider, l); err != nil {
		t.Fatal(err)
	}
	login := ratelimit.Rule{Name: "login", Limit: 2, Per: time.Minute}
	if err := l.Check(login); err != nil {
		t.Fatal(err)
	}
	five := int64(5)
	for rule, v := range map[string]ratelimit.Override{"login": {Limit: &five}, "other": {Limit: &five}} {
		if err := l.Overrides().Set(t.Context(), rule, v); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Pause(t.Context(), time.Hour, ratelimit.Request{Rule: login, Key: "ann"}); err != nil {
		t.Fatal(err)
	}
	want := func(up, failed int) {
		t.Helper()
		want := []string{
			"ratelimit.decisions outcome=admitted,rule=login,source=store 0", "ratelimit.decisions outcome=refused,rule=login,source=store 0",
			"ratelimit.decisions outcome=shadow_refused,rule=login,source=store 0", "ratelimit.failures event=abandoned,rule=login 0",
			"ratelimit.failures event=added,rule=login 0",
			fmt.Sprint("ratelimit.failures event=failed,rule=login ", failed), "ratelimit.failures event=refunded,rule=login 0",
			"ratelimit.failures event=settled,rule=login 0", "ratelimit.limit rule=login 5",
			"ratelimit.pauses by=far side,rule=login 0", "ratelimit.pauses by=operator,rule=login 1", "ratelimit.settings  3", "ratelimit.settings.lost  0",
			"ratelimit.settings.unusable  0", fmt.Sprint("ratelimit.store.errors  ", failed), fmt.Sprint("ratelimit.store.up  ", up),
		}
		if got := read(t, reader); !slices.Equal(got, want) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	want(1, 0)
	store.Begin(errors.New("away"))
	_, _ = l.Allow(t.Context(), ratelimit.Request{Rule: login})
	want(0, 1)
}

// The level that refuses a call has the refusal, and no other one.
func TestLevels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the clock stands still
		observe, reader := open(t)
		l, ctx := ratelimit.New(memstore.New(), ratelimit.WithObserver(observe)), context.Background()
		org := ratelimit.Request{Rule: ratelimit.Rule{Name: "org", Limit: 100_000, Cron: "@daily"}, Cost: 9_000}
		team := ratelimit.Request{Rule: ratelimit.Rule{Name: "team", Limit: 50_000, Per: time.Minute}, Cost: 9_000}
		user := ratelimit.Request{Rule: ratelimit.Rule{Name: "user", Limit: 20_000, Per: time.Minute}, Cost: 9_000}
		for range 5 {
			_, _ = l.Allow(ctx, org, team, user)
		}
		want := []string{
			"ratelimit.decisions outcome=admitted,rule=org,source=store 2",
			"ratelimit.decisions outcome=admitted,rule=team,source=store 2",
			"ratelimit.decisions outcome=admitted,rule=user,source=store 2",
			"ratelimit.decisions outcome=other_refused,rule=org,source=store 3",
			"ratelimit.decisions outcome=other_refused,rule=team,source=store 3",
			"ratelimit.decisions outcome=refused,rule=user,source=store 3",
		}
		got := slices.DeleteFunc(read(t, reader), func(line string) bool { return !strings.HasPrefix(line, "ratelimit.decisions ") })
		if !slices.Equal(got, want) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}

// A span gets the result of its call.
func TestSpan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spans := tracetest.NewSpanRecorder()
		tracer := trace.NewTracerProvider(trace.WithSpanProcessor(spans)).Tracer("")
		observe, _ := open(t)
		l := ratelimit.New(memstore.New(), ratelimit.WithObserver(observe))
		for range 2 {
			ctx, span := tracer.Start(context.Background(), "call")
			_, _ = l.Allow(ctx, ratelimit.Request{Rule: ratelimit.Rule{Name: "login", Limit: 1, Per: time.Minute}, Key: "ann"})
			span.End()
		}
		for i, want := range []string{"outcome=admitted,source=store", "outcome=refused,retry_after=60,rules=[login],source=store"} {
			if got := labels(attribute.NewSet(spans.Ended()[i].Attributes()...)); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
	})
}

// The number of series is bounded, even if a program makes up names of rules as it runs.
func TestRulesAreBounded(t *testing.T) {
	observe, reader := open(t)
	for i := range 2 * maxRules {
		observe(t.Context(), &ratelimit.Event{Rules: []ratelimit.Outcome{{Rule: fmt.Sprint("rule", i)}}})
	}
	decisions := 0
	for _, line := range read(t, reader) {
		if strings.HasPrefix(line, "ratelimit.decisions ") {
			decisions++
		}
	}
	if decisions != maxRules+1 {
		t.Errorf("%d series", decisions)
	}
}

func BenchmarkObserve(b *testing.B) {
	observe, _ := open(b)
	e := &ratelimit.Event{Kind: ratelimit.EventAdmitted, Rules: []ratelimit.Outcome{{Rule: "docs.Store.Get"}}, Took: 300 * time.Microsecond}
	b.ReportAllocs()
	for b.Loop() {
		observe(b.Context(), e)
	}
}

// The page names every metric with its unit, and every attribute.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	observe, reader := open(t)
	for _, kind := range []ratelimit.EventKind{ratelimit.EventAdmitted, ratelimit.EventFailed} {
		observe(t.Context(), &ratelimit.Event{
			Kind: kind, Err: &ratelimit.StoreError{Err: errors.New("gone")}, Waited: time.Second, Rules: []ratelimit.Outcome{{Rule: "r", Window: "concurrency:1m", Cost: 1, Releases: true}},
		})
	}
	observe(t.Context(), &ratelimit.Event{Kind: ratelimit.EventAdded, Rules: []ratelimit.Outcome{{Rule: "r"}}})
	watched, l := metric.NewManualReader(), ratelimit.New(memstore.New())
	if err := errors.Join(l.Check(ratelimit.PerSecond(1)), Watch(metric.NewMeterProvider(metric.WithReader(watched)), l)); err != nil {
		t.Fatal(err)
	}
	var all, gauges metricdata.ResourceMetrics
	if err := errors.Join(reader.Collect(t.Context(), &all), watched.Collect(t.Context(), &gauges)); err != nil {
		t.Fatal(err)
	}
	metrics := slices.Concat(all.ScopeMetrics[0].Metrics, gauges.ScopeMetrics[0].Metrics)
	if n := len(metrics); n != 7+6+3 { // a store in process has no beat; three counters begin
		t.Errorf("%d metrics", n)
	}
	for _, m := range metrics {
		if row := "| `" + m.Name + "` | `" + m.Unit + "` |"; !strings.Contains(string(page), row) {
			t.Errorf("docs/metrics.md has no row %s", row)
		}
	}
	for _, key := range []attribute.Key{ruleKey, rulesKey, outcomeKey, sourceKey, eventKey, retryKey, byKey} {
		if !strings.Contains(string(page), "`"+string(key)+"`") {
			t.Errorf("docs/metrics.md does not name %s", key)
		}
	}
}
