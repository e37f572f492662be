package simulate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/printable"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// Compare decides each call by the rules before and by the rules now, each in a store of its own that is empty at first. The rules are those of all
// methods, with their names, so methods share counts as they do in a program. The column method of the load says which method a call is of; without
// it all rules must be of one method. A rule takes its key, member, cost, limit, when and anchor from the column whose name is the text of its
// key or expression, or else from the column key, member, cost, limit, when or anchor. Rules that lack a column, or share one in a method although
// their texts differ, are left out on both sides.
func Compare(ctx context.Context, before, now []Rule, calls *Calls) (*Comparison, error) {
	c := &comparing{calls: calls, result: &Comparison{Load: calls.Text}}
	for i := range c.sides {
		c.sides[i] = newSimulator(maxCalls, calls.Runs)
	}
	if err := c.prepare(before, now); err != nil {
		return nil, err
	}
	if err := c.decideAll(ctx); err != nil {
		return nil, err
	}
	if err := c.checkCalls(); err != nil {
		return nil, err
	}
	c.result.sort()
	return c.result, nil
}

// comparing is the state of one call of Compare.
type comparing struct {
	calls   *Calls
	sides   [2]*simulator // with the rules before, and with those now
	methods []*method
	byName  map[string][]*method // by what a csv may call them: pkg.Type.Method, Type.Method or Method
	column  int                  // of the method; -1 if all calls are of one
	result  *Comparison
}

// method is a method with rules on a side.
type method struct {
	name  string
	rules []*RuleComparison
	sides [2]asked
}

// asked are the rules that a method asks on one side.
type asked struct {
	rules    []askedRule
	prepared prepared
}

// askedRule is a rule that a method asks.
type askedRule struct {
	*Rule
	index int // in method.rules
	needs []need
}

// prepare pairs the rules, and prepares those that can be compared.
func (c *comparing) prepare(before, now []Rule) error {
	pairs, byName := pairUp(before, now), map[string]*method{}
	c.result.Rules = make([]RuleComparison, len(pairs))
	for i, p := range pairs {
		name := p.either().Method
		m := byName[name]
		if m == nil {
			m = &method{name: name}
			c.methods, byName[name] = append(c.methods, m), m
		}
		c.result.Rules[i] = newRuleComparison(p)
		m.rules = append(m.rules, &c.result.Rules[i])
	}
	for _, m := range c.methods {
		if err := m.prepare(c.calls.columns, c.sides); err != nil {
			return err
		}
	}
	if c.column = c.calls.columns.index("method"); c.column < 0 && len(c.methods) != 1 {
		return fmt.Errorf("the rules are of several methods; write a column method, or choose one with -method: %s", namesOf(c.methods))
	}
	c.nameMethods()
	return nil
}

// nameMethods sets byName. With it, finding the method of a call takes the same time however many methods there are.
func (c *comparing) nameMethods() {
	c.byName = map[string][]*method{}
	for _, m := range c.methods {
		for end, more := m.name, true; more; _, end, more = strings.Cut(end, ".") {
			c.byName[end] = append(c.byName[end], m)
		}
	}
	for _, m := range c.methods {
		c.byName[m.name] = []*method{m}
	}
}

// prepare notes which rules can be compared, and prepares these for the limiters of both sides.
func (m *method) prepare(columns columns, sides [2]*simulator) (err error) {
	var all []need
	for _, r := range m.rules {
		all = append(all, r.pair.needs(columns)...)
	}
	var rules [2][]ratelimit.Rule
	for i, r := range m.rules {
		if r.NotCompared = lacking(r.pair.needs(columns), all); r.NotCompared != "" {
			continue
		}
		for side, rule := range []*Rule{r.pair.was, r.pair.now} {
			if rule != nil {
				m.sides[side].rules = append(m.sides[side].rules, askedRule{rule, i, columns.needs(rule)})
				rules[side] = append(rules[side], rule.Rule)
			}
		}
	}
	for side, s := range sides {
		if m.sides[side].prepared, err = s.prepare(m.name, rules[side]); err != nil {
			return err
		}
	}
	return nil
}

// namesOf returns the names of methods for an error.
func namesOf(methods []*method) string {
	var all []string
	for _, m := range methods {
		all = append(all, m.name)
	}
	return printable.Text(strings.Join(all, ", "), 1000)
}

// methodOf returns the method of a call, or nil if it has no rules.
func (c *comparing) methodOf(r row) (*method, error) {
	if c.column < 0 {
		return c.methods[0], nil
	}
	name := r.field(c.column)
	found := c.byName[name]
	switch len(found) {
	case 0:
		return nil, nil
	case 1:
		return found[0], nil
	}
	return nil, r.wrong(fmt.Errorf("several methods end in %q; write one of %s", name, namesOf(found)))
}

