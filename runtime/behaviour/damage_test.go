package behaviour_test

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// damageable has one rule of each kind that has a state of its own.
func damageable() map[string]ratelimit.Rule {
	rules := algorithms()
	for name, rule := range map[string]ratelimit.Rule{
		"leaky-bucket":    {Limit: 3, Per: time.Hour, Algorithm: ratelimit.LeakyBucket},
		"warmup":          {Limit: 3, Per: time.Hour, Algorithm: ratelimit.TokenBucket, Warmup: time.Hour},
		"sliding-counter": {Limit: 3, Per: time.Hour, Algorithm: ratelimit.SlidingCounter},
		"distinct":        {Limit: 3, Per: time.Hour, Distinct: "m"},
		"daily":           {Limit: 3, Cron: yearly, Distinct: "m"},
	} {
		rules[name] = rule
	}
	for name, rule := range rules {
		rule.Name = name
		rules[name] = rule
	}
	return rules
}

// stateKey is the key of a rule's state for the subject k.
func stateKey(r ratelimit.Rule) string { return "ratelimit:" + r.Name + ":{k}:" + r.Window() }

// A damaged state gives an error or counts as some state. It neither stops the program nor lets everybody pass.
func TestDamagedState(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s, client, ctx := onServer(t, server), connect(t, server.Addr), context.Background()
	now := float64(time.Now().UnixMicro())
	states := map[string]string{
		"short": "abc", "text": strings.Repeat("a", 32), "a long text": strings.Repeat("z", 5000), "zeros": strings.Repeat("\x00", 32),
		"infinite": doubles(math.Inf(1)), "lowest": doubles(math.Inf(-1)), "no numbers": doubles(math.NaN()), "half": doubles(now + 1e9 + 0.5),
	}
	for name, rule := range damageable() {
		for damage, state := range states {
			server.Do("FLUSHALL")
			var err error
			switch {
			case rule.Distinct != "":
				for _, member := range []string{"a", "b", "c"} {
					err = errors.Join(err, client.ZAdd(ctx, stateKey(rule), redis.Z{Score: 1e300, Member: member + state}).Err())
				}
			case rule.Algorithm == ratelimit.SlidingWindow && rule.Cron == "":
				err = client.RPush(ctx, stateKey(rule), state, state, state).Err()
			default:
				err = client.Set(ctx, stateKey(rule), state, 0).Err()
			}
			if err != nil {
				t.Fatal(err)
			}
			passed, rules := 0, wrap.NewRules("m", rule)
			for i := range 10 {
				charge := wrap.Charge{Key: "k", Cost: 1, Member: string(rune('m' + i))}
				err := wrap.TakeCharges(ctx, rules.On(s.limiter), rules, charge)
				_, failed := errors.AsType[*ratelimit.StoreError](err)
				switch {
				case err == nil:
					passed++
				case err.Error() == "" || !failed && !errors.Is(err, ratelimit.ErrTooManyRequests):
					t.Errorf("%s, %s: got error %v (%T)", name, damage, err, err)
				}
			}
			if passed > 3 {
				t.Errorf("%s, %s: %d calls passed a limit of 3", name, damage, passed)
			}
		}
	}
}

// doubles returns a state that has a number four times.
func doubles(n float64) string {
	return strings.Repeat(string(binary.LittleEndian.AppendUint64(nil, math.Float64bits(n))), 4)
}

// If the key of a rule holds a value of another program, the call fails, and its other rules are not charged.
func TestForeignKey(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s, client, ctx := onServer(t, server), connect(t, server.Addr), context.Background()
	before := ratelimit.Request{Rule: ratelimit.Rule{Name: "before", Limit: 5, Per: time.Hour}, Key: "k"}
	behind := ratelimit.Request{Rule: ratelimit.Rule{Name: "behind", Limit: 5, Per: time.Hour, Algorithm: ratelimit.TokenBucket}, Key: "k"}
	for name, rule := range damageable() {
		if err := client.HSet(ctx, stateKey(rule), "a", 1).Err(); err != nil {
			t.Fatal(err)
		}
		_, err := s.limiter.Allow(ctx, before, ratelimit.Request{Rule: rule, Key: "k", Member: "m"}, behind)
		if _, failed := errors.AsType[*ratelimit.StoreError](err); !failed {
			t.Errorf("%s: got error %v (%T), want a *StoreError", name, err, err)
		}
	}
	if a, b := s.left(t, before), s.left(t, behind); a != 5 || b != 5 {
		t.Errorf("%d and %d of 5 permits left", a, b)
	}
}
