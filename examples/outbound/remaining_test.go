package main

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/httplimit"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
)

// frugal is a far side that serves limit requests in a window, which begins with its first request, and tells after each what is left.
type frugal struct {
	mu      sync.Mutex
	limit   int
	per     time.Duration
	ends    time.Time // of the window
	left    int
	served  int
	refused int
}

func (f *frugal) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	if !now.Before(f.ends) {
		f.ends, f.left = now.Add(f.per), f.limit
	}
	w.Header().Set("X-RateLimit-Reset", strconv.FormatFloat(f.ends.Sub(now).Seconds(), 'f', 9, 64))
	if f.left == 0 {
		f.refused++
		w.Header().Set("X-RateLimit-Remaining", "0")
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	f.left--
	f.served++
	w.Header().Set("X-RateLimit-Remaining", strconv.Itoa(f.left))
}

// Two programs share an account of a far side. With WithRemaining none of them asks after the far side has said that nothing is left, until more is there.
func TestTwoProgramsShareAnAccount(t *testing.T) {
	server := redistest.Start(t)
	side := &frugal{limit: 5, per: 500 * time.Millisecond}
	address := httptest.NewServer(side)
	defer address.Close()
	rules := []ratelimit.Rule{{Name: "far", Limit: 1000, Per: time.Second, Wait: time.Minute}}
	clients := make([]*http.Client, 2)
	for i := range clients {
		db := redis.NewClient(&redis.Options{Addr: server.Addr, ReadTimeout: time.Minute})
		t.Cleanup(func() { _ = db.Close() })
		limiter := ratelimit.New(redisstore.New(db, redisstore.WithTimeout(time.Minute)))
		clients[i] = &http.Client{Transport: httplimit.Transport(limiter, nil, rules, nil, httplimit.WithRemaining())}
	}
	for i := range 4 * side.limit { // one after the other: a request that is on its way when nothing is left cannot be called back
		response, err := clients[i%2].Get(address.URL)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
	}
	if side.served != 4*side.limit || side.refused != 0 {
		t.Errorf("the far side served %d requests, and refused %d", side.served, side.refused)
	}
}
