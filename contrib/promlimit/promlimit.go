// Package promlimit counts the decisions of rate limits for Prometheus. It counts by rule, never by key: keys are personal data, and callers can
// make any number of them.
//
//	metrics := promlimit.New()
//	prometheus.MustRegister(metrics)
//	limiter := ratelimit.New(store, ratelimit.WithObserver(metrics.Observe))
//	metrics.Watch(limiter)
package promlimit

import (
	"context"
	"errors"
	"maps"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// The numbers of results and sources, by which decisions are counted.
const (
	results = int(ratelimit.ResultOtherRefused) + 1
	sources = int(ratelimit.SourcePause) + 1
)

const (
	// maxRules bounds the series, because a program may make up names of rules as it runs.
	maxRules = 1000
	other    = "other" // the name for all further rules
)

// Collector is a prometheus.Collector. The metrics are
//
//	ratelimit_decisions_total{rule,outcome,source}       what each rule did: admitted, refused, shadow_refused, other_refused
//	ratelimit_decision_duration_seconds{source}          histogram: how long a decision took, without waiting
//	ratelimit_wait_seconds{rule}                         histogram: how long calls under a rule waited for permits, if they waited
//	ratelimit_adds_total{rule,outcome,source}            what each rule did to a running call that asked for more permits by Charge.Add
//	ratelimit_store_errors_total                         decisions, refunds, settles and adds that the store failed
//	ratelimit_failures_total{rule,event}                 calls not decided or given up; refunds, settles, releases and adds that failed
//	ratelimit_running{rule}                              gauge: permits that calls of this process hold now under algorithm=concurrency
//
// and those of [Collector.Watch]. A call under two rules counts for both. The source is store, memory, lease, policy, block or pause: see [ratelimit.Source]. Beyond 1,000 rules the label is "other".
type Collector struct {
	decisions   *prometheus.CounterVec
	adds        *prometheus.CounterVec
	durations   *prometheus.HistogramVec
	waits       *prometheus.HistogramVec
	storeErrors prometheus.Counter
	failures    *prometheus.CounterVec
	running     *prometheus.GaugeVec

	took [sources]prometheus.Observer
	mu   sync.Mutex
	// rules are the counters that are in use. The map is replaced as a whole.
	rules   atomic.Pointer[map[string]*counters]
	watched atomic.Pointer[ratelimit.Limiter]
}

// counters are the counters of one rule. Each is made when it is first needed.
type counters [results][sources]atomic.Pointer[prometheus.Counter]

// New returns a collector. Any number of limiters may use it.
func New() *Collector {
	c := &Collector{
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ratelimit_decisions_total", Help: "What each rule did to a call.",
		}, []string{"rule", "outcome", "source"}),
		adds: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ratelimit_adds_total", Help: "What each rule did to a running call that asked for more permits.",
		}, []string{"rule", "outcome", "source"}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "ratelimit_decision_duration_seconds", Help: "How long decisions took, without waiting for permits.",
			Buckets: []float64{1e-6, 1e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 0.1, 0.25, 1},
		}, []string{"source"}),
		waits: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "ratelimit_wait_seconds", Help: "How long calls under a rule waited for permits, if they waited.",
			Buckets: []float64{0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300},
		}, []string{"rule"}),
		storeErrors: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "ratelimit_store_errors_total", Help: "Decisions, refunds, settles and adds that the store failed.",
		}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ratelimit_failures_total", Help: "Calls that were not decided or gave up waiting; refunds, settles and adds that failed.",
		}, []string{"rule", "event"}),
		running: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "ratelimit_running", Help: "Permits that calls of this process hold now under rules with algorithm=concurrency.",
		}, []string{"rule"}),
	}
	for source := range sources {
		c.took[source] = c.durations.WithLabelValues(ratelimit.Source(source).String())
	}
	c.rules.Store(&map[string]*counters{})
	return c
}

