package ratelimit

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"strings"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/cron"
	"github.com/ratelimit-go/ratelimit/internal/decide"
	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/internal/period"
)

// Prepared are the rules of one method, ready for every limiter. Generated code has them: see package wrap. A program that calls a limiter itself
// passes a [Request] for each rule.
type Prepared decide.Rules

// Prepare checks and prepares the rules of a method, whose name is pkg.Type.Method. A rule without a name gets the name of the method. The error
// is a *[RuleError].
func Prepare(method string, rules ...Rule) (*Prepared, error) {
	if len(rules) > maxRules {
		return nil, methodError(method, "rules", fmt.Sprintf("found %d; expected at most %d", len(rules), maxRules))
	}
	all, unnamed := &decide.Rules{Method: method}, 0
	for _, rule := range rules {
		label := rule.Name
		if rule.Name == "" || rule.Name == method {
			rule.Name, label = method, method
			if unnamed++; unnamed > 1 {
				label = fmt.Sprintf("%s#%d", method, unnamed)
			}
		}
		p, err := rule.prepare(method)
		if method != "" {
			err = cmp.Or(err, rule.checkQueue())
		}
		if err != nil {
			return nil, err
		}
		for _, count := range p.Counts() {
			count.Label, count.Unnamed, count.Of = label, key.IsUnnamed(rule.Name, method), all
			ruleOf(count).unnamed = count.Unnamed
		}
		all.All = append(all.All, p)
	}
	return (*Prepared)(all), nil
}

// Rules returns the rules with the names that errors and events show.
func (p *Prepared) Rules() []Rule {
	rules := make([]Rule, len(p.All))
	for i, rule := range p.All {
		rules[i] = *ruleOf(rule)
		rules[i].Name = rule.Label
	}
	return rules
}

// declared implements decide.Declared.
type declared Rule

// ruleOf returns a rule as programs write it.
func ruleOf(rule *decide.Rule) *Rule { return (*Rule)(rule.Declared.(*declared)) }

// prepare checks a rule and prepares it for decisions. method is "" for the rule of a request.
func (r Rule) prepare(method string) (*decide.Rule, error) {
	label := r.Name
	if r.unnamed && method == "" {
		r.Name, _, _ = strings.Cut(r.Name, "#")
		method = r.Name
	}
	window := r.Window()
	p, err := r.prepareAs(label, window, key.Tag(r.Name, method, window, r.Key))
	if err != nil {
		return nil, err
	}
	of := &decide.Rules{All: []*decide.Rule{p}}
	for _, count := range p.Counts() {
		count.Of = of
	}
	return p, nil
}

func (r Rule) prepareAs(label, window, tag string) (*decide.Rule, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	p := &decide.Rule{
		Declared: (*declared)(&r), Label: label, Window: window, Key: r.Key, Distinct: r.Distinct, Message: r.Message, Unreported: r.Unreported,
		Algorithm: r.algorithm(), Limit: r.Limit, MostLimit: r.mostLimit(), Burst: r.Burst, NoStore: r.Warmup > 0 || r.Algorithm == LeakyBucket && r.Prepay,
		Per: r.Per, Wait: r.Wait, Queue: r.Queue, Computed: r.Computed, Unnamed: r.unnamed, PlainKeys: r.Hash == HashNever,
		Refunds: r.Refund == RefundError, Instance: r.Scope == ScopeInstance, OnError: decide.Policy(r.OnError),
		Numbers: engine.Rule{
			Name: r.Name, Tag: tag, Kind: r.kind(), Per: r.length().Microseconds(), Warmup: r.Warmup.Microseconds(),
			Slices: r.sliceCount(), Block: r.Block.Microseconds(), BlockMax: r.BlockMax.Microseconds(), Pausable: r.Pausable, Lease: r.Lease.Microseconds(),
		},
	}
	if r.Algorithm == LeakyBucket {
		p.Burst = 1
	}
	if err := r.setCalendar(&p.Numbers); err != nil {
		return nil, err
	}
	p.Row = p.Numbers.Kind.Row()
	p.Ask = engine.Ask{Rule: &p.Numbers, Cost: 1, Limit: r.Limit, Burst: p.Capacity(r.Limit), Mode: engine.Mode(r.Mode)}
	if !r.Computed || !p.Numbers.Kind.KeepsTimes() {
		return p, nil
	}
	above := r
	above.Amounts = true
	other, err := above.prepareAs(label, above.Window(), tagOf(p, &above))
	if err == nil {
		p.Other, other.Other = other, p
	}
	return p, err
}

