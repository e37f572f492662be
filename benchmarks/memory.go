package main

import (
	"fmt"
	"time"

	"github.com/go-redis/redis_rate/v10"
)

func measureMemory(server *redisServer, e effort) ([]table, error) {
	windows, err := windowMemory(server, e.limits)
	if err != nil {
		return nil, err
	}
	others, err := subjectMemory(server, e.subjects)
	return []table{windows, others}, err
}

const perSubject = 200 // bytes, which the state of any subject may take beside its permits

// windowMemory fills sliding windows call by call.
func windowMemory(server *redisServer, limits []int64) (table, error) {
	t := table{title: "Memory of one subject's sliding window on the server, as it fills call by call: bytes", header: []string{
		"", "1 permit", "10 %", "50 %", "full", fmt.Sprintf("most for a permit, beside %d", perSubject),
		"at most, as permits replace others", "for a permit",
	}}
	for _, limit := range limits {
		row, err := fillWindow(server, limit)
		if err != nil {
			return t, err
		}
		t.add(append([]string{"limit " + grouped(limit)}, row...)...)
	}
	return t, nil
}

func fillWindow(server *redisServer, limit int64) ([]string, error) {
	if err := server.flush(); err != nil {
		return nil, err
	}
	decide := ours(oursOn(server.client), sliding(limit, long))
	subject := newSubject()
	var row []string
	worst := 0.0
	for n := int64(1); n <= limit; n++ {
		if allowed, err := decide(subject); err != nil || !allowed {
			return nil, fmt.Errorf("call %d of %d: admitted is %t, error %v", n, limit, allowed, err)
		}
		if !looksAt(n, limit) {
			continue
		}
		bytes, err := keyMemory(server)
		if err != nil {
			return nil, err
		}
		worst = max(worst, float64(bytes-perSubject)/float64(n))
		for _, shown := range []int64{1, limit / 10, limit / 2, limit} {
			if n == shown {
				row = append(row, grouped(bytes))
			}
		}
	}
	most, err := replacedWindow(server, limit)
	return append(row, number(worst), grouped(most), number(float64(most-perSubject)/float64(limit))), err
}

// looksAt says whether to look at the memory after the n-th call. To look takes longer than to call.
func looksAt(n, limit int64) bool { return n <= 1000 || n%1000 == 0 || n == limit }

// replacedWindow is the most that a window takes while each of its permits is followed by another.
func replacedWindow(server *redisServer, limit int64) (most int64, err error) {
	if err := server.flush(); err != nil {
		return 0, err
	}
	limiter, rule := oursOn(server.client), sliding(limit, steadyWindow)
	subject := newSubject()
	if _, err := oursAtOnce(limiter, limit, rule)(subject); err != nil {
		return 0, err
	}
	time.Sleep(steadyWindow)
	decide := ours(limiter, rule)
	for n := int64(1); n <= limit; n++ {
		if _, err := decide(subject); err != nil {
			return 0, err
		}
		if !looksAt(n, limit) {
			continue
		}
		bytes, err := keyMemory(server)
		if err != nil {
			return 0, err
		}
		most = max(most, bytes)
	}
	return most, nil
}

// keyMemory returns what all keys on the server take.
func keyMemory(server *redisServer) (int64, error) {
	keys, err := server.client.Keys(ctx, "*").Result()
	if err != nil {
		return 0, err
	}
	var sum int64
	for _, key := range keys {
		bytes, err := server.client.MemoryUsage(ctx, key, 0).Result()
		if err != nil {
			return 0, err
		}
		sum += bytes
	}
	return sum, nil
}

// subjectMemory is what a subject takes after one call, and each of many: these share the server's tables of keys and of
// expiries, which MEMORY USAGE leaves out.
func subjectMemory(server *redisServer, many int) (table, error) {
	limiter := oursOn(server.client)
	seldom := redis_rate.Limit{Rate: 10, Burst: 10, Period: long} // its keys outlive the run too
	ulule, err := ululeRedis(server.client, 100, time.Hour)
	t := table{title: "Memory of a subject on the server after one call: bytes", header: []string{
		"", "MEMORY USAGE", "each of " + grouped(int64(many)) + " in used_memory",
	}}
	if err != nil {
		return t, err
	}
	for _, c := range []struct {
		name   string
		decide decide
	}{
		{"redis_rate, one rule", redisRate(server.client, seldom)},
		{"redis_rate, called twice for two rules", redisRate(server.client, seldom, seldom)},
		{"ulule/limiter, one rule", ulule},
		{"ours: sliding-window", ours(limiter, sliding(100, long))},
		{"ours: token-bucket", ours(limiter, bucket(10, long))},
		{"ours: fixed-window", ours(limiter, fixed(100, long))},
		{"ours: calendar", ours(limiter, yearly(100))},
		{"ours: sliding-window and calendar", ours(limiter, sliding(100, long), yearly(100))},
	} {
		one, each, err := memoryOf(server, many, c.decide)
		if err != nil {
			return t, err
		}
		t.add(c.name, grouped(one), number(each))
	}
	return t, nil
}

func memoryOf(server *redisServer, many int, d decide) (one int64, each float64, err error) {
	if err := server.flush(); err != nil {
		return 0, 0, err
	}
	before, err := server.usedMemory()
	if err != nil {
		return 0, 0, err
	}
	for n := range many {
		if _, err := d(newSubject()); err != nil {
			return 0, 0, err
		}
		if n == 0 {
			if one, err = keyMemory(server); err != nil {
				return 0, 0, err
			}
		}
	}
	after, err := server.usedMemory()
	return one, (after - before) / float64(many), err
}
