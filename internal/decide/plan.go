package decide

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/fleet"
)

// Method is what one method, or one rule of requests, asks of one limiter. It holds the plan of its calls.
type Method struct {
	limiter *Limiter
	rules   *Rules
	plan    atomic.Pointer[plan]
	noted   atomic.Bool // the limiter knows that the rules are used
	next    *Method     // of requests: another rule with the same hash; see Limiter.Find
	alike   int         // how many follow
}

// name returns pkg.Type.Method, or "" for requests, of which calls know no Method.
func (m *Method) name() string {
	if m == nil {
		return ""
	}
	return m.rules.Method
}

// plan is what a Method asks as long as nothing changes. It never changes itself: when other settings are in force, or one of them has ended,
// the next call makes a new plan.
type plan struct {
	inForce *fleet.InForce // the settings when it was made
	until   time.Time      // when the first of its settings for all keys ends; zero means never
	rules   []planned
}

// planned is a rule of a plan.
type planned struct {
	rule     *Rule // as it is in force for all keys that have no settings of their own
	declared *Rule
	err      error // why the store cannot decide the rule
	stations station
	mayShare bool // an earlier rule of the method may have the same count

	settings  *fleet.OfRule
	byPattern *fleet.ByPattern // nil if there are none
	overrides []*fleet.Setting // those that made this rule, the most exact one first
	under     sync.Map         // of *planned, by what overrides this rule for some keys: the *fleet.Setting of a key, or the *fleet.Matched of a pattern
}

// station is a set of stations that calls of a rule visit on their way to a decision. Most calls visit none. A station is a condition in the way of
// a call: what it does is in the file that the package's comment names.
type station uint8

const (
	ofKey      station = 1 << iota // there are settings for keys, or for patterns of them
	hashed                         // subjects are not the escaped keys of callers
	members                        // calls bring members
	releases                       // calls give their permits back when they end
	unenforced                     // the rule refuses nothing
	ofProcess                      // the rule has instance scope: another decider takes it
	costly                         // the call asks for more than one permit
	anchored                       // calls bring anchors
)

// current returns the plan for a call.
func (m *Method) current() *plan {
	p, l := m.plan.Load(), m.limiter
	if p == nil || p.inForce != l.inForce() || !p.until.IsZero() && !l.fleet.Now().Before(p.until) {
		p = m.replan()
	}
	return p
}

// replan makes the plan anew, by the settings that are now in force.
func (m *Method) replan() *plan {
	l := m.limiter
	l.Notify()
	p := &plan{inForce: l.inForce(), rules: make([]planned, len(m.rules.All))}
	for i, rule := range m.rules.All {
		r := &p.rules[i]
		r.declared, r.err = rule, l.Supports(rule, 0)
		r.settings, r.byPattern = p.inForce.Of(rule.Numbers.Name), p.inForce.ByPattern(rule.Numbers.Name)
		r.overrides = l.unexpired(p.inForce.ForKey(rule.Numbers.Name, "", "", true).Overrides...) // no key, so those for all keys
		for _, s := range r.overrides {
			if !s.Until.IsZero() && (p.until.IsZero() || s.Until.Before(p.until)) {
				p.until = s.Until
			}
		}
		r.rule = l.overridden(rule, r.overrides)
		r.stations = l.stationsOf(r)
		l.noteTexts(r)
		for j := range i {
			r.mayShare = r.mayShare || p.rules[j].rule.mayCountWith(r.rule)
		}
	}
	m.plan.Store(p)
	return p
}

// stationsOf returns the stations that calls of a rule visit.
func (l *Limiter) stationsOf(p *planned) (s station) {
	r := p.rule
	for _, visit := range []struct {
		is bool
		at station
	}{
		{p.settings.Len() > 0 || p.byPattern.Len() > 0, ofKey},
		{l.hashes(r) || l.shownKeys, hashed},
		{r.Distinct != "", members},
		{r.Row.Releases, releases},
		{r.Ask.Mode != engine.Enforce, unenforced},
		{r.Instance, ofProcess},
		{r.Numbers.Every.Zone != nil, anchored},
	} {
		if visit.is {
			s |= visit.at
		}
	}
	return s
}

// forKey returns what the rule is for a key, as the settings of the key and of its patterns make it, and how long the key is still blocked and paused.
// text is the key as the caller writes it.
func (p *planned) forKey(l *Limiter, text, subject string) (of *planned, blockLeft, pauseLeft time.Duration) {
	of = p
	k := p.settings.OfKey(subject)
	if p.byPattern != nil {
		for _, m := range p.byPattern.Match(text, subject, l.hashes(p.declared)) {
			if m == nil {
				continue
			}
			if len(m.Overrides) > 0 {
				of = of.overriddenBy(l, m, m.Until, m.Overrides...)
			}
			k.Block, k.Pause = fleet.Later(k.Block, m.Block), fleet.Later(k.Pause, m.Pause)
		}
	}
	if k.Override != nil {
		of = of.overriddenBy(l, k.Override, k.Override.Until, k.Override)
	}
	if of.rule.enforces() {
		blockLeft, pauseLeft = l.timeLeft(k.Block), l.timeLeft(k.Pause)
	}
	return of, blockLeft, pauseLeft
}