// Override implements decide.Declared.
func (d *declared) Override(rule *decide.Rule, overrides []*fleet.Setting) (*decide.Rule, error) {
	var v Override
	for _, s := range overrides {
		under, err := overrideOf(s)
		if err != nil {
			return nil, err
		}
		v = v.or(under)
	}
	if v.Per != 0 && (d.Cron != "" || d.Every != "") {
		name, value := "cron", d.Cron
		if d.Every != "" {
			name, value = "every", d.Every
		}
		return nil, (*Rule)(d).wrong("per", "does not apply: the rule has %s=%s", name, value)
	}
	changed := v.apply(Rule(*d))
	p, err := changed.prepareAs(rule.Label, changed.Window(), tagOf(rule, &changed))
	if err != nil {
		return nil, err
	}
	for _, count := range p.Counts() {
		count.Base, count.Of, count.Factor, count.Unnamed, count.Priced = rule, rule.Of, v.Factor, rule.Unnamed, rule.Priced
	}
	return p, clash(rule, p, v)
}

// tagOf returns the tag that a rule has after an override has changed it.
func tagOf(rule *decide.Rule, changed *Rule) string {
	return changed.Window() + strings.TrimPrefix(rule.Numbers.Tag, rule.Window)
}

// clash returns an error if an override would give two different rules of a method one count. Such rules cannot decide a call together. If
// another rule has that count without the override, or comes first in the method, changed cannot have it.
func clash(rule, changed *decide.Rule, v Override) error {
	tag, first := changed.Numbers.Tag, true
	if tag == rule.Numbers.Tag {
		return nil
	}
	for _, other := range rule.Of.All {
		first = first && other != rule
		if other == rule || other.Numbers.Name != rule.Numbers.Name || other.Key != rule.Key || other.Instance != rule.Instance {
			continue
		}
		overridden := v.apply(*ruleOf(other))
		if (other.Numbers.Tag == tag || first && tagOf(other, &overridden) == tag) && !countAlike(*ruleOf(changed), overridden) {
			return ruleOf(rule).wrong("per", "found %s, which is the window of another rule of this name in the method; give one of them another name", changed.Window)
		}
	}
	return nil
}

// CountsLike implements decide.Declared.
func (d *declared) CountsLike(other decide.Declared) bool {
	return countAlike(Rule(*d), Rule(*other.(*declared)))
}

// countAlike reports whether two rules of one count can decide a call together: they differ at most in where their keys come from, and in what they
// say to callers.
func countAlike(a, b Rule) bool {
	a.Key, a.Message, a.Unreported = b.Key, b.Message, b.Unreported
	return a == b
}

// WrongLimit implements decide.Declared.
func (d *declared) WrongLimit(limit int64) string {
	r := (*Rule)(d)
	if wrong := r.wrongLimit(limit); wrong != "" || !r.refillsTooSlowly(limit) {
		return wrong
	}
	return fmt.Sprintf("found %d, at which a burst of %d takes over a hundred years to fill", limit, r.Burst)
}

// CannotWait implements decide.Declared.
func (d *declared) CannotWait() error { return (*Rule)(d).checkWaits(true) }

// Wrong implements decide.Declared.
func (d *declared) Wrong(argument, reason string) error {
	return &RuleError{Rule: d.Name, Argument: argument, Reason: reason}
}

