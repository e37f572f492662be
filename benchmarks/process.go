package main

import (
	"context"
	"fmt"
	"log"
	"math"
	"runtime"
	"sync"
	"testing"
	"time"

	sethvargo "github.com/sethvargo/go-limiter/memorystore"
	"github.com/throttled/throttled/v2"
	throttledmem "github.com/throttled/throttled/v2/store/memstore"
	ululemem "github.com/ulule/limiter/v3/drivers/store/memory"
	"golang.org/x/time/rate"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// local is a limiter in memory. All its calls are admitted: make returns a limiter whose limit no measurement reaches.
type local struct {
	name string
	make func() (decide, error)
	kept func() (decide, error) // if not nil, returns a limiter for measurements of many keys, whose state does not expire meanwhile
}

func locals() []local {
	// A window of 50 us never has 1,000 calls, but after a stall of the machine it keeps the times of that many.
	// The bucket loses up to one permit for each call. It is too large to become empty during a benchmark.
	short, kept, endless := sliding(1000, 50*time.Microsecond), sliding(1000, long), yearly(1e15)
	ulule := func() (decide, error) { return ululeOn(ululemem.NewStore(), 1e15, time.Hour), nil }
	return []local{
		{"ours: sliding-window", oneRule(short), oneRule(kept)},
		{"ours: token-bucket", oneRule(bucket(1e7, 10*time.Second)), oneRule(bucket(1000, long))},
		{"ours: fixed-window", oneRule(fixed(1e15, time.Hour)), nil},
		{"ours: calendar", oneRule(endless), nil},
		{"ours: sliding-window and calendar", twoRules(short, endless), twoRules(kept, endless)},
		{"ours: sliding-window, by Allow", allowing(short), allowing(kept)},
		{"ours: sliding-window, generated wrapper", wrapped(short), wrapped(kept)},
		{"x/time/rate in a sync.Map", xTimeRate, nil},
		{"throttled", throttledMemory, nil},
		{"sethvargo/go-limiter", sethvargoMemory, nil},
		{"ulule/limiter", ulule, nil},
	}
}

// inProcess returns a limiter in memory with room for two rules and all keys.
func inProcess() *ratelimit.Limiter {
	return ratelimit.New(memstore.New(memstore.WithMaxKeys(2*plenty), memstore.WithMaxBytes(1<<33)))
}

func oneRule(r ratelimit.Rule) func() (decide, error) {
	return func() (decide, error) {
		rules := wrap.NewRules("sms.Sender.SendCode", r)
		limits := rules.On(inProcess())
		return func(subject string) (bool, error) { return admitted(wrap.Take(ctx, limits, rules, subject)) }, nil
	}
}

func twoRules(a, b ratelimit.Rule) func() (decide, error) {
	return func() (decide, error) {
		rules := wrap.NewRules("sms.Sender.SendCode", a, b)
		limits := rules.On(inProcess())
		return func(subject string) (bool, error) { return admitted(wrap.Take(ctx, limits, rules, subject, subject)) }, nil
	}
}

func allowing(r ratelimit.Rule) func() (decide, error) {
	return func() (decide, error) {
		limiter := inProcess()
		return func(subject string) (bool, error) {
			d, err := limiter.Allow(ctx, ratelimit.Request{Rule: r, Key: subject})
			return d.Allowed, err
		}, nil
	}
}

func wrapped(r ratelimit.Rule) func() (decide, error) {
	return func() (decide, error) {
		rules := wrap.NewRules("sms.Sender.SendCode", r)
		sender := &limitedSender{next: silent{}, limits: rules.On(inProcess()), rules: rules}
		return func(subject string) (bool, error) { return admitted(sender.SendCode(ctx, subject)) }, nil
	}
}

// limitedSender is the wrapper that is generated for //ratelimit:rule key="sms:{phone}", except that the rules are not in a variable.
type limitedSender struct {
	next interface {
		SendCode(context.Context, string) error
	}
	limits *wrap.Limits
	rules  *wrap.Rules
}

func (s *limitedSender) SendCode(ctx context.Context, phone string) error {
	if err := wrap.Take(ctx, s.limits, s.rules, "sms:"+phone); err != nil {
		return err
	}
	return s.next.SendCode(ctx, phone)
}

type silent struct{}

func (silent) SendCode(context.Context, string) error { return nil }

func xTimeRate() (decide, error) {
	var limiters sync.Map
	return func(subject string) (bool, error) {
		l, ok := limiters.Load(subject)
		if !ok {
			l, _ = limiters.LoadOrStore(subject, rate.NewLimiter(1e9, 1e9))
		}
		return l.(*rate.Limiter).Allow(), nil
	}, nil
}

func throttledMemory() (decide, error) {
	store, err := throttledmem.NewCtx(0)
	if err != nil {
		return nil, err
	}
	quota := throttled.RateQuota{MaxRate: throttled.PerDuration(1e9, time.Second), MaxBurst: 1e9}
	limiter, err := throttled.NewGCRARateLimiterCtx(store, quota)
	if err != nil {
		return nil, err
	}
	limiter.SetMaxCASAttemptsLimit(plenty) // otherwise it fails if many call at the same time
	return func(subject string) (bool, error) {
		limited, _, err := limiter.RateLimitCtx(ctx, subject, 1)
		return !limited, err
	}, nil
}

func sethvargoMemory() (decide, error) {
	store, err := sethvargo.New(&sethvargo.Config{Tokens: 1e15, Interval: time.Hour})
	if err != nil {
		return nil, err
	}
	return func(subject string) (bool, error) {
		_, _, _, ok, err := store.Take(ctx, subject)
		return ok, err
	}, nil
}

func measureProcess(_ *redisServer, e effort) ([]table, error) {
	keys := min(plenty, e.subjects/5)
	t := table{title: "A decision in process, allowed", header: []string{
		"", "ns, one hot key", "allocations", "ns in parallel", "ns, " + grouped(int64(5*keys)) + " keys", "bytes a key at " + grouped(int64(keys)),
	}}
	best := make([][2]testing.BenchmarkResult, len(locals()))
	for range e.turns {
		for i, l := range locals() {
			if err := l.run(&best[i]); err != nil {
				return nil, fmt.Errorf("%s: %w", l.name, err)
			}
		}
	}
	time.Sleep(held)
	bytes := make([]int64, len(locals()))
	for i, l := range locals() {
		var err error
		if bytes[i], err = l.bytes(keys); err != nil {
			return nil, fmt.Errorf("%s: %w", l.name, err)
		}
	}
	for i, l := range locals() {
		many, err := l.overKeys(5*keys, e)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", l.name, err)
		}
		t.add(l.name, number(nanoseconds(best[i][0])), fmt.Sprint(best[i][0].AllocsPerOp()), number(nanoseconds(best[i][1])),
			number(many), grouped(bytes[i]))
	}
	return []table{t}, nil
}

