package behaviour_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// growing are rules of calls that grow. No permit comes back by itself during a test.
func (s *subject) growing() []ratelimit.Rule {
	return s.known([]ratelimit.Rule{
		{Name: "sliding", Limit: 60, Per: long},
		{Name: "amounts", Limit: 20_000, Per: long},
		{Name: "fixed", Limit: 60, Per: long, Algorithm: ratelimit.FixedWindow},
		{Name: "calendar", Limit: 60, Cron: "0 0 1 1 *"},
		{Name: "bucket", Limit: 60, Per: long, Algorithm: ratelimit.TokenBucket},
		{Name: "counter", Limit: 60, Per: long, Algorithm: ratelimit.SlidingCounter},
		{Name: "here", Limit: 60, Per: long, Scope: ratelimit.ScopeInstance},
		{Name: "blocking", Limit: 60, Per: long, Block: time.Hour},
	}...)
}

// grown is a call that runs, and what the model knows of it.
type grown struct {
	charge *ratelimit.Charge
	taken  *wrap.Taken
	costs  []int64 // that each rule has charged
	over   []bool  // whether the rule is settled or refunded
}

// growth is a model of calls that grow, under the rules of a method of which all but the last have cost=.
type growth struct {
	*subject
	r     *rapid.T
	rules *wrap.Rules
	key   func(rule int) string
	used  []int64
	calls []*grown
}

func (g *growth) fits(rule int, n int64) bool { return g.used[rule]+n <= g.rules.Rules()[rule].Limit }

// isClose reports whether a rule is a bucket with just n permits left, or a small part of one less: what a bucket gained between a charge and the last one
// does not come back with the charge.
func (g *growth) isClose(rule int, n int64) bool {
	return isBucket(g.rules.Rules()[rule]) && g.used[rule]+n == g.rules.Rules()[rule].Limit
}

// begin makes a call of a cost, which may be 0.
func (g *growth) begin(t *testing.T) {
	cost, last := rapid.Int64Range(0, 20).Draw(g.r, "cost"), len(g.used)-1
	charges, admits := make([]wrap.Charge, len(g.used)), true
	for i := range charges {
		charges[i] = wrap.Charge{Key: g.key(i), Cost: cost}
		if i == last {
			charges[i].Cost = 1
		}
		admits = admits && (charges[i].Cost == 0 || g.fits(i, charges[i].Cost) && !g.isClose(i, charges[i].Cost))
	}
	if !admits { // a refusal would begin a block
		return
	}
	c := &grown{costs: make([]int64, len(g.used)), over: make([]bool, len(g.used))}
	var ctx context.Context
	ctx, c.charge = ratelimit.WithCharge(t.Context())
	var err error
	if c.taken, err = wrap.Begin(ctx, g.rules.On(g.limiter), g.rules, charges...); err != nil {
		g.r.Fatalf("a call of %d, used %d: %v", cost, g.used, err)
	}
	for i := range charges {
		c.costs[i] = charges[i].Cost
		g.used[i] += charges[i].Cost
	}
	g.calls = append(g.calls, c)
}

// add adds to a call, and compares the answer with the model.
func (g *growth) add(t *testing.T, c *grown) {
	n, last := rapid.Int64Range(1, 25).Draw(g.r, "more"), len(g.used)-1
	refusing, open := map[string]bool{}, false
	for i, rule := range g.rules.Rules()[:last] {
		if c.over[i] {
			continue
		}
		open = true
		if g.isClose(i, n) {
			return
		}
		if !g.fits(i, n) {
			refusing[rule.Name] = true
		}
	}
	err := c.charge.Add(t.Context(), n)
	refusal, refused := errors.AsType[*ratelimit.TooManyRequestsError](err)
	_, wrong := errors.AsType[*ratelimit.RuleError](err)
	switch {
	case wrong != !open || refused != (len(refusing) > 0) || !wrong && !refused && err != nil:
		g.r.Fatalf("%d more, used %d: got %v; want a refusal by %v, or a *RuleError: %t", n, g.used, err, refusing, !open)
	case refused:
		for _, v := range refusal.Violations {
			i := slices.IndexFunc(g.rules.Rules(), func(r ratelimit.Rule) bool { return r.Name == v.Rule })
			left := max(0, v.Limit-g.used[i])
			isLeft := v.Remaining == left || isBucket(g.rules.Rules()[i]) && v.Remaining == left-1 // it lacks a small part of a permit
			if !refusing[v.Rule] || !isLeft || v.RetryAfter <= 0 || v.Key != g.key(i) {
				g.r.Fatalf("%d more, used %d: got %+v; want a refusal by %v", n, g.used, v, refusing)
			}
		}
		if len(refusal.Violations) != len(refusing) {
			g.r.Fatalf("got %+v, want a refusal by %v", refusal.Violations, refusing)
		}
	case !wrong:
		for i := range c.costs[:last] {
			if !c.over[i] {
				c.costs[i], g.used[i] = c.costs[i]+n, g.used[i]+n
			}
		}
	}
}

// settle settles all rules of a call that have cost=, or one of them.
func (g *growth) settle(t *testing.T, c *grown) {
	cost, last := rapid.Int64Range(0, 80).Draw(g.r, "settled"), len(g.used)-1
	one := rapid.IntRange(-1, last-1).Draw(g.r, "one rule")
	var names []string
	if one >= 0 {
		names = []string{g.rules.Rules()[one].Name}
	}
	settles := func(rule int) bool { return !c.over[rule] && (one < 0 || one == rule) }
	for i, rule := range g.rules.Rules()[:last] {
		if keepsNoDebt := isBucket(rule) || rule.Algorithm == ratelimit.SlidingWindow && rule.Cron == ""; settles(i) && keepsNoDebt && !g.fits(i, cost-c.costs[i]) {
			return
		}
	}
	if err := c.charge.Settle(t.Context(), cost, names...); err != nil {
		g.r.Fatal(err)
	}
	for i := range c.costs[:last] {
		if settles(i) {
			g.used[i] += cost - c.costs[i]
			c.costs[i], c.over[i] = cost, true
		}
	}
}

