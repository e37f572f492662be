package plain

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// calls returns calls of all kinds: under one rule and under several, to decide, with UpTo, and to peek.
func calls(rule ratelimit.Rule) map[string][]ratelimit.Request {
	other := hourly
	other.Name = "other"
	return map[string][]ratelimit.Request{
		"one rule":      {ask(rule, "k")},
		"several rules": {ask(other, "k"), ask(rule, "k")},
		"up to":         {{Rule: rule, Key: "k", Cost: 1, UpTo: true}},
	}
}

// keyOf returns the only key on the server.
func (s *site) keyOf(t *testing.T, rule ratelimit.Rule) string {
	t.Helper()
	s.server.Do("FLUSHALL")
	s.admit(t, ask(rule, "k"))
	return s.server.Do("KEYS *")
}

// A damaged count is treated as empty. It neither admits everybody for ever nor refuses its subject for ever.
func TestDamagedCountStartsAnew(t *testing.T) {
	s := start(t).withoutOverrides()
	for name, damage := range map[string]func(key string) error{
		"no expiry": func(key string) error { return s.client.Persist(t.Context(), key).Err() },
		"text":      func(key string) error { return s.client.Set(t.Context(), key, "12", time.Hour).Err() },
		"long":      func(key string) error { return s.client.Set(t.Context(), key, zero+"x", time.Hour).Err() },
		"huge": func(key string) error {
			return s.client.Set(t.Context(), key, "\x7f\xff\xff\xff\xff\xff\xff\xff", time.Hour).Err()
		},
	} {
		for _, rule := range []ratelimit.Rule{hourly, yearly} {
			for way, call := range calls(rule) {
				key := s.keyOf(t, rule)
				redistest.Eventually(t, "the damage", func() bool { return damage(key) == nil }) // a busy machine may take longer than the client
				before := s.dump(t)
				if left := s.left(t, rule, "k"); left != 3 || s.dump(t) != before {
					t.Errorf("%s, %s: Peek tells %d of 3 permits left, or it writes", name, rule.Name, left)
				}
				s.admit(t, call...)
				if left := s.left(t, rule, "k"); left != 2 {
					t.Errorf("%s, %s, %s: %d of 3 permits left, want 2", name, rule.Name, way, left)
				}
				s.requireBounded(t)
			}
		}
	}
}

// If a key has another type, the call fails, and nothing is written.
func TestWrongTypeIsLeftAlone(t *testing.T) {
	s := start(t).withoutOverrides()
	for _, rule := range []ratelimit.Rule{hourly, yearly} {
		for way, call := range calls(rule) {
			key := s.keyOf(t, rule)
			s.server.Do("FLUSHALL")
			s.client.HSet(t.Context(), key, "field", "value")
			before := s.dump(t)
			for _, policy := range []ratelimit.FailurePolicy{ratelimit.FailOpen, ratelimit.FailLocal} {
				tolerant := ratelimit.New(s.store, ratelimit.WithFailurePolicy(policy))
				if d, err := tolerant.Allow(t.Context(), call...); err == nil {
					t.Errorf("%s, %s: by the policy %v: %+v", rule.Name, way, policy, d)
				}
			}
			_, err := s.Allow(t.Context(), call...)
			if !errors.As(err, new(*ratelimit.StoreError)) || !strings.Contains(err.Error(), "WRONGTYPE") {
				t.Errorf("%s, %s: got error %v", rule.Name, way, err)
			}
			if after := s.dump(t); after != before {
				t.Errorf("%s, %s: the server went from %q to %q", rule.Name, way, before, after)
			}
		}
	}
}

// The operator is told once about damage.
func TestDamageIsTold(t *testing.T) {
	s, told := start(t).withoutOverrides(), 0
	s.store.Notify(func(string, error) { told++ })
	for range 3 {
		s.client.Persist(context.Background(), s.keyOf(t, hourly))
		s.admit(t, ask(hourly, "k"))
	}
	if told != 1 {
		t.Errorf("told %d times", told)
	}
}