func (c *Collector) all() []prometheus.Collector {
	return []prometheus.Collector{c.decisions, c.adds, c.durations, c.waits, c.storeErrors, c.failures, c.running}
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(to chan<- *prometheus.Desc) {
	for _, part := range c.all() {
		part.Describe(to)
	}
	for _, g := range gauges {
		to <- g.desc
	}
	to <- pauses
	to <- limits
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	if l := c.watched.Load(); l != nil {
		s := l.Status()
		c.collect(&s, to)
	}
	for _, part := range c.all() {
		part.Collect(to)
	}
}

// Observe is for ratelimit.WithObserver.
func (c *Collector) Observe(_ context.Context, e *ratelimit.Event) {
	if e.Kind == ratelimit.EventAdded {
		c.countAdd(e)
		return
	}
	if e.Err != nil && e.Kind != ratelimit.EventStoreLost { // the failed call also has an event of its own
		c.countError(e)
	}
	c.countRunning(e)
	if e.Waited > 0 {
		for i := range e.Rules {
			rule, _ := c.of(e.Rules[i].Rule)
			c.waits.WithLabelValues(rule).Observe(e.Waited.Seconds())
		}
	}
	if e.Kind != ratelimit.EventAdmitted && e.Kind != ratelimit.EventRefused {
		return
	}
	source := min(int(e.Source), sources-1)
	c.took[source].Observe(e.Took.Seconds())
	for i := range e.Rules {
		o := &e.Rules[i]
		c.count(o.Rule, e.Result(o), source)
	}
}

// countAdd counts what the rules did to a call that asked for more permits, or that nobody decided that.
func (c *Collector) countAdd(e *ratelimit.Event) {
	c.countStoreError(e)
	if _, refused := errors.AsType[*ratelimit.TooManyRequestsError](e.Err); e.Err != nil && !refused {
		c.countFailure(e)
		return
	}
	for i := range e.Rules {
		o := &e.Rules[i]
		rule, _ := c.of(o.Rule)
		c.adds.WithLabelValues(rule, e.Result(o).String(), e.Source.String()).Inc()
	}
}

// countRunning counts what rules with algorithm=concurrency took for a call, or got back.
func (c *Collector) countRunning(e *ratelimit.Event) {
	if e.Kind != ratelimit.EventAdmitted && e.Kind != ratelimit.EventReleased && e.Kind != ratelimit.EventRefunded {
		return
	}
	for i := range e.Rules {
		if o := &e.Rules[i]; !o.Refused && o.Releases {
			rule, _ := c.of(o.Rule)
			c.running.WithLabelValues(rule).Add(float64(o.Cost - o.CostBefore))
		}
	}
}

func (c *Collector) countError(e *ratelimit.Event) {
	c.countStoreError(e)
	if e.Kind != ratelimit.EventAdmitted && e.Kind != ratelimit.EventRefused {
		c.countFailure(e)
	}
}

func (c *Collector) countStoreError(e *ratelimit.Event) {
	if _, ok := errors.AsType[*ratelimit.StoreError](e.Err); ok || e.Source == ratelimit.SourcePolicy {
		c.storeErrors.Inc()
	}
}

// countFailure counts a failure for each of its rules. One that is about no rule has the label "".
func (c *Collector) countFailure(e *ratelimit.Event) {
	if len(e.Rules) == 0 {
		c.failures.WithLabelValues("", e.Kind.String()).Inc()
	}
	for i := range e.Rules {
		if e.Kind != ratelimit.EventAbandoned || e.Rules[i].Waits { // a call gives up waiting for the rules that let it wait
			rule, _ := c.of(e.Rules[i].Rule)
			c.failures.WithLabelValues(rule, e.Kind.String()).Inc()
		}
	}
}

func (c *Collector) count(rule string, result ratelimit.Result, source int) {
	rule, of := c.of(rule)
	counter := of[result][source].Load()
	if counter == nil {
		made := c.decisions.WithLabelValues(rule, result.String(), ratelimit.Source(source).String())
		counter = &made
		of[result][source].Store(counter)
	}
	(*counter).Inc()
}

// of returns the label of a rule, and its counters.
func (c *Collector) of(rule string) (string, *counters) {
	if of := (*c.rules.Load())[rule]; of != nil {
		return rule, of
	}
	return c.add(rule)
}

// add makes counters for a rule that has none yet. It returns them with the rule's label, which is other if there are too many rules.
func (c *Collector) add(rule string) (string, *counters) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := *c.rules.Load()
	if len(known) >= maxRules {
		rule = other
	}
	if of := known[rule]; of != nil {
		return rule, of
	}
	more := maps.Clone(known)
	more[rule] = new(counters)
	c.rules.Store(&more)
	return rule, more[rule]
}
