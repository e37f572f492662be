package behaviour_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
)

// variants returns rules of one name with all arguments that change how a rule counts, or that might seem to.
func variants() (rules []ratelimit.Rule) {
	for _, word := range []ratelimit.Algorithm{
		ratelimit.SlidingWindow, ratelimit.FixedWindow, ratelimit.TokenBucket, ratelimit.LeakyBucket, ratelimit.SlidingCounter,
	} {
		for _, per := range []time.Duration{time.Hour, 2 * time.Hour} {
			rules = append(rules, ratelimit.Rule{Algorithm: word, Per: per})
		}
	}
	rules = append(rules, ratelimit.Rule{Cron: "@yearly"}, ratelimit.Rule{Cron: "@yearly", TZ: "Asia/Shanghai"})
	for _, change := range []func(*ratelimit.Rule){
		func(r *ratelimit.Rule) { r.Limit = 7 }, func(r *ratelimit.Rule) { r.Burst = 5 }, func(r *ratelimit.Rule) { r.Prepay = true },
		func(r *ratelimit.Rule) { r.Warmup = time.Hour }, func(r *ratelimit.Rule) { r.Warmup = 2 * time.Hour },
		func(r *ratelimit.Rule) { r.Slices = 10 }, func(r *ratelimit.Rule) { r.Distinct = "{who}" },
		func(r *ratelimit.Rule) { r.Block = time.Minute }, func(r *ratelimit.Rule) { r.Mode = ratelimit.ModeShadow },
		func(r *ratelimit.Rule) { r.Mode = ratelimit.ModeTrigger }, func(r *ratelimit.Rule) { r.Lease = time.Second },
		func(r *ratelimit.Rule) { r.Queue = 3 },
	} {
		for _, r := range rules[:12] {
			change(&r)
			rules = append(rules, r)
		}
	}
	var valid []ratelimit.Rule
	for _, r := range rules {
		r.Name = "r"
		if r.Limit == 0 {
			r.Limit = 4
		}
		if _, err := ratelimit.New(memstore.New()).StateKeys(ratelimit.Request{Rule: r}); err == nil {
			valid = append(valid, r)
		}
	}
	return valid
}

// Two rules share their counts if, and only if, their state keys are equal, on every store.
func TestStateKeyIsTheIdentityOfACount(t *testing.T) {
	onPlainToo(t, func(t *testing.T, s *subject) {
		rules := s.known(variants()...)
		for i, charged := range rules {
			used := ratelimit.Request{Rule: charged, Key: fmt.Sprint("k", i), Member: member(charged)}
			used.Rule.Lease = 0 // permits that this process takes ahead would count, too
			s.admit(t, used)
			mine, err := s.limiter.StateKeys(used)
			if err != nil {
				t.Fatal(err)
			}
			for _, asked := range rules {
				q := ratelimit.Request{Rule: asked, Key: used.Key, Member: member(asked)}
				its, err := s.limiter.StateKeys(q)
				if err != nil {
					t.Fatal(err)
				}
				if shares := s.peek(t, q).Quotas[0].Reset > 0; shares != slices.Contains(its, mine[0]) {
					t.Errorf("%+v was charged as %s; %+v has the keys %s, and sees the charge: %t", charged, mine, asked, its, shares)
				}
			}
		}
	})
}

func member(r ratelimit.Rule) string {
	if r.Distinct == "" {
		return ""
	}
	return "m"
}
