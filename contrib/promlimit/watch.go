package promlimit

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// gauge is a metric of a limiter's status. It is not there if the value is negative.
type gauge struct {
	desc  *prometheus.Desc
	value func(*ratelimit.Status) float64
}

func newGauge(name, help string, value func(*ratelimit.Status) float64) gauge {
	return gauge{prometheus.NewDesc(name, help, nil, nil), value}
}

var (
	gauges = []gauge{
		newGauge("ratelimit_store_up", "1 if the store works, as this process sees it.", func(s *ratelimit.Status) float64 {
			if s.StoreUp {
				return 1
			}
			return 0
		}),
		newGauge("ratelimit_settings", "Overrides, blocks and pauses in force.", func(s *ratelimit.Status) float64 { return float64(s.Settings) }),
		newGauge("ratelimit_settings_unusable", "Overrides, blocks and pauses that cannot be read, or that a rule cannot have.",
			func(s *ratelimit.Status) float64 { return float64(s.Unusable) }),
		newGauge("ratelimit_settings_lost", "Overrides, blocks and pauses in force that the store has lost.",
			func(s *ratelimit.Status) float64 { return float64(s.Lost) }),
		newGauge("ratelimit_beat_age_seconds", "How long ago this process last read the overrides, blocks and pauses.", func(s *ratelimit.Status) float64 {
			if s.Read.IsZero() {
				return -1
			}
			return time.Since(s.Read).Seconds()
		}),
	}
	pauses = prometheus.NewDesc("ratelimit_pauses", "Keys that are paused: by a far side that asked this process for it, or by an operator or this program.",
		[]string{"rule", "by"}, nil)
	limits = prometheus.NewDesc("ratelimit_limit", "Permits per window that a rule has for keys without settings of their own.", []string{"rule"}, nil)
)

// Watch adds gauges of a limiter, and counters of its rules that begin at 0 as soon as a wrapper is made, before the first call. A collector
// watches one limiter, the last one. For another limiter, make another collector, and register it by prometheus.WrapRegistererWith. The gauges are
//
//	ratelimit_store_up            1 if the store works, as this process sees it
//	ratelimit_settings            overrides, blocks and pauses in force
//	ratelimit_settings_unusable   overrides, blocks and pauses that cannot be read, or that a rule cannot have
//	ratelimit_settings_lost       overrides, blocks and pauses in force that the store has lost
//	ratelimit_beat_age_seconds    how long ago this process last read the overrides, blocks and pauses; not for a store in this process
//	ratelimit_limit{rule}         the limit in force, for keys without settings of their own
//	ratelimit_pauses{rule,by}     keys that are paused: by "far side", those for which this process was asked; by "operator", those of all
//	                              actors and of this process's calls of Limiter.Pause
func (c *Collector) Watch(limiter *ratelimit.Limiter) { c.watched.Store(limiter) }

// failing are the events by which failures are counted from 0.
var failing = []ratelimit.EventKind{
	ratelimit.EventFailed, ratelimit.EventAbandoned, ratelimit.EventRefunded, ratelimit.EventSettled, ratelimit.EventAdded,
}

// collect collects the gauges, and begins the counters of the rules.
func (c *Collector) collect(s *ratelimit.Status, to chan<- prometheus.Metric) {
	for _, g := range gauges {
		if value := g.value(s); value >= 0 {
			to <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, value)
		}
	}
	paused := map[string][2]int{} // several rules may count as other
	for _, r := range s.Rules {
		rule, _ := c.of(r.Name)
		paused[rule] = [2]int{paused[rule][0] + r.FarPaused, paused[rule][1] + r.Paused}
		for _, result := range []ratelimit.Result{ratelimit.ResultAdmitted, ratelimit.ResultRefused, ratelimit.ResultShadowRefused} {
			c.decisions.WithLabelValues(rule, result.String(), ratelimit.SourceStore.String())
		}
		for _, event := range failing {
			c.failures.WithLabelValues(rule, event.String())
		}
		if !r.Computed && rule != other {
			to <- prometheus.MustNewConstMetric(limits, prometheus.GaugeValue, float64(r.Limit), rule)
		}
	}
	for rule, n := range paused {
		to <- prometheus.MustNewConstMetric(pauses, prometheus.GaugeValue, float64(n[0]), rule, "far side")
		to <- prometheus.MustNewConstMetric(pauses, prometheus.GaugeValue, float64(n[1]), rule, "operator")
	}
}
