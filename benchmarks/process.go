package main

import (
	"math"
	"runtime"
	"time"

	ululemem "github.com/ulule/limiter/v3/drivers/store/memory"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// local is a limiter in this process. It admits all calls of a measurement.
type local struct {
	name string
	make func() decide
}

// own returns a limiter of this module.
func own(name string, rules ...ratelimit.Rule) local {
	return local{"ours: " + name, func() decide { return ours(inProcess(), rules...) }}
}

// peers are the others.
var peers = []local{
	{"x/time/rate in a sync.Map", xTimeRate},
	{"throttled", throttledMemory},
	{"sethvargo/go-limiter", sethvargoMemory},
	{"ulule/limiter", func() decide { return ululeOn(ululemem.NewStore(), 1e15, time.Hour) }},
}

func processSections(_ *redisServer, e effort) []section {
	// A window of 50 us never has 1,000 calls, but after a stall of the machine it keeps the times of that many.
	// The bucket loses up to one permit for each call. It is too large to become empty during a turn.
	short, kept, endless := sliding(1000, 50*time.Microsecond), sliding(1000, long), yearly(1e15)
	hot := section{
		title: "A decision in process, allowed", rounds: e.turns, columns: []column{
			{"ns, one hot key", least, number, false}, {"allocations", least, grouped, false},
		},
	}
	for _, l := range append([]local{
		own("sliding-window", short), own("token-bucket", bucket(1e7, 10*time.Second)), own("fixed-window", fixed(1e15, time.Hour)),
		own("calendar", endless), own("sliding-window and calendar", short, endless),
	}, peers...) {
		hot.cases = append(hot.cases, benchmark{l.name, func() ([]float64, error) { return oneKey(l.make(), e.hot) }})
	}
	many := section{
		title: "Memory of a key in process: bytes", rounds: 1, columns: []column{{"mean of " + grouped(float64(e.keys)), most, grouped, false}},
	}
	for _, l := range append([]local{ // their state does not expire during the measurement
		own("sliding-window", kept), own("token-bucket", bucket(1000, long)), own("fixed-window", fixed(1e15, time.Hour)),
		own("calendar", endless), own("sliding-window and calendar", kept, endless),
	}, peers...) {
		many.cases = append(many.cases, benchmark{l.name, func() ([]float64, error) { return keyMemory(l.make(), e.keys) }})
	}
	return []section{hot, many}
}

// oneKey makes calls of one key. It returns the time of a call, in nanoseconds, and its allocations.
func oneKey(d decide, calls int) ([]float64, error) {
	const phone = "13800000000"
	if err := d.expect(true, phone); err != nil {
		return nil, err
	}
	var start, end runtime.MemStats
	runtime.ReadMemStats(&start)
	began := time.Now()
	for range calls {
		if err := d.expect(true, phone); err != nil {
			return nil, err
		}
	}
	took := time.Since(began)
	runtime.ReadMemStats(&end)
	allocations := math.Floor(float64(end.Mallocs-start.Mallocs) / float64(calls)) // others allocate now and then
	return []float64{float64(took.Nanoseconds()) / float64(calls), allocations}, nil
}

// filled holds the limiters whose memory was measured. If one were dropped, its memory could be freed during the next measurement.
var filled []decide

// keyMemory returns how much memory each of n keys takes after one call, including the bytes of the key itself.
func keyMemory(d decide, n int) ([]float64, error) {
	start := heap()
	for range n {
		if err := d.expect(true, newSubject()); err != nil {
			return nil, err
		}
	}
	filled = append(filled, d)
	return []float64{float64(heap()-start) / float64(n)}, nil
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // pools are only emptied by the second collection
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
