package main

import (
	"errors"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

const beside = 200 // bytes that the state of a subject may take in addition to its permits or slices

func memorySections(server *redisServer, e effort) []section {
	windows := section{
		title: "Memory of one subject's sliding window on the server, as it fills call by call: bytes", rounds: 1, columns: []column{
			{"1 permit", most, grouped, false}, {"full", most, grouped, false},
			{"at most, as permits replace others", most, grouped, false}, {"for a permit", most, number, false},
		},
	}
	limiter := asking(server.client)
	for _, limit := range e.limits {
		windows.cases = append(windows.cases, benchmark{"limit " + grouped(float64(limit)), func() ([]float64, error) {
			return windowMemory(server, limiter, limit)
		}})
	}
	counters := section{
		title: "Memory of one subject's sliding-counter on the server: bytes", names: "slices", rounds: 1, columns: []column{
			{"after one call", most, grouped, false}, {"for a slice, beside 200", most, number, false},
		},
	}
	for _, slices := range []int64{10, 60, 100, 1000, 10_000} {
		counter := rule(ratelimit.Rule{Limit: 100, Per: long, Algorithm: ratelimit.SlidingCounter, Slices: slices})
		counters.cases = append(counters.cases, benchmark{grouped(float64(slices)), func() ([]float64, error) {
			bytes, err := afterOneCall(server, ours(limiter, counter))
			return []float64{bytes, (bytes - beside) / float64(slices)}, err
		}})
	}
	return []section{windows, counters, subjectSection(server)}
}

// windowMemory fills a window, and then replaces all its permits.
func windowMemory(server *redisServer, limiter *ratelimit.Limiter, limit int64) ([]float64, error) {
	first, full, _, err := sizes(server, ours(limiter, sliding(limit, long)), newSubject(), limit)
	if err != nil {
		return nil, err
	}
	short, subject := sliding(limit, steadyWindow), newSubject()
	if err := oursAtOnce(limiter, limit, short).expect(true, subject); err != nil {
		return nil, err
	}
	time.Sleep(steadyWindow)
	_, _, largest, err := sizes(server, ours(limiter, short), subject, limit)
	return []float64{first, full, largest, (largest - beside) / float64(limit)}, err
}

// sizes makes calls. It returns how much memory the subject takes after the first and the last call, and the most that it takes meanwhile. If there
// are many calls, sizes does not measure after each one, because measuring takes longer than a call.
func sizes(server *redisServer, d decide, subject string, calls int64) (first, last, largest float64, err error) {
	for n := int64(1); n <= calls; n++ {
		if err := d.expect(true, subject); err != nil {
			return 0, 0, 0, err
		}
		if n > 1000 && n%1000 != 0 && n != calls {
			continue
		}
		if last, err = memoryOf(server, subject); err != nil {
			return 0, 0, 0, err
		}
		if n == 1 {
			first = last
		}
		largest = max(largest, last)
	}
	return first, last, largest, nil
}

// memoryOf returns how much memory all keys of a subject take. A key that has expired takes nothing.
func memoryOf(server *redisServer, subject string) (sum float64, err error) {
	keys, err := server.client.Keys(ctx, "*"+subject+"*").Result()
	if err != nil {
		return 0, err
	}
	for _, key := range keys {
		bytes, err := server.client.MemoryUsage(ctx, key, 0).Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			return 0, err
		}
		sum += float64(bytes)
	}
	return sum, nil
}

func afterOneCall(server *redisServer, d decide) (float64, error) {
	bytes, _, _, err := sizes(server, d, newSubject(), 1)
	return bytes, err
}

func subjectSection(server *redisServer) section {
	s := section{
		title: "Memory of a subject on the server after one call: bytes", rounds: 1, columns: []column{{"MEMORY USAGE", most, grouped, false}},
	}
	seldom := redis_rate.Limit{Rate: 10, Burst: 10, Period: long} // so that its keys outlive the run
	limiter := asking(server.client)
	for _, l := range []named{
		{redisRateOne, redisRate(server.client, seldom)},
		{"redis_rate, called twice for two rules", redisRate(server.client, seldom, seldom)},
		{"ulule/limiter, one rule", ululeRedis(server.client, 100, time.Hour)},
		{"ours: sliding-window", ours(limiter, sliding(100, long))},
		{"ours: token-bucket", ours(limiter, bucket(10, long))},
		{"ours: leaky-bucket", ours(limiter, leaky(10, long))},
		{"ours: fixed-window", ours(limiter, fixed(100, long))},
		{"ours: calendar", ours(limiter, yearly(100))},
		{both, ours(limiter, sliding(100, long), yearly(100))},
	} {
		s.cases = append(s.cases, benchmark{l.name, func() ([]float64, error) {
			bytes, err := afterOneCall(server, l.decide)
			return []float64{bytes}, err
		}})
	}
	return s
}
