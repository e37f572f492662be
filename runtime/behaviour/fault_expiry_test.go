package behaviour_test

import (
	"context"
	"testing"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// An expiry must not be rounded down to zero: nothing would be stored, and every call would pass.
func TestFault_ExpiryRoundedToZero(t *testing.T) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		for name, rule := range algorithms() {
			if rule.Cron != "" {
				continue // the shortest calendar window is a second
			}
			for _, per := range []time.Duration{300 * time.Microsecond, 999 * time.Microsecond, 1500 * time.Microsecond} {
				rule.Name, rule.Limit, rule.Per = name, 1, per
				requireSpacing(t, s, ratelimit.Request{Rule: rule, Key: "k"}, per)
			}
		}
	})
}

// A state is kept as long as it matters: a bucket of ten minutes is not full again after one minute.
func TestFault_ExpiryRefillsTheBucket(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s, client := onServer(t, server), connect(t, server.Addr)
	s.limiter = ratelimit.New(bare{s.store})
	for name, rule := range algorithms() {
		if rule.Cron != "" {
			continue // its window ends when it ends
		}
		rule.Name, rule.Per = name, 10*time.Minute
		s.admit(t, ratelimit.Request{Rule: rule, Key: "k", Cost: 3})
		for _, key := range keysOn(t, client) {
			ttl := client.PTTL(context.Background(), key).Val()
			if ttl < 9*time.Minute || ttl > 21*time.Minute {
				t.Errorf("%q expires after %v; its state matters for 10m", key, ttl)
			}
		}
		server.Do("FLUSHALL")
	}
}

// Later calls extend the expiry of a state that earlier calls wrote.
func TestFault_ExpiryNotRenewed(t *testing.T) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		const per = 40 * time.Millisecond
		for name, rule := range algorithms() {
			if rule.Cron != "" {
				continue // its window ends when it ends
			}
			rule.Name, rule.Per = name, per
			model, q := newModel(), ratelimit.Request{Rule: rule, Key: "k", Cost: 1}
			for range 60 {
				d := s.allow(t, q)
				want, _ := model.allow(d.At.UnixMicro(), asksOf([]ratelimit.Request{q}, 0))
				if d.Allowed != want.allowed() || d.RetryAfter != micros(want.retryAfter) {
					t.Fatalf("%s: got %+v, want %+v", name, d, want)
				}
				s.pass(per / 7)
			}
		}
	})
}

// Redis 7.0 deletes a key in the middle of a script if the script sets an expiry in the past. All calls of a run are decided at the time when
// the run began. So if the server stopped in the middle of a run, it forgot what the first calls had taken. Keys now outlive their windows.
func TestFault_StateForgottenInTheMiddleOfARun(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s, client := onServer(t, server), connect(t, server.Addr)
	const per = time.Minute
	for _, rule := range []ratelimit.Rule{
		{Name: "log", Limit: 2, Per: per},
		{Name: "counter", Limit: 2, Per: per, Algorithm: ratelimit.SlidingCounter},
		{Name: "members", Limit: 2, Per: per, Distinct: "{who}"},
	} {
		q := ratelimit.Request{Rule: rule, Key: "k", Member: "a"}
		d := s.admit(t, q)
		keys, err := s.limiter.StateKeys(q)
		if err != nil {
			t.Fatal(err)
		}
		expiry := time.UnixMilli(client.PExpireTime(t.Context(), keys[0]).Val().Milliseconds())
		if expiry.Before(d.At.Add(per + time.Second)) {
			t.Errorf("%s: expires at %v, charged at %v", rule.Name, expiry, d.At)
		}
	}
}

// Every key has an expiry, whether its state was charged, reserved, given back or blocked.
func TestFault_StateWithoutAnExpiry(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := onServer(t, server)
	rule := func(name string, algorithm ratelimit.Algorithm) ratelimit.Rule {
		return ratelimit.Rule{Name: name, Limit: 2, Per: time.Hour, Algorithm: algorithm, Block: time.Hour}
	}
	log, fixed, counter := rule("log", ratelimit.SlidingWindow), rule("fixed", ratelimit.FixedWindow), rule("counter", ratelimit.SlidingCounter)
	bucket, leaky, prepaid, warm := rule("bucket", ratelimit.TokenBucket), rule("leaky", ratelimit.LeakyBucket), rule("prepaid", ratelimit.TokenBucket), rule("warm", ratelimit.TokenBucket)
	prepaid.Prepay, warm.Warmup = true, time.Hour
	day, members, daily := rule("day", ratelimit.Calendar), rule("members", ratelimit.SlidingWindow), rule("daily", ratelimit.Calendar)
	day.Per, day.Cron, daily.Per, daily.Cron = 0, yearly, 0, yearly
	members.Distinct, daily.Distinct = "{who}", "{who}"
	full := ratelimit.Request{Rule: ratelimit.Rule{Name: "full", Limit: 1, Per: time.Hour}, Key: "k"}
	s.admit(t, full)
	for _, rule := range []ratelimit.Rule{log, fixed, counter, bucket, leaky, prepaid, warm, day, members, daily} {
		q := ratelimit.Request{Rule: rule, Key: "k", Member: "a"}
		d := s.admit(t, q)
		requireExpiries(t, server)
		for range 4 {
			q.Member += "a"
			s.allow(t, q)
			requireExpiries(t, server)
		}
		s.refuse(t, q)
		if err := d.Refund(context.Background()); err != nil {
			t.Fatal(err)
		}
		requireExpiries(t, server)
		if letsWait(rule) {
			rule.Block = 0 // the block has begun
			other := ratelimit.Request{Rule: rule, Key: "another"}
			for s.allow(t, other).Allowed {
			}
			s.reserve(t, other)()
			requireExpiries(t, server)
		}
	}
}