// overriddenBy returns the rule as more exact overrides make it. The plan keeps that, by what they are known by, until the first of them ends: at
// until, or never if that is zero.
func (p *planned) overriddenBy(l *Limiter, by any, until time.Time, more ...*fleet.Setting) *planned {
	if !until.IsZero() && !l.fleet.Now().Before(until) {
		l.fleet.Drop()
		return p.with(l, l.unexpired(more...))
	}
	if known, ok := p.under.Load(by); ok {
		return known.(*planned)
	}
	of := p.with(l, more)
	p.under.Store(by, of)
	return of
}

// with returns the rule as more exact overrides make it.
func (p *planned) with(l *Limiter, more []*fleet.Setting) *planned {
	if len(more) == 0 {
		return p
	}
	of := &planned{declared: p.declared, err: p.err, mayShare: true, settings: p.settings, byPattern: p.byPattern, overrides: slices.Concat(more, p.overrides)}
	of.rule = l.overridden(p.declared, of.overrides)
	of.stations = l.stationsOf(of)
	return of
}

// ForKey are the settings that hold for a key of a rule.
type ForKey = fleet.ForKey

// ForKey returns the settings that hold for a key of a rule. text is the key as callers write it. It is for what happens seldom: calls have plans.
func (l *Limiter) ForKey(rule *Rule, text, subject string) ForKey {
	all := l.inForce().ForKey(rule.Numbers.Name, text, subject, l.hashes(rule))
	all.Overrides = l.unexpired(all.Overrides...)
	for _, s := range []**fleet.Setting{&all.Block, &all.Pause} {
		if l.timeLeft(*s) == 0 {
			*s = nil
		}
	}
	return all
}

// InForce returns what a rule is for a key, as the overrides in force make it. It is for what happens seldom: calls have plans.
func (l *Limiter) InForce(rule *Rule, text, subject string) *Rule {
	return l.overridden(rule, l.ForKey(rule, text, subject).Overrides)
}

// methods are the rules of requests: a bounded number of them. When there are too many, a new one replaces an arbitrary one. So if a program uses a
// few more rules in turns than are kept, most of them are found.
type methods struct {
	byHash sync.Map // of *Method, by a hash of the rule as a uint64
	mu     sync.Mutex
	n      int // how many are kept
}

// MaxRequests bounds the rules of requests that a limiter keeps: about 20 MB.
const MaxRequests = 40_000

// MaxAlike bounds how many rules with one hash are kept, such as those that differ in their messages alone. They are compared one by one.
const MaxAlike = 64

// Find returns the first rule of requests with a hash, or nil. Next returns the others.
func (l *Limiter) Find(hash uint64) *Method {
	m, _ := l.methods.byHash.Load(hash)
	first, _ := m.(*Method)
	return first
}

// Next returns the next rule of requests with the same hash, or nil.
func (m *Method) Next() *Method { return m.next }

// Rule returns the rule of requests.
func (m *Method) Rule() *Rule { return m.rules.All[0] }

// Remember keeps a rule of requests for Find.
func (l *Limiter) Remember(hash uint64, rule *Rule) *Method {
	k := &l.methods
	k.mu.Lock()
	defer k.mu.Unlock()
	m := &Method{limiter: l, rules: rule.Of, next: l.Find(hash)}
	if m.next != nil {
		m.alike = m.next.alike + 1
	}
	if m.alike == MaxAlike { // the program makes ever new rules
		k.n -= m.alike
		m.next, m.alike = nil, 0
	}
	if k.n++; k.n > MaxRequests {
		k.evict(hash)
	}
	k.byHash.Store(hash, m)
	return m
}

// evict forgets rules of other hashes until there are not too many. The methods must be locked.
func (k *methods) evict(hash uint64) {
	k.byHash.Range(func(other, first any) bool {
		if other != hash {
			k.byHash.Delete(other)
			k.n -= first.(*Method).alike + 1
		}
		return k.n > MaxRequests
	})
}

// Requests returns how many rules of requests the limiter keeps.
func (l *Limiter) Requests() int {
	l.methods.mu.Lock()
	defer l.methods.mu.Unlock()
	return l.methods.n
}

// Type is the rules of the methods of a type.
type Type struct {
	Name    string // pkg.Type
	Methods []*Rules
}

// Limits are what the methods of a type ask of one limiter. A wrapper holds them.
type Limits struct {
	limiter *Limiter
	methods []Method
}

// LimitsOf returns what the methods of a type ask of the limiter, the same each time.
func (l *Limiter) LimitsOf(t *Type) *Limits {
	known, ok := l.types.Load(t)
	if !ok {
		known, _ = l.types.LoadOrStore(t, l.NewLimits(t))
	}
	return known.(*Limits)
}

// NewLimits returns what the methods of a type ask of the limiter, and notes that they will be called.
func (l *Limiter) NewLimits(t *Type) *Limits {
	all := &Limits{limiter: l, methods: make([]Method, len(t.Methods))}
	for i, rules := range t.Methods {
		m := &all.methods[i]
		m.limiter, m.rules = l, rules
		m.note()
	}
	return all
}

// Limiter returns the limiter.
func (l *Limits) Limiter() *Limiter { return l.limiter }

// Method returns what the method with an index asks.
func (l *Limits) Method(i int) *Method { return &l.methods[i] }
