package main

import (
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// far is a service of others. It serves limit requests in each window of its clock, and answers the others with 429 and a Retry-After.
// In the first three windows somebody else uses a third of the limit.
type far struct {
	limit int
	per   time.Duration
	began time.Time

	mu   sync.Mutex
	seen []part // parts of windows
}

// part is what the service saw in a tenth of a window.
type part struct{ served, refused int }

const parts = 10

// ServeHTTP implements http.Handler.
func (f *far) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	age := time.Since(f.began)
	window := int(age / f.per)
	now := int(age * parts / f.per)
	f.reach(now)
	left := f.limit - f.total(window).served
	if window < 3 {
		left -= f.limit / 3
	}
	if left <= 0 {
		f.seen[now].refused++
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil((f.per - age%f.per).Seconds()))))
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	f.seen[now].served++
}

// reach makes seen long enough. The caller holds the lock.
func (f *far) reach(now int) {
	for len(f.seen) <= now {
		f.seen = append(f.seen, part{})
	}
}

// total adds up the parts of windows. The caller holds the lock.
func (f *far) total(windows ...int) (sum part) {
	for _, window := range windows {
		f.reach(window*parts + parts - 1)
		for _, p := range f.seen[window*parts : (window+1)*parts] {
			sum.served += p.served
			sum.refused += p.refused
		}
	}
	return sum
}
