package otellimit

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/metric"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// Watch adds gauges of a limiter, and counters of its rules that begin at 0 as soon as a wrapper is made, before the first call. The error is the
// provider's.
//
//	ratelimit.store.up            1           1 if the store works, as this process sees it
//	ratelimit.settings            {setting}   overrides, blocks and pauses in force
//	ratelimit.settings.unusable   {setting}   overrides, blocks and pauses that cannot be read, or that a rule cannot have
//	ratelimit.settings.lost       {setting}   overrides, blocks and pauses in force that the store has lost
//	ratelimit.beat.age            s           how long ago this process last read the overrides, blocks and pauses; not for a store in this process
//	ratelimit.limit               {permit}    the limit in force for keys without settings of their own, by ratelimit.rule
//	ratelimit.pauses              {key}       keys that are paused, by ratelimit.rule and ratelimit.by: "far side", for which this process was asked;
//	                                          "operator", those of all actors and of this process's calls of Limiter.Pause
func Watch(provider metric.MeterProvider, limiter *ratelimit.Limiter) error {
	meter, errs := provider.Meter(scope), [8]error{}
	counters, err := newInstruments(meter)
	if err != nil {
		return err
	}
	gauge := func(n int, name, unit, text string) metric.Int64ObservableGauge {
		g, err := meter.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(text))
		errs[n] = err
		return g
	}
	up := gauge(0, "ratelimit.store.up", "1", "1 if the store works, as this process sees it.")
	settings := gauge(1, "ratelimit.settings", "{setting}", "Overrides, blocks and pauses in force.")
	unusable := gauge(2, "ratelimit.settings.unusable", "{setting}", "Overrides, blocks and pauses that cannot be read, or that a rule cannot have.")
	lost := gauge(3, "ratelimit.settings.lost", "{setting}", "Overrides, blocks and pauses in force that the store has lost.")
	limits := gauge(4, "ratelimit.limit", "{permit}", "Permits per window that a rule has for keys without settings of their own.")
	pauses := gauge(6, "ratelimit.pauses", "{key}", "Keys that are paused: by a far side that asked this process for it, or by an operator or this program.")
	age, err := meter.Float64ObservableGauge("ratelimit.beat.age", metric.WithUnit("s"),
		metric.WithDescription("How long ago this process last read the overrides, blocks and pauses."))
	errs[5] = err
	_, errs[7] = meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		s := limiter.Status()
		if s.StoreUp {
			o.ObserveInt64(up, 1)
		} else {
			o.ObserveInt64(up, 0)
		}
		o.ObserveInt64(settings, int64(s.Settings))
		o.ObserveInt64(unusable, int64(s.Unusable))
		o.ObserveInt64(lost, int64(s.Lost))
		if !s.Read.IsZero() {
			o.ObserveFloat64(age, time.Since(s.Read).Seconds())
		}
		counters.storeErrors.Add(ctx, 0)
		for _, r := range s.Rules {
			counters.begin(ctx, r.Name)
			o.ObserveInt64(pauses, int64(r.FarPaused), metric.WithAttributes(ruleKey.String(r.Name), byKey.String("far side")))
			o.ObserveInt64(pauses, int64(r.Paused), metric.WithAttributes(ruleKey.String(r.Name), byKey.String("operator")))
			if !r.Computed {
				o.ObserveInt64(limits, r.Limit, metric.WithAttributes(ruleKey.String(r.Name)))
			}
		}
		return nil
	}, up, settings, unusable, lost, limits, pauses, age)
	return errors.Join(errs[:]...)
}

// failing are the events by which failures are counted from 0.
var failing = []ratelimit.EventKind{
	ratelimit.EventFailed, ratelimit.EventAbandoned, ratelimit.EventRefunded, ratelimit.EventSettled, ratelimit.EventAdded,
}

// begin begins the counters of a rule, so that the first refusal and the first failure are an increase.
func (i *instruments) begin(ctx context.Context, rule string) {
	for _, result := range []ratelimit.Result{ratelimit.ResultAdmitted, ratelimit.ResultRefused, ratelimit.ResultShadowRefused} {
		i.decisions.Add(ctx, 0, i.with(series{of: byDecision, rule: rule, result: result, source: ratelimit.SourceStore}))
	}
	for _, event := range failing {
		i.failures.Add(ctx, 0, i.with(series{of: byFailure, rule: rule, event: event}))
	}
}
