// Package otellimit counts the decisions of rate limits for OpenTelemetry, and adds them to the current span. It counts by rule, never by key:
// keys are personal data, and callers can make any number of them.
//
//	observe, err := otellimit.Observer(otel.GetMeterProvider())
//	limiter := ratelimit.New(store, ratelimit.WithObserver(observe))
//	err = otellimit.Watch(otel.GetMeterProvider(), limiter)
//
// The metrics are
//
//	ratelimit.decisions           {decision}  what each rule did, by ratelimit.rule, ratelimit.outcome and ratelimit.source
//	ratelimit.decision.duration   s           how long a decision took, without waiting, by ratelimit.source
//	ratelimit.wait.duration       s           how long calls under a rule waited for permits, if they waited, by ratelimit.rule
//	ratelimit.adds                {add}       what each rule did to a running call that asked for more by Charge.Add; attributes as of decisions
//	ratelimit.store.errors        {error}     decisions, refunds, settlements and adds that failed in the store
//	ratelimit.failures            {failure}   calls not decided or given up; refunds, settlements, adds that failed; by ratelimit.rule and .event
//
// and those of [Watch]. A call under two rules counts for both. The span of a call gets the attributes ratelimit.outcome (admitted or refused)
// and ratelimit.source. After a refusal it also gets ratelimit.rules, and ratelimit.retry_after in seconds.
package otellimit

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

const scope = "github.com/ratelimit-go/ratelimit/contrib/otellimit"

const (
	ruleKey    = attribute.Key("ratelimit.rule")
	byKey      = attribute.Key("ratelimit.by")
	rulesKey   = attribute.Key("ratelimit.rules")
	outcomeKey = attribute.Key("ratelimit.outcome")
	sourceKey  = attribute.Key("ratelimit.source")
	eventKey   = attribute.Key("ratelimit.event")
	retryKey   = attribute.Key("ratelimit.retry_after")
)

const (
	// maxRules bounds the series, because a program may make up names of rules as it runs.
	maxRules = 1000
	other    = "other" // the name for all further rules
)

// instruments are the instruments of the metrics.
type instruments struct {
	decisions, adds, storeErrors, failures metric.Int64Counter
	running                                metric.Int64UpDownCounter
	durations, waits                       metric.Float64Histogram

	attributes sync.Map // of metric.MeasurementOption by series
	rules      sync.Map // the names of the rules that have series
	known      atomic.Int64
}

// series identifies a series of a metric.
type series struct {
	of     seriesKind
	rule   string
	result ratelimit.Result
	source ratelimit.Source
	event  ratelimit.EventKind
}

// seriesKind is which attributes a series has.
type seriesKind uint8

const (
	bySource seriesKind = iota
	byRule
	byDecision
	byFailure
)

// attributes returns the attributes of a series.
func (s series) attributes() []attribute.KeyValue {
	rule, source := ruleKey.String(s.rule), sourceKey.String(s.source.String())
	switch s.of {
	case bySource:
		return []attribute.KeyValue{source}
	case byRule:
		return []attribute.KeyValue{rule}
	case byDecision:
		return []attribute.KeyValue{rule, outcomeKey.String(s.result.String()), source}
	default:
		return []attribute.KeyValue{rule, eventKey.String(s.event.String())}
	}
}

// Observer returns an observer for ratelimit.WithObserver. Any number of limiters may use it. The error is the provider's.
func Observer(provider metric.MeterProvider) (func(context.Context, *ratelimit.Event), error) {
	i, err := newInstruments(provider.Meter(scope))
	if err != nil {
		return nil, err
	}
	return i.observe, nil
}

func newInstruments(meter metric.Meter) (*instruments, error) {
	i, errs := new(instruments), [7]error{}
	i.decisions, errs[0] = meter.Int64Counter("ratelimit.decisions",
		metric.WithUnit("{decision}"), metric.WithDescription("What each rule did to a call."))
	i.storeErrors, errs[1] = meter.Int64Counter("ratelimit.store.errors",
		metric.WithUnit("{error}"), metric.WithDescription("Decisions, refunds, settles and adds that the store failed."))
	i.failures, errs[2] = meter.Int64Counter("ratelimit.failures", metric.WithUnit("{failure}"),
		metric.WithDescription("Calls that were not decided or gave up waiting; refunds, settles and adds that failed."))
	i.durations, errs[3] = meter.Float64Histogram("ratelimit.decision.duration",
		metric.WithUnit("s"), metric.WithDescription("How long decisions took, without waiting for permits."),
		metric.WithExplicitBucketBoundaries(1e-6, 1e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 0.1, 0.25, 1))
	i.waits, errs[4] = meter.Float64Histogram("ratelimit.wait.duration",
		metric.WithUnit("s"), metric.WithDescription("How long calls under a rule waited for permits, if they waited."),
		metric.WithExplicitBucketBoundaries(0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300))
	i.running, errs[5] = meter.Int64UpDownCounter("ratelimit.running", metric.WithUnit("{permit}"),
		metric.WithDescription("Permits that calls of this process hold now under rules with algorithm=concurrency."))
	i.adds, errs[6] = meter.Int64Counter("ratelimit.adds",
		metric.WithUnit("{add}"), metric.WithDescription("What each rule did to a running call that asked for more permits."))
	return i, errors.Join(errs[:]...)
}

