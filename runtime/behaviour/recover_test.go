package behaviour_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/decide"
	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/plain"
)

// A block and an override survive each kind of loss: three processes know them, and one tool makes them hold again, also for a process that begins later.
func TestRecoverSettings(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(t *testing.T, server *redistest.Server, moved func(to string)){
		"FLUSHALL": func(_ *testing.T, server *redistest.Server, _ func(string)) { server.Do("FLUSHALL") },
		"kill -9":  func(_ *testing.T, server *redistest.Server, _ func(string)) { server.Restart() },
		"failover": func(t *testing.T, server *redistest.Server, moved func(string)) { // the new master is empty
			moved(redistest.Start(t).Addr)
			server.Stop()
		},
	} {
		for by, store := range map[string]func(redis.UniversalClient) ratelimit.Store{
			"functions": func(c redis.UniversalClient) ratelimit.Store { return scripted(c) },
			"evalsha":   func(c redis.UniversalClient) ratelimit.Store { return scripted(c, redisstore.WithoutFunctions()) },
			"plain":     func(c redis.UniversalClient) ratelimit.Store { return plain.New(c, plain.WithTimeout(patience)) },
		} {
			t.Run(name+" "+by, func(t *testing.T) {
				t.Parallel()
				server := redistest.Start(t)
				var addr atomic.Pointer[string]
				moved := func(to string) { addr.Store(&to) }
				moved(server.Addr)
				process := func() *ratelimit.Limiter {
					c := redis.NewClient(&redis.Options{ReadTimeout: patience, Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) {
						return new(net.Dialer).DialContext(ctx, "tcp", *addr.Load())
					}})
					t.Cleanup(func() { _ = c.Close() })
					return ratelimit.New(store(c))
				}
				recoverAfter(t, process, func() { lose(t, server, moved) })
			})
		}
	}
}

func recoverAfter(t *testing.T, process func() *ratelimit.Limiter, lose func()) {
	rule := ratelimit.Rule{Name: "login", Key: "{user}", Algorithm: ratelimit.FixedWindow, Limit: 10, Per: time.Hour}
	holds := func(l *ratelimit.Limiter) bool {
		ann, err := l.Peek(t.Context(), ratelimit.Request{Rule: rule, Key: "ann"})
		bob, failed := l.Peek(t.Context(), ratelimit.Request{Rule: rule, Key: "bob"})
		return err == nil && failed == nil && !ann.Allowed && bob.Allowed && bob.Quotas[0].Remaining == 3
	}
	all := []*ratelimit.Limiter{process(), process(), process()}
	for _, l := range all {
		if err := l.Check(rule); err != nil {
			t.Fatal(err)
		}
	}
	three := int64(3)
	if err := all[0].Overrides().Set(t.Context(), "login", ratelimit.Override{Limit: &three}); err != nil {
		t.Fatal(err)
	}
	if err := all[0].Block(t.Context(), time.Hour, ratelimit.Request{Rule: rule, Key: "ann"}); err != nil {
		t.Fatal(err)
	}
	redistest.Eventually(t, "all follow", func() bool { return holds(all[1]) && holds(all[2]) })
	lose()
	redistest.Eventually(t, "all know of the loss", func() bool {
		return all[0].Status().Lost == 2 && all[1].Status().Lost == 2 && all[2].Status().Lost == 2 && holds(all[0])
	})
	tool := (*decide.Limiter)(process()).Fleet()
	word, err := tool.AskKnown(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var found fleet.Recovery
	redistest.Eventually(t, "all answer", func() bool {
		found, err = tool.Known(t.Context(), word)
		return err == nil && len(found.Answered) == 3 && len(found.Silent) == 0
	})
	if err := tool.Recover(t.Context(), fleet.Actor{By: "kim"}, found.Settings); err != nil || len(found.Settings) != 2 {
		t.Fatalf("%d settings, %v", len(found.Settings), err)
	}
	late := process()
	redistest.Eventually(t, "all hold again", func() bool {
		for _, l := range append(all, late) {
			if !holds(l) || l.Status().Lost > 0 {
				return false
			}
		}
		return true
	})
}
