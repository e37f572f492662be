package redisstore

import (
	"errors"
	"testing"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// bare is a store whose limiters have no beat that writes keys.
type bare struct{ ratelimit.Store }

func (bare) Fleet(string) *fleet.Fleet { return fleet.NewLocal(time.Now, nil) }

// A call whose state cannot be read fails, whatever the failure policy is, and nothing is written. Only a reset ends that.
func TestUnreadableStateIsRefused(t *testing.T) {
	t.Parallel()
	s, server := open(t)
	for _, policy := range []ratelimit.FailurePolicy{ratelimit.FailClosed, ratelimit.FailOpen, ratelimit.FailLocal} {
		for _, algorithm := range []ratelimit.Algorithm{ratelimit.SlidingWindow, ratelimit.FixedWindow, ratelimit.TokenBucket, ratelimit.SlidingCounter} {
			limiter := ratelimit.New(bare{s}, ratelimit.WithFailurePolicy(policy))
			request := ratelimit.Request{Rule: ratelimit.Rule{Name: "r", Limit: 3, Per: time.Hour, Algorithm: algorithm}, Key: "k"}
			other := ratelimit.Request{Rule: ratelimit.Rule{Name: "other", Limit: 3, Per: time.Hour}, Key: "k"}
			for name, spoil := range map[string]func(key string){
				"another type": func(key string) {
					s.servers.Client.Del(t.Context(), key)
					s.servers.Client.HSet(t.Context(), key, "field", "value")
				},
				"a later layout": func(key string) {
					s.servers.Client.Del(t.Context(), key)
					s.servers.Client.Set(t.Context(), key, "\x09of a later layout", 0)
				},
			} {
				server.Do("FLUSHALL")
				if d, err := limiter.Allow(t.Context(), request); err != nil || !d.Allowed {
					t.Fatalf("%+v, %v", d, err)
				}
				key := server.Do("KEYS *")
				spoil(key)
				before := s.servers.Client.Dump(t.Context(), key).Val()
				d, err := limiter.Allow(t.Context(), other, request)
				if !errors.As(err, new(*ratelimit.StoreError)) || d.Allowed {
					t.Errorf("%v, %v, %s: %+v, %v", policy, algorithm, name, d, err)
				}
				if keys := server.Do("KEYS *"); keys != key || s.servers.Client.Dump(t.Context(), key).Val() != before {
					t.Errorf("%v, %v, %s: something was written: %s", policy, algorithm, name, keys)
				}
				if n, err := limiter.Reset(t.Context(), request); n != 1 || err != nil || server.Do("KEYS *") != "" {
					t.Errorf("%v, %v, %s: a reset forgot %d; error %v", policy, algorithm, name, n, err)
				}
			}
		}
	}
}

// A damaged count starts from zero, and the operator is told once, even if the damage is found by an adjustment.
func TestDamageIsTold(t *testing.T) {
	t.Parallel()
	rule := ratelimit.Rule{Name: "r", Limit: 9, Per: time.Hour, Algorithm: ratelimit.FixedWindow}
	request := ratelimit.Request{Rule: rule, Key: "k", Cost: 2}
	for name, after := range map[string]func(*ratelimit.Limiter, ratelimit.Decision) error{
		"call": func(l *ratelimit.Limiter, _ ratelimit.Decision) error {
			_, err := l.Allow(t.Context(), request)
			return err
		},
		"refund":           func(_ *ratelimit.Limiter, d ratelimit.Decision) error { return d.Refund(t.Context()) },
		"settlement":       func(_ *ratelimit.Limiter, d ratelimit.Decision) error { return d.Settle(t.Context(), 1) },
		"settlement above": func(_ *ratelimit.Limiter, d ratelimit.Decision) error { return d.Settle(t.Context(), 3) },
	} {
		s, server := open(t)
		told, limiter := 0, ratelimit.New(s)
		s.Notify(func(string, error) { told++ })
		for range 3 {
			d, err := limiter.Allow(t.Context(), request)
			if err != nil || !d.Allowed {
				t.Fatalf("%s: %+v, %v", name, d, err)
			}
			server.Do("SETRANGE ratelimit:r:{k}:fixed:1h 30 damage")
			if err := after(limiter, d); err != nil {
				t.Fatal(err)
			}
			server.Do("FLUSHALL")
		}
		if told != 1 {
			t.Errorf("%s: told %d times", name, told)
		}
	}
}

// An operator can reset even if the server refuses every write that needs memory, and if the user may not run the commands that the rule needs.
func TestResetWithoutDecisions(t *testing.T) {
	t.Parallel()
	s, server := open(t)
	limiter := ratelimit.New(s)
	request := ratelimit.Request{Rule: ratelimit.Rule{Name: "r", Limit: 3, Per: time.Hour}, Key: "k"}
	for name, command := range map[string]string{"full": "CONFIG SET maxmemory 1", "not permitted": "ACL SETUSER default -fcall -eval -evalsha"} {
		server.Do("CONFIG SET maxmemory 0")
		if d, err := limiter.Allow(t.Context(), request); err != nil || !d.Allowed {
			t.Fatalf("%+v, %v", d, err)
		}
		server.Do(command)
		if _, err := limiter.Allow(t.Context(), request); err == nil {
			t.Errorf("%s: the server still decides", name)
		}
		if n, err := limiter.Reset(t.Context(), request); n != 1 || err != nil {
			t.Errorf("%s: a reset forgot %d; error %v", name, n, err)
		}
		server.Do("ACL SETUSER default +@all")
	}
}