func (g *growth) refund(t *testing.T, c *grown) {
	if err := c.taken.Refund(t.Context()); err != nil {
		g.r.Fatal(err)
	}
	for i := range c.costs {
		g.used[i] -= c.costs[i]
		c.costs[i], c.over[i] = 0, true
	}
}

func (g *growth) check(t *testing.T, when string) {
	for i, rule := range g.rules.Rules() {
		q := ratelimit.Request{Rule: rule, Key: g.key(i)}
		left := g.peek(t, q).Quotas[0].Remaining // 0 if a block has begun
		if isBucket(rule) {
			left = max(0, rule.Limit-g.subject.used(t, rule, q.Key)) // but for a small part of a permit
		}
		if left != max(0, rule.Limit-g.used[i]) {
			g.r.Fatalf("%s: %s has %d permits left, and %d of %d are used", when, rule.Name, left, g.used[i], rule.Limit)
		}
	}
}

// grow makes random calls that grow, are settled and are refunded. At the end all are refunded.
func (s *subject) grow(t *testing.T, r *rapid.T, n int) {
	rules := rapid.Permutation(s.growing()).Draw(r, "rules")
	rules = rules[:rapid.IntRange(2, min(4, len(rules))).Draw(r, "how many")]
	apart := rapid.Bool().Draw(r, "keys of their own")
	g := &growth{subject: s, r: r, used: make([]int64, len(rules)), key: func(rule int) string {
		if apart {
			return fmt.Sprint(n, "/", rules[rule].Name)
		}
		return fmt.Sprint(n)
	}}
	var priced []string
	for i, rule := range rules {
		if i < len(rules)-1 {
			priced = append(priced, rule.Name)
		}
		if rule.Name == "amounts" {
			g.used[i] = rule.Limit - 60
			s.admit(t, ratelimit.Request{Rule: rule, Key: g.key(i), Cost: g.used[i]})
		}
	}
	before := slices.Clone(g.used)
	g.rules = wrap.NewRules("p.T.Grow", rules...).WithCost(priced...)
	g.begin(t)
	for range rapid.IntRange(1, 25).Draw(r, "steps") {
		c := rapid.SampledFrom(g.calls).Draw(r, "call")
		switch step := rapid.IntRange(0, 9).Draw(r, "step"); {
		case step < 5:
			g.add(t, c)
		case step == 5:
			g.settle(t, c)
		case step == 6:
			g.refund(t, c)
		case step == 7:
			g.begin(t)
		default:
			s.pass(time.Microsecond)
		}
		g.check(t, "during the calls")
	}
	for _, c := range g.calls {
		g.refund(t, c)
	}
	if !slices.Equal(g.used, before) {
		r.Fatalf("the model has %d permits used, want %d", g.used, before)
	}
	g.check(t, "after all refunds")
}

// Whatever calls add, settle and refund: a call grows if all its rules with cost= have so many permits, and otherwise nothing is taken. What is charged is what
// was admitted. A refund gives all of it back.
func TestCallsThatGrow(t *testing.T) {
	onPlainToo(t, func(t *testing.T, s *subject) {
		n := 0
		rapid.Check(t, func(r *rapid.T) {
			n++
			s.grow(t, r, n)
		})
	})
}

// So it is on a cluster, where rules with keys of their own are on several nodes.
func TestCallsThatGrowOnACluster(t *testing.T) {
	t.Parallel()
	s, n := onCluster(t, redistest.StartCluster(t, 3)), 0
	rapid.Check(t, func(r *rapid.T) {
		n++
		s.grow(t, r, n)
	})
}

// Two goroutines that add to one charge, and others that add to other charges, get all that the limit has, and no more.
func TestConcurrentAdds(t *testing.T) {
	onPlainToo(t, func(t *testing.T, s *subject) {
		rules := wrap.NewRules("p.T.M", ratelimit.Rule{Name: "tokens", Limit: 50, Per: long, Algorithm: s.window}).WithCost()
		var all sync.WaitGroup
		var mu sync.Mutex
		var taken []*wrap.Taken
		admitted := 0
		for range 3 {
			ctx, charge := ratelimit.WithCharge(t.Context())
			one, err := wrap.Begin(ctx, rules.On(s.limiter), rules, wrap.Charge{Key: "k", Cost: 1})
			if err != nil {
				t.Fatal(err)
			}
			taken = append(taken, one)
			for range 2 {
				all.Go(func() {
					for range 20 {
						err := charge.Add(ctx, 1)
						if err != nil && !errors.Is(err, ratelimit.ErrTooManyRequests) {
							t.Error(err)
						}
						mu.Lock()
						if err == nil {
							admitted++
						}
						mu.Unlock()
					}
				})
			}
		}
		all.Wait()
		if left := s.left(t, ratelimit.Request{Rule: rules.Rules()[0], Key: "k"}); admitted != 47 || left != 0 {
			t.Errorf("%d were admitted, %d are left; want 47 and 0", admitted, left)
		}
		for _, one := range taken {
			if err := one.Refund(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if left := s.left(t, ratelimit.Request{Rule: rules.Rules()[0], Key: "k"}); left != 50 {
			t.Errorf("%d are left after the refunds, want 50", left)
		}
	})
}