// run measures calls from one goroutine and from all cores, and keeps the fastest runs.
func (l local) run(best *[2]testing.BenchmarkResult) error {
	const phone = "13800000000"
	for i, bench := range []func(*testing.B, decide){
		func(b *testing.B, d decide) {
			for range b.N {
				mustAllow(d, phone)
			}
		},
		func(b *testing.B, d decide) {
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					mustAllow(d, phone)
				}
			})
		},
	} {
		d, err := l.make()
		if err != nil {
			return err
		}
		r := testing.Benchmark(func(b *testing.B) {
			b.ReportAllocs()
			bench(b, d)
		})
		if best[i].N == 0 || nanoseconds(r) < nanoseconds(best[i]) {
			best[i] = r
		}
	}
	return nil
}

func mustAllow(d decide, subject string) {
	if allowed, err := d(subject); err != nil || !allowed {
		log.Fatalf("%s: admitted is %t, error %v; expected to be admitted", subject, allowed, err)
	}
}

func nanoseconds(r testing.BenchmarkResult) float64 { return float64(r.T.Nanoseconds()) / float64(r.N) }

// keeping returns a limiter for measurements of many keys.
func (l local) keeping() (decide, error) {
	if l.kept != nil {
		return l.kept()
	}
	return l.make()
}

// overKeys returns the time of a call for a random one of n keys, in nanoseconds. All keys already have state.
func (l local) overKeys(n int, e effort) (float64, error) {
	d, err := l.keeping()
	if err != nil {
		return 0, err
	}
	keys := make([]string, n)
	for i := range keys {
		keys[i] = newSubject()
		mustAllow(d, keys[i])
	}
	least, i := math.Inf(1), 0
	calls := n/20 + 1
	for range e.turns {
		start := time.Now()
		for range calls {
			i = (i + 7919*7) % n
			mustAllow(d, keys[i])
		}
		least = min(least, float64(time.Since(start).Nanoseconds())/float64(calls))
	}
	return least, nil
}

// filled holds the limiters whose memory was measured. If one were dropped, its memory could be freed during the next measurement, because its
// timer may keep it alive for a while.
var filled []decide

// held is longer than such a timer.
const held = 3 * time.Second

// bytes returns how much memory each of n keys takes after one call, including the bytes of the key itself.
func (l local) bytes(n int) (int64, error) {
	d, err := l.keeping()
	if err != nil {
		return 0, err
	}
	before := heap()
	for range n {
		if allowed, err := d(newSubject()); err != nil || !allowed {
			return 0, fmt.Errorf("admitted is %t, error %v", allowed, err)
		}
	}
	filled = append(filled, d)
	return (heap() - before) / int64(n), nil
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // pools are only emptied by the second collection
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
