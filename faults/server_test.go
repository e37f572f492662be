package faults

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
)

// sums are rules whose permits do not come back during a test, so that what is left tells exactly what was taken.
func sums() []ratelimit.Rule {
	const per = 3000 * 24 * time.Hour
	return []ratelimit.Rule{
		{Name: "sum-fixed", Limit: 1_000_000, Per: per, Algorithm: ratelimit.FixedWindow},
		{Name: "sum-sliding", Limit: 1_000_000, Per: per},
		{Name: "sum-bucket", Limit: 100_000, Per: 3600 * 24 * time.Hour, Burst: 1_000_000, Algorithm: ratelimit.TokenBucket}, // a permit in an hour
	}
}

// persistent makes a server that has on its disk what it has replied.
var persistent = []string{"--appendonly", "yes", "--appendfsync", "always"}

func connect(t testing.TB, addr string) *redis.Client {
	client := redis.NewClient(&redis.Options{Addr: addr, DialerRetries: 1})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func quiet() ratelimit.Option {
	return ratelimit.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil)))
}

// A fault is done to a server again and again while calls are made.
type fault struct {
	apart time.Duration
	do    func(s *redistest.Server)
}

var serverFaults = map[string]fault{
	"kill": {400 * time.Millisecond, func(s *redistest.Server) {
		s.Stop()
		time.Sleep(50 * time.Millisecond)
		s.Restart()
	}},
	"client kill": {10 * time.Millisecond, func(s *redistest.Server) { s.Do("CLIENT KILL TYPE normal SKIPME yes") }},
	"flush": {10 * time.Millisecond, func(s *redistest.Server) {
		s.Do("SCRIPT FLUSH")
		s.Do("FUNCTION FLUSH")
	}},
	"client pause": {400 * time.Millisecond, func(s *redistest.Server) { s.Do("CLIENT PAUSE 300 ALL") }},
	"stop": {400 * time.Millisecond, func(s *redistest.Server) {
		s.Pause()
		time.Sleep(300 * time.Millisecond)
		s.Resume()
	}},
	"out of memory": {100 * time.Millisecond, func(s *redistest.Server) {
		s.Do("CONFIG SET maxmemory 1")
		time.Sleep(50 * time.Millisecond)
		s.Do("CONFIG SET maxmemory 0")
	}},
	"contexts that end": {time.Second, func(*redistest.Server) {}},
}

// Whatever happens to a server: nobody gets more than the limit, nobody is refused without reason, and no call is charged twice.
func TestServerFaults(t *testing.T) {
	for name, f := range serverFaults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t, persistent...)
			limiter := ratelimit.New(redisstore.New(connect(t, server.Addr)), quiet())
			var b Book
			stop := again(f.apart, func() { f.do(server) })
			audited := append(rules(), leased()...)
			press(&b, limiter, 2500*time.Millisecond, append(audited, sums()...), name == "contexts that end")
			stop()
			waitUntilWell(t, limiter)
			audit(t, &b, audited)
			requireSums(t, &b, limiter, sums(), nil)
		})
	}
}

// again does something again and again until it is stopped.
func again(apart time.Duration, do func()) (stop func()) {
	stopped, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		for {
			select {
			case <-stopped:
				return
			case <-time.After(apart):
				do()
			}
		}
	}()
	return func() {
		close(stopped)
		<-over
	}
}

// waitUntilWell waits until the limiter can decide calls again.
func waitUntilWell(t *testing.T, limiter *ratelimit.Limiter) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if _, err = limiter.Allow(context.Background(), ratelimit.Request{Rule: ratelimit.PerHour(1), Key: "well"}); err == nil {
			return
		}
	}
	t.Fatalf("the limiter does not decide again: %v", err)
}

// requireSums checks that each call was charged once: what is left is what clients were not told that they took, less at most what
// they do not know, and what they held when they were killed.
func requireSums(t *testing.T, b *Book, limiter *ratelimit.Limiter, rules []ratelimit.Rule, held map[counted]int64) {
	t.Helper()
	for _, rule := range rules {
		for _, key := range keys {
			taken, unknown := int64(0), int64(0)
			for _, e := range b.Of(rule.Name, key) {
				switch e.Outcome {
				case Admitted:
					taken += e.Cost
				case Unknown:
					unknown += e.Cost
				}
			}
			used, most := usedOf(t, limiter, rule, key), held[counted{rule.Name, key}]
			if used < taken || used > taken+unknown+most {
				t.Errorf("%s of %s: %d permits are used; clients took %d, %d they do not know, and %d they held at most", rule.Name, key, used, taken, unknown, most)
			}
		}
	}
}

// usedOf returns how many permits the server counts as used.
func usedOf(t *testing.T, limiter *ratelimit.Limiter, rule ratelimit.Rule, key string) int64 {
	t.Helper()
	var err error
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) { // a busy machine may miss the store's time-out
		var d ratelimit.Decision
		if d, err = limiter.Peek(context.Background(), ratelimit.Request{Rule: rule, Key: key}); err == nil {
			return d.Quotas[0].Limit - d.Quotas[0].Remaining
		}
	}
	t.Fatal(err)
	return 0
}
