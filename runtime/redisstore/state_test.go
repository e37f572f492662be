package redisstore

import (
	"errors"
	"testing"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// What the store cannot read is refused, whatever the failure policy is, and nothing is written: the counts are there.
func TestUnreadableStateIsRefused(t *testing.T) {
	s, server := open(t)
	for _, policy := range []ratelimit.FailurePolicy{ratelimit.FailClosed, ratelimit.FailOpen, ratelimit.FailLocal} {
		for _, algorithm := range []ratelimit.Algorithm{ratelimit.SlidingWindow, ratelimit.FixedWindow, ratelimit.TokenBucket, ratelimit.SlidingCounter} {
			limiter := ratelimit.New(s, ratelimit.WithFailurePolicy(policy))
			request := ratelimit.Request{Rule: ratelimit.Rule{Name: "r", Limit: 3, Per: time.Hour, Algorithm: algorithm}, Key: "k"}
			other := ratelimit.Request{Rule: ratelimit.Rule{Name: "other", Limit: 3, Per: time.Hour}, Key: "k"}
			for name, spoil := range map[string]func(key string){
				"another type": func(key string) { s.Client.Del(t.Context(), key); s.Client.HSet(t.Context(), key, "field", "value") },
				"a later layout": func(key string) {
					s.Client.Del(t.Context(), key)
					s.Client.Set(t.Context(), key, "\x02of a later layout", 0)
				},
			} {
				server.Do("FLUSHALL")
				if d, err := limiter.Allow(t.Context(), request); err != nil || !d.Allowed {
					t.Fatalf("%+v, %v", d, err)
				}
				key := server.Do("KEYS *")
				spoil(key)
				before := s.Client.Dump(t.Context(), key).Val()
				d, err := limiter.Allow(t.Context(), other, request)
				if !errors.As(err, new(*ratelimit.StoreError)) || d.Allowed {
					t.Errorf("%v, %v, %s: %+v, %v", policy, algorithm, name, d, err)
				}
				if keys := server.Do("KEYS *"); keys != key || s.Client.Dump(t.Context(), key).Val() != before {
					t.Errorf("%v, %v, %s: something was written: %s", policy, algorithm, name, keys)
				}
			}
		}
	}
}

// A damaged count starts anew, and the operator is told once.
func TestDamageIsTold(t *testing.T) {
	s, server := open(t)
	told := 0
	limiter := ratelimit.New(s)
	s.Notify(func(string, error) { told++ })
	request := ratelimit.Request{Rule: ratelimit.Rule{Name: "r", Limit: 3, Per: time.Hour, Algorithm: ratelimit.FixedWindow}, Key: "k"}
	for range 4 {
		d, err := limiter.Allow(t.Context(), request)
		if err != nil || !d.Allowed {
			t.Fatalf("%+v, %v", d, err)
		}
		s.Client.SetRange(t.Context(), server.Do("KEYS *"), 30, "damage")
	}
	if told != 1 {
		t.Errorf("told %d times", told)
	}
}