// decideAll decides all calls on both sides.
func (c *comparing) decideAll(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	for _, s := range c.sides {
		defer s.stop()
	}
	defer cancel()
	for r, err := range c.calls.rows {
		if err != nil {
			return err
		}
		m, err := c.methodOf(r)
		if err != nil {
			return err
		}
		if m == nil {
			if c.result.Others++; c.result.Others == 1 {
				c.result.Other = Other{strings.Clone(r.field(c.column)), r.line}
			}
			continue
		}
		c.result.Calls++
		if err := c.decide(ctx, m, r); err != nil {
			return err
		}
	}
	for _, s := range c.sides {
		if err := s.wakeUntil(ctx, longest); err != nil {
			return err
		}
	}
	return nil
}

// checkCalls returns an error if no call is of a method with rules.
func (c *comparing) checkCalls() error {
	switch r := c.result; {
	case r.Calls > 0:
		return nil
	case r.Others > 0:
		return fmt.Errorf("found no call of a method with rules; the first is of %q; expected %s", r.Other.Method, namesOf(c.methods))
	}
	return errNoCalls
}

// decide decides a call on both sides. If it waits on one side, it is decided later.
func (c *comparing) decide(ctx context.Context, m *method, r row) error {
	call := &compared{method: m, line: r.line, at: r.at, rulings: make([][2]ruling, len(m.rules)), left: len(c.sides)}
	for side, s := range c.sides {
		charges, err := m.sides[side].charges(r)
		if err != nil {
			return r.wrong(err)
		}
		if err := s.wakeUntil(ctx, r.at); err != nil {
			return err
		}
		err = s.decide(ctx, m.sides[side].prepared, charges, func(e *ratelimit.Event, err error) error {
			if err != nil {
				return r.wrong(err)
			}
			call.set(side, e, charges)
			if call.left--; call.left == 0 {
				c.result.add(call)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// charges returns what a call charges each rule.
func (a *asked) charges(r row) ([]wrap.Charge, error) {
	charges := make([]wrap.Charge, len(a.rules))
	for i, rule := range a.rules {
		var err error
		if charges[i], err = rule.charge(r); err != nil {
			return nil, fmt.Errorf("%s: %w", printable.Text(rule.Name, 200), err)
		}
	}
	return charges, nil
}

// charge returns what a call charges the rule.
func (a askedRule) charge(r row) (wrap.Charge, error) {
	c := wrap.Charge{Cost: cmp.Or(a.Cost, 1)}
	for _, n := range a.needs {
		field := r.field(n.column)
		if field == "" {
			return c, fmt.Errorf("the %s is missing; %s=%q needs one in each line", n.name, n.argument, n.text)
		}
		if err := n.set(&c, field); err != nil || c.Skip {
			return c, err
		}
	}
	return c, nil
}

// compared is a call that both sides decide.
type compared struct {
	method  *method
	line    int
	at      time.Time
	whole   [2]Verdict
	rulings [][2]ruling // by method.rules
	left    int         // the sides that have not decided yet
}

// ruling is what a rule decides about a call on one side.
type ruling struct {
	Decision
	key     string
	applies bool // false if the rule is not on this side, or its when= is false
}

// set sets what a side decided.
func (c *compared) set(side int, e *ratelimit.Event, charges []wrap.Charge) {
	c.whole[side] = verdict(e)
	asked, outcomes := &c.method.sides[side], e.Rules
	rules := asked.prepared.rules.Rules()
	for i, rule := range asked.rules {
		r := &c.rulings[rule.index][side]
		r.key, r.applies = charges[i].Key, !charges[i].Skip
		if r.applies && charges[i].Cost > 0 && len(outcomes) > 0 && outcomes[0].Rule == rules[i].Name && !unlimited(charges[i], rules[i:]) {
			r.Decision, outcomes = decision(e, &outcomes[0]), outcomes[1:]
		}
	}
}

// unlimited reports whether a call has no limit under the first of these rules, so that the next outcome is that of another rule of its name.
func unlimited(charge wrap.Charge, rules []ratelimit.Rule) bool {
	return rules[0].Computed && charge.Limit == ratelimit.NoLimit &&
		slices.ContainsFunc(rules[1:], func(r ratelimit.Rule) bool { return r.Name == rules[0].Name })
}

// verdict returns what all rules decided.
func verdict(e *ratelimit.Event) Verdict {
	switch {
	case e.Kind == ratelimit.EventRefused:
		return Refused
	case e.Waited > 0:
		return Waited
	}
	return Admitted
}

// decision returns what one rule decided.
func decision(e *ratelimit.Event, o *ratelimit.Outcome) Decision {
	switch result := e.Result(o); {
	case result == ratelimit.ResultRefused:
		return Decision{Refused, Duration(o.RetryAfter), o.Never}
	case result == ratelimit.ResultShadowRefused:
		return Decision{WouldRefuse, Duration(o.RetryAfter), o.Never}
	case o.Waits && verdict(e) == Waited:
		return Decision{Verdict: Waited, Delay: Duration(e.Waited)}
	}
	return Decision{}
}
