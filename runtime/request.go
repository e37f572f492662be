package runtime

import (
	"fmt"
	"slices"
	"sync"
	"time"
	"unique"

	"github.com/ratelimit-go/ratelimit/runtime/internal/decide"
)

// Request asks one rule for permits.
type Request struct {
	Rule Rule
	Key  string // whose permits; "" is everybody's, unless the rule has a Key
	Cost int64  // permits; 0 means 1
}

// addAll adds the requests to c.
func (l *Limiter) addAll(c *call, requests []Request) error {
	for i := range requests {
		r := &requests[i]
		rule, err := l.prepared(r.Rule)
		if err != nil {
			return err
		}
		cost := r.Cost
		if cost == 0 {
			cost = 1
		}
		if err := c.add("", rule, r.Key, cost); err != nil {
			return err
		}
	}
	return nil
}

// prepared returns the rule of a request, prepared when it is met first.
func (l *Limiter) prepared(r Rule) (*prepared, error) {
	if p, ok := l.rules.Load(r); ok {
		return p.(*prepared), nil
	}
	p, err := r.prepare("")
	if err != nil {
		return nil, err
	}
	known, _ := l.rules.LoadOrStore(r, p)
	return known.(*prepared), nil
}

// Rules are the rules of one method, prepared. Generated code holds them.
type Rules struct {
	method string
	rules  []*prepared
}

// NewRules prepares the rules of method, which is called pkg.Type.Method. It panics if one is not valid, which those of
// generated code are.
func NewRules(method string, rules ...Rule) *Rules {
	r := &Rules{method: method}
	for _, rule := range rules {
		p, err := rule.prepare(rule.suffix(method))
		if err != nil {
			panic(err)
		}
		r.rules = append(r.rules, p)
	}
	return r
}

// call is a decision in the making. Calls are pooled: one decision in this process allocates nothing.
type call struct {
	decide.Call
	asked []asked
}

// asked is a rule that was asked, and which claim answers for it.
type asked struct {
	rule  *prepared
	claim int
}

var calls = sync.Pool{New: func() any { return new(call) }}

func newCall(prefix unique.Handle[string]) *call {
	c := calls.Get().(*call)
	c.Prefix = prefix
	return c
}

// free gives c back to the pool.
func (c *call) free() {
	c.Call = decide.Call{Claims: c.Claims[:0]}
	c.asked = c.asked[:0]
	calls.Put(c)
}

// add puts a rule to the question. A cost of 0 asks nothing.
func (c *call) add(method string, rule *prepared, key string, cost int64) error {
	if cost == 0 {
		c.asked = append(c.asked, asked{rule, -1})
		return nil
	}
	switch {
	case cost < 0:
		return &KeyError{Method: method, Rule: rule.Name, Reason: fmt.Sprintf("the cost is %d; expected 0 or more", cost)}
	case key == "" && rule.Key != "":
		return &KeyError{Method: method, Rule: rule.Name, Expr: rule.Key, Reason: "the key is empty"}
	}
	claim := c.claim(rule, subject(key), cost)
	if capacity := capacity(claim); claim.Cost > capacity {
		return &NeverAdmissibleError{
			Method: method, Rule: rule.Name, Key: shown(claim.Subject), Cost: claim.Cost, Limit: capacity,
		}
	}
	return nil
}

// claim returns the claim that asks rule for subject. Rules that share their state are one claim, of the sum of the costs and
// the smallest limit: one by one, each might fit where both do not.
func (c *call) claim(rule *prepared, subject string, cost int64) *decide.Claim {
	for i := range c.Claims {
		claim := &c.Claims[i]
		if claim.Rule.ID == rule.numbers.ID && claim.Subject == subject {
			claim.Cost += cost
			claim.Limit = min(claim.Limit, rule.Limit)
			claim.Burst = min(claim.Burst, rule.burst)
			c.asked = append(c.asked, asked{rule, i})
			return claim
		}
	}
	n := len(c.Claims)
	c.asked = append(c.asked, asked{rule, n})
	c.Claims = slices.Grow(c.Claims, 1)[:n+1]
	claim := &c.Claims[n]
	*claim = decide.Claim{Rule: rule.numbers, Subject: subject, Cost: cost, Limit: rule.Limit, Burst: rule.burst}
	return claim
}

// capacity is the largest cost that can ever be admitted.
func capacity(c *decide.Claim) int64 {
	if c.Rule.Kind == decide.Bucket && c.Limit > 0 {
		return c.Burst
	}
	return c.Limit
}

// subject is whom a key names.
func subject(key string) string {
	if key == "" {
		return everybody
	}
	return canonical(key)
}

// shown is the subject as errors have it.
func shown(subject string) string {
	if subject == everybody {
		return ""
	}
	return subject
}

func (c *call) violations(v decide.Verdict) (longest time.Duration, list []Violation) {
	for i, a := range c.asked {
		if a.claim < 0 || c.Claims[a.claim].Earliest <= v.Now {
			continue
		}
		claim := &c.Claims[a.claim]
		wait := time.Duration(claim.Earliest-v.Now) * time.Microsecond
		longest = max(longest, wait)
		list = append(list, Violation{
			Rule: a.rule.Name, Window: a.rule.Window(), Key: shown(claim.Subject), Limit: a.rule.Limit,
			Remaining: claim.Room, RetryAfter: wait, index: i, message: a.rule.Message,
		})
	}
	return longest, list
}

func (c *call) refusal(method string, v decide.Verdict) error {
	e := &TooManyRequestsError{Method: method}
	e.RetryAfter, e.Violations = c.violations(v)
	if e.Message = e.longest().message; e.Message == "" {
		e.Message = defaultMessage
	}
	return e
}
