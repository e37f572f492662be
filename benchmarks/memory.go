package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

func measureMemory(server *redisServer, e effort) ([]table, error) {
	windows, err := windowMemory(server, e.limits)
	if err != nil {
		return nil, err
	}
	members, err := memberMemory(server, e.limits)
	if err != nil {
		return nil, err
	}
	slices, err := sliceMemory(server, e.limits)
	if err != nil {
		return nil, err
	}
	subjects, err := subjectMemory(server, e.subjects)
	return []table{windows, members, slices, subjects}, err
}

const perSubject = 200 // bytes that the state of a subject may take in addition to its permits

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
	decide := ours(oursAsking(server.client), sliding(limit, long))
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
		bytes, err := keyMemory(server, subject)
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

// looksAt reports whether to measure the memory after the n-th call. Measuring takes longer than a call.
func looksAt(n, limit int64) bool { return n <= 1000 || n%1000 == 0 || n == limit }

// replacedWindow returns the largest size of a window while new permits replace all its permits.
func replacedWindow(server *redisServer, limit int64) (most int64, err error) {
	if err := server.flush(); err != nil {
		return 0, err
	}
	limiter, rule := oursAsking(server.client), sliding(limit, steadyWindow)
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
		bytes, err := keyMemory(server, subject)
		if err != nil {
			return 0, err
		}
		most = max(most, bytes)
	}
	return most, nil
}

// keyMemory returns how much memory all keys of a subject take.
func keyMemory(server *redisServer, subject string) (int64, error) {
	keys, err := server.client.Keys(ctx, "*{"+subject+"}*").Result()
	if err != nil {
		return 0, err
	}
	return usage(server, keys)
}

// usage returns how much memory keys take. A key that has expired takes nothing.
func usage(server *redisServer, keys []string) (sum int64, err error) {
	for _, key := range keys {
		bytes, err := server.client.MemoryUsage(ctx, key, 0).Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			return 0, err
		}
		sum += bytes
	}
	return sum, nil
}