func (i *instruments) observe(ctx context.Context, e *ratelimit.Event) {
	if e.Kind == ratelimit.EventAdded {
		i.countAdd(ctx, e)
		return
	}
	if e.Err != nil && e.Kind != ratelimit.EventStoreLost { // the failed call also has an event of its own
		i.countError(ctx, e)
	}
	i.countRunning(ctx, e)
	if e.Waited > 0 {
		for n := range e.Rules {
			i.waits.Record(ctx, e.Waited.Seconds(), i.with(series{of: byRule, rule: e.Rules[n].Rule}))
		}
	}
	if e.Kind != ratelimit.EventAdmitted && e.Kind != ratelimit.EventRefused {
		return
	}
	i.durations.Record(ctx, e.Took.Seconds(), i.with(series{of: bySource, source: e.Source}))
	for n := range e.Rules {
		o := &e.Rules[n]
		i.decisions.Add(ctx, 1, i.with(series{of: byDecision, rule: o.Rule, result: e.Result(o), source: e.Source}))
	}
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		span.SetAttributes(attributes(e)...)
	}
}

// countAdd counts what the rules did to a call that asked for more permits, or that nobody decided that.
func (i *instruments) countAdd(ctx context.Context, e *ratelimit.Event) {
	i.countStoreError(ctx, e)
	if _, refused := errors.AsType[*ratelimit.TooManyRequestsError](e.Err); e.Err != nil && !refused {
		i.countFailure(ctx, e)
		return
	}
	for n := range e.Rules {
		o := &e.Rules[n]
		i.adds.Add(ctx, 1, i.with(series{of: byDecision, rule: o.Rule, result: e.Result(o), source: e.Source}))
	}
}

// countRunning counts what rules with algorithm=concurrency took for a call, or got back.
func (i *instruments) countRunning(ctx context.Context, e *ratelimit.Event) {
	if e.Kind != ratelimit.EventAdmitted && e.Kind != ratelimit.EventReleased && e.Kind != ratelimit.EventRefunded {
		return
	}
	for n := range e.Rules {
		if o := &e.Rules[n]; !o.Refused && o.Releases {
			i.running.Add(ctx, o.Cost-o.CostBefore, i.with(series{of: byRule, rule: o.Rule}))
		}
	}
}

func (i *instruments) countError(ctx context.Context, e *ratelimit.Event) {
	i.countStoreError(ctx, e)
	if e.Kind != ratelimit.EventAdmitted && e.Kind != ratelimit.EventRefused {
		i.countFailure(ctx, e)
	}
}

func (i *instruments) countStoreError(ctx context.Context, e *ratelimit.Event) {
	if _, ok := errors.AsType[*ratelimit.StoreError](e.Err); ok || e.Source == ratelimit.SourcePolicy {
		i.storeErrors.Add(ctx, 1)
	}
}

// countFailure counts a failure for each of its rules. One that is about no rule has the rule "".
func (i *instruments) countFailure(ctx context.Context, e *ratelimit.Event) {
	count := func(rule string) { i.failures.Add(ctx, 1, i.with(series{of: byFailure, rule: rule, event: e.Kind})) }
	if len(e.Rules) == 0 {
		count("")
	}
	for n := range e.Rules {
		if e.Kind != ratelimit.EventAbandoned || e.Rules[n].Waits { // a call gives up waiting for the rules that let it wait
			count(e.Rules[n].Rule)
		}
	}
}

// with returns the attributes of a series. They are made once.
func (i *instruments) with(s series) metric.MeasurementOption {
	known, ok := i.attributes.Load(s)
	if !ok {
		s.rule = i.label(s.rule)
		known, _ = i.attributes.LoadOrStore(s, metric.WithAttributeSet(attribute.NewSet(s.attributes()...)))
	}
	return known.(metric.MeasurementOption)
}

// label returns the name of a rule, or other if there are too many.
func (i *instruments) label(rule string) string {
	if _, ok := i.rules.Load(rule); ok || rule == "" || rule == other {
		return rule
	}
	if i.known.Add(1) > maxRules {
		i.known.Add(-1)
		return other
	}
	if _, ok := i.rules.LoadOrStore(rule, true); ok {
		i.known.Add(-1)
	}
	return rule
}

// attributes returns the attributes of a span for a decision.
func attributes(e *ratelimit.Event) []attribute.KeyValue {
	all := []attribute.KeyValue{outcomeKey.String(e.Kind.String()), sourceKey.String(e.Source.String())}
	if e.Kind != ratelimit.EventRefused {
		return all
	}
	var rules []string
	for i := range e.Rules {
		if o := &e.Rules[i]; e.Result(o) == ratelimit.ResultRefused {
			rules = append(rules, o.Rule)
		}
	}
	return append(all, rulesKey.StringSlice(rules), retryKey.Float64(e.RetryAfter.Seconds()))
}
