package simulate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"log/slog"
	"slices"
	"strconv"
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
	c := &comparing{calls: calls, result: &Comparison{Load: calls.Text}, seed: maphash.MakeSeed()}
	for i := range c.sides {
		c.sides[i] = newSide(maxCalls)
	}
	if err := c.prepare(before, now); err != nil {
		return nil, err
	}
	if err := c.decideAll(ctx); err != nil {
		return nil, err
	}
	return c.result, c.summarize()
}

// comparing is the state of one call of Compare.
type comparing struct {
	calls   *Calls
	sides   [2]*side // the rules before, and now
	methods []*method
	byName  map[string]*method // by all endings of their names; nil if several end so
	column  int                // of the method, or -1
	result  *Comparison
	seed    maphash.Seed
}

// method is a method with rules on a side.
type method struct {
	name  string
	pairs []int // indices in Comparison.Rules
	asks  [2]ask
}

// ask is what a method asks of one side.
type ask struct {
	rules    []asked
	prepared *wrap.Rules
	limits   *wrap.Limits
}

// asked is a rule that a method asks.
type asked struct {
	*Rule
	pair int         // its index in method.pairs
	in   [values]int // the columns of its values
}

// prepare pairs the rules, and prepares those that can be compared.
func (c *comparing) prepare(before, now []Rule) error {
	pairs, byMethod := pairUp(before, now), map[string][]pair{}
	for _, p := range pairs {
		name := p.either().Method
		byMethod[name] = append(byMethod[name], p)
	}
	for _, p := range pairs {
		m := c.method(p.either().Method)
		m.pairs = append(m.pairs, len(c.result.Rules))
		r := newRuleComparison(p)
		if r.NotCompared = c.calls.table.lacking(p, byMethod[m.name]); r.NotCompared == "" {
			for i, rule := range []*Rule{p.was, p.now} {
				if rule != nil {
					m.asks[i].rules = append(m.asks[i].rules, asked{rule, len(m.pairs) - 1, c.calls.table.valuesIn(rule)})
				}
			}
		}
		c.result.Rules = append(c.result.Rules, r)
	}
	for _, m := range c.methods {
		for i := range m.asks {
			if err := c.sides[i].prepare(m.name, &m.asks[i]); err != nil {
				return err
			}
		}
	}
	return c.nameMethods()
}

// method returns the method of a name, which it adds if it is new.
func (c *comparing) method(name string) *method {
	i := slices.IndexFunc(c.methods, func(m *method) bool { return m.name == name })
	if i < 0 {
		i = len(c.methods)
		c.methods = append(c.methods, &method{name: name})
	}
	return c.methods[i]
}

// nameMethods finds the column of the method, and all the names that it may have there: pkg.Type.Method, Type.Method and Method.
func (c *comparing) nameMethods() error {
	c.column, c.byName = c.calls.table.column("method"), map[string]*method{}
	if c.column < 0 && len(c.methods) != 1 {
		return fmt.Errorf("the rules are of several methods; write a column method, or choose one with -method: %s", c.names())
	}
	for _, m := range c.methods {
		for end, more := m.name, true; more; _, end, more = strings.Cut(end, ".") {
			_, taken := c.byName[end]
			if c.byName[end] = m; taken {
				c.byName[end] = nil
			}
		}
	}
	for _, m := range c.methods {
		c.byName[m.name] = m
	}
	return nil
}

func (c *comparing) names() string {
	var names []string
	for _, m := range c.methods {
		names = append(names, m.name)
	}
	return printable.Text(strings.Join(names, ", "), 1000)
}

// methodOf returns the method of a call, or nil if it has no rules.
func (c *comparing) methodOf(fields []string) (*method, error) {
	if c.column < 0 {
		return c.methods[0], nil
	}
	name := field(fields, c.column)
	m, known := c.byName[name]
	if known && m == nil {
		return nil, fmt.Errorf("several methods end in %q; write one of %s", name, c.names())
	}
	return m, nil
}