// Text implements decide.Declared.
func (d *declared) Text(label string) string {
	used := usedText{Rule(*d).forTools(), d.unnamed}
	used.Name = label
	text, _ := json.Marshal(used) // texts and numbers: it never fails
	return string(text)
}

// sliceCount is how many slices the window of a SlidingCounter has.
func (r *Rule) sliceCount() int64 { return cmp.Or(r.Slices, defaultSlices) }

// setCalendar sets when the windows of a calendar rule begin.
func (r Rule) setCalendar(numbers *engine.Rule) error {
	if r.Cron == "" && r.Every == "" {
		return nil
	}
	zone, err := time.LoadLocation(r.TZ)
	if err != nil || r.TZ == "Local" {
		return r.wrong("tz", "unknown time zone %q; expected an IANA name such as Europe/Berlin", r.TZ)
	}
	if r.Every != "" {
		every, err := period.ParseEvery(r.Every)
		if err != nil {
			return r.wrong("every", "%v", err)
		}
		numbers.Every.Zone = zone
		numbers.Every.Days, numbers.Every.Months = every.Length()
		return nil
	}
	next, hourly, err := cron.Parse(r.Cron)
	if err != nil {
		return r.wrong("cron", "%v", err)
	}
	numbers.Schedule = engine.NewSchedule(next, hourly, zone)
	return nil
}

// farthest is how far ahead the cron package looks for the next fire time.
const farthest = 5 * 366 * 24 * time.Hour

// Boundaries returns the next n times after now at which the rule's calendar windows end, in the rule's time zone. It returns fewer if five years
// pass between two of them. It returns none for a rule without Cron, because its windows depend on the calls or their anchors. The error is a
// *RuleError.
func (r Rule) Boundaries(now time.Time, n int) ([]time.Time, error) {
	p, err := r.prepare("")
	if err != nil || r.Cron == "" {
		return nil, err
	}
	var ends []time.Time
	for last := now; len(ends) < n; {
		_, stop := p.Numbers.Schedule.Window(last.UnixMicro())
		end := time.UnixMicro(stop).In(p.Numbers.Schedule.Zone)
		if end.Sub(last) > farthest {
			break
		}
		ends, last = append(ends, end), end
	}
	return ends, nil
}

// clone returns a copy of the rule with texts of its own.
func (r Rule) clone() Rule {
	for _, text := range []*string{&r.Name, &r.Key, &r.Cron, &r.Every, &r.TZ, &r.Distinct, &r.Message} {
		*text = strings.Clone(*text)
	}
	return r
}

var ruleSeed = maphash.MakeSeed()

// hash returns a hash of the fields in which the rules of requests usually differ. It leaves Message out: a program may write a new one each time.
func (r *Rule) hash() uint64 {
	h := uint64(r.Limit)*0x9e3779b97f4a7c15 ^ uint64(r.Per)*0xff51afd7ed558ccd ^ maphash.String(ruleSeed, r.Name)
	if r.Cron != "" || r.Every != "" {
		h = 31*(31*h^maphash.String(ruleSeed, r.Cron)^maphash.String(ruleSeed, r.Every)) ^ maphash.String(ruleSeed, r.TZ)
	}
	return h
}

// prepare returns the rule of a request, ready for decisions.
func (l *Limiter) prepare(r *Rule) (*decide.Method, error) {
	hash := r.hash()
	for m := l.machine().Find(hash); m != nil; m = m.Next() {
		if isOf(m.Rule(), r) {
			return m, nil
		}
	}
	p, err := r.clone().prepare("")
	if err != nil {
		return nil, err
	}
	return l.machine().Remember(hash, p), nil
}

// isOf reports whether a rule was prepared from r. An unnamed rule loses the number at the end of its name.
func isOf(rule *decide.Rule, r *Rule) bool {
	if !r.unnamed {
		return *ruleOf(rule) == *r
	}
	named := *ruleOf(rule)
	named.Name = rule.Label
	return named == *r
}