// decideAll decides all calls on both sides.
func (c *comparing) decideAll(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	for _, s := range c.sides {
		defer s.leave()
	}
	defer cancel()
	for {
		fields, at, err := c.calls.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		m, err := c.methodOf(fields)
		if err != nil {
			return c.calls.table.at(err)
		}
		if m == nil {
			if c.result.Others++; c.result.Others == 1 {
				c.result.other = strings.Clone(field(fields, c.column))
			}
			continue
		}
		c.result.Calls++
		if err := c.decide(ctx, m, fields, at); err != nil {
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

// decide decides a call on both sides. If it waits on one side, it is decided later.
func (c *comparing) decide(ctx context.Context, m *method, fields []string, at time.Duration) error {
	now, line := epoch.Add(at), c.calls.table.line
	d := &double{method: m, line: line, at: now, left: len(c.sides)}
	call := Call{After: at, Key: c.alike(fields)}
	for i, s := range c.sides {
		charges, err := m.asks[i].charges(fields)
		if err != nil {
			return c.calls.table.at(err)
		}
		if err := s.wakeUntil(ctx, now); err != nil {
			return err
		}
		err = s.enter(call, func() error {
			decided, err := s.decide(ctx, &m.asks[i], charges, c.calls.Runs)
			if err != nil {
				return fmt.Errorf("line %d: %w", line, err)
			}
			decided.fill(m, &m.asks[i], charges)
			d.sides[i] = decided
			if d.left--; d.left == 0 {
				c.result.add(d)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// alike returns a number that equal calls have in common.
func (c *comparing) alike(fields []string) int {
	var h maphash.Hash
	h.SetSeed(c.seed)
	timestamp := c.calls.table.column(usual[0])
	for i, text := range fields {
		if i != timestamp {
			maphash.WriteComparable(&h, text)
		}
	}
	return int(h.Sum64())
}

// charges returns what a call charges each rule.
func (a *ask) charges(fields []string) ([]wrap.Charge, error) {
	charges := make([]wrap.Charge, len(a.rules))
	for i, rule := range a.rules {
		var err error
		if charges[i], err = rule.charge(fields); err != nil {
			return nil, fmt.Errorf("%s: %w", printable.Text(rule.Name, 200), err)
		}
	}
	return charges, nil
}

// charge returns what a call charges the rule.
func (r asked) charge(fields []string) (u wrap.Charge, err error) {
	u.Cost = cmp.Or(r.Cost, 1)
	var text [values]string
	needed := r.expressions()
	for _, i := range []int{whenValue, keyValue, memberValue, costValue, limitValue, anchorValue} {
		if needed[i] == "" {
			continue
		}
		if text[i] = field(fields, r.in[i]); text[i] == "" {
			return u, fmt.Errorf("the %s is missing; %s=%q needs one in each line", valueColumns[i], valueArguments[i], needed[i])
		}
		switch i {
		case whenValue:
			applies, err := strconv.ParseBool(text[i])
			if err != nil {
				return u, fmt.Errorf("when is %q; expected true or false", text[i])
			}
			if !applies {
				return wrap.Charge{Skip: true}, nil
			}
		case costValue:
			u.Cost, err = parseCost(text[i])
		case limitValue:
			if u.Limit, err = strconv.ParseInt(text[i], 10, 64); err != nil || u.Limit < ratelimit.NoLimit {
				err = fmt.Errorf("the limit is %q; expected an integer of at least 0, or -1 for no limit", text[i])
			}
		case anchorValue:
			u.Anchor, err = parseAnchor(text[i])
		}
		if err != nil {
			return u, err
		}
	}
	u.Key, u.Member = text[keyValue], text[memberValue]
	return u, nil
}

// side is one of the two lists of rules, with its counts.
type side struct {
	*line
	limiter *ratelimit.Limiter
	event   ratelimit.Event // the last decision
}

// newSide returns a side without rules, with room for a number of counts.
func newSide(counts int) *side {
	s := &side{line: newLine(counts)}
	s.keyed = true
	s.limiter = ratelimit.New(s.line, ratelimit.WithLogger(slog.New(slog.DiscardHandler)), ratelimit.WithObserver(func(_ context.Context, e *ratelimit.Event) {
		if e.Kind == ratelimit.EventAdmitted || e.Kind == ratelimit.EventRefused {
			s.event = *e
			s.event.Rules = slices.Clone(e.Rules)
		}
	}))
	return s
}

// prepare prepares the rules of a method.
func (s *side) prepare(method string, a *ask) error {
	var rules []ratelimit.Rule
	for _, r := range a.rules {
		rule := r.Rule.Rule
		rule.OnError = ratelimit.FailClosed // a full store ends the comparison
		rules = append(rules, rule)
		s.releases = s.releases || rule.Releases()
	}
	if _, err := ratelimit.Prepare(method, rules...); err != nil {
		return err
	}
	a.prepared = wrap.NewRules(method, rules...)
	a.limits = a.prepared.On(s.limiter)
	return nil
}

// decide decides a call as generated code does.
func (s *side) decide(ctx context.Context, a *ask, charges []wrap.Charge, runs time.Duration) (outcome, error) {
	s.event = ratelimit.Event{}
	taken, err := wrap.Begin(ctx, a.limits, a.prepared, charges...)
	if err == nil {
		s.starts(taken, runs)
	}
	if never, ok := errors.AsType[*ratelimit.NeverAdmissibleError](err); ok { // there is no event for this error
		return outcome{whole: Refused, rules: []ratelimit.Outcome{{Rule: never.Rule, Refused: true, Never: true}}}, nil
	}
	o := outcome{rules: s.event.Rules}
	switch {
	case errors.Is(err, ratelimit.ErrTooManyRequests):
		o.whole = Refused
	case err != nil:
		return outcome{}, err
	case s.event.Waited > 0:
		o.whole, o.waited = Waited, s.event.Waited
	}
	return o, nil
}

// outcome is how one side decided a call.
type outcome struct {
	whole     Verdict
	waited    time.Duration
	rules     []ratelimit.Outcome
	decisions []Decision // of the rules, by the pairs of the method
	keys      []string   // likewise
	applies   []bool     // likewise; false if the rule is not on this side, or its when= is false
}

// fill sets which rules apply to the call, and what each decided.
func (o *outcome) fill(m *method, a *ask, charges []wrap.Charge) {
	o.decisions, o.keys, o.applies = make([]Decision, len(m.pairs)), make([]string, len(m.pairs)), make([]bool, len(m.pairs))
	names, left := a.prepared.Rules(), o.rules
	for i, rule := range a.rules {
		o.keys[rule.pair], o.applies[rule.pair] = charges[i].Key, !charges[i].Skip
		if !charges[i].Skip && len(left) > 0 && left[0].Rule == names[i].Name && !a.free(i, charges[i]) {
			o.decisions[rule.pair] = o.decision(&left[0])
			left = left[1:]
		}
	}
}

// free reports whether a call has no limit under the rule with this index, so that the next outcome is that of another rule of its name.
func (a *ask) free(i int, charge wrap.Charge) bool {
	names := a.prepared.Rules()
	return names[i].Computed && charge.Limit == ratelimit.NoLimit &&
		slices.ContainsFunc(names[i+1:], func(r ratelimit.Rule) bool { return r.Name == names[i].Name })
}

// decision returns what a rule decided.
func (o *outcome) decision(r *ratelimit.Outcome) Decision {
	d := Decision{Delay: Duration(r.RetryAfter), Never: r.Never}
	switch {
	case r.Refused && r.Mode == ratelimit.ModeEnforce:
		d.Verdict = Refused
	case r.Refused && r.Mode == ratelimit.ModeShadow:
		d.Verdict = WouldRefuse
	case r.Waits && o.whole == Waited:
		return Decision{Verdict: Waited, Delay: Duration(o.waited)}
	default:
		return Decision{}
	}
	return d
}

// double is a call that both sides decide.
type double struct {
	method *method
	line   int
	at     time.Time
	sides  [2]outcome
	left   int // the sides that have not decided yet
}
