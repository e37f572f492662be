package decide

import (
	"cmp"
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
	stored, local *fleet.InForce // the settings when it was made: of the store, and of the limiter alone
	until         time.Time      // when the first of its settings for all keys ends; zero means never
	rules         []planned
}

// planned is a rule of a plan.
type planned struct {
	rule     *Rule // as it is in force for all keys that have no settings of their own
	declared *Rule
	err      error // why the store cannot decide the rule
	stations station
	mayShare bool // an earlier rule of the method may have the same count

	stored, local *fleet.OfRule  // the settings of keys, if there are any
	byKey         sync.Map       // of *planned, by subject: the rule for keys with an override of their own
	own           *fleet.Setting // the override that made this rule; only of those in byKey
}

// station is a set of stations that calls of a rule visit on their way to a decision. Most calls visit none. A station is a condition in the way of
// a call: what it does is in the file that the package's comment names.
type station uint8

const (
	ofKey      station = 1 << iota // there are settings for keys
	hashed                         // subjects are not the escaped keys of callers
	members                        // calls bring members
	releases                       // calls give their permits back when they end
	unenforced                     // the rule refuses nothing
	ofProcess                      // the rule has instance scope: another decider takes it
	costly                         // the call asks for more than one permit
)

// current returns the plan for a call.
func (m *Method) current() *plan {
	p, l := m.plan.Load(), m.limiter
	if p == nil || p.stored != l.fleet.InForce() || p.local != l.own.inForce.Load() || !p.until.IsZero() && !l.fleet.Now().Before(p.until) {
		p = m.replan()
	}
	return p
}

// replan makes the plan anew, by the settings that are now in force.
func (m *Method) replan() *plan {
	l := m.limiter
	l.Notify()
	p := &plan{stored: l.fleet.InForce(), local: l.own.inForce.Load(), rules: make([]planned, len(m.rules.All))}
	for i, rule := range m.rules.All {
		r := &p.rules[i]
		r.declared, r.err = rule, l.Supports(rule, 0)
		r.stored, r.local = p.stored.Of(rule.Numbers.Name), p.local.Of(rule.Numbers.Name)
		all := l.ofAllKeys(r)
		if all != nil && !all.Until.IsZero() && (p.until.IsZero() || all.Until.Before(p.until)) {
			p.until = all.Until
		}
		r.rule = l.overridden(rule, nil, all)
		r.stations = l.stationsOf(r)
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
		{p.stored.Len() > 0 || p.local.Len() > 0, ofKey},
		{l.hasher != nil && !r.PlainKeys || l.shownKeys, hashed},
		{r.Distinct != "", members},
		{r.Row.Releases, releases},
		{r.Ask.Mode != engine.Enforce, unenforced},
		{r.Instance, ofProcess},
	} {
		if visit.is {
			s |= visit.at
		}
	}
	return s
}

// forKey returns what the rule is for a subject, as the settings of its key make it, and how long the subject is still blocked and paused.
func (p *planned) forKey(l *Limiter, subject string) (of *planned, blockLeft, pauseLeft time.Duration) {
	k := p.stored.OfKey(subject)
	of = p
	if own := l.inPlaceOf(p.local.OfKey(subject).Override, k.Override); own != nil {
		of = p.overriddenBy(l, own)
	}
	if of.rule.enforces() {
		blockLeft, pauseLeft = l.timeLeft(k.Block), l.timeLeft(k.Pause)
	}
	return of, blockLeft, pauseLeft
}

// overriddenBy returns the rule as the override of a key makes it. The plan keeps that for later calls.
func (p *planned) overriddenBy(l *Limiter, own *fleet.Setting) *planned {
	if known, ok := p.byKey.Load(own.Key); ok && known.(*planned).own == own {
		return known.(*planned)
	}
	of := &planned{declared: p.declared, err: p.err, mayShare: true, stored: p.stored, local: p.local, own: own}
	of.rule = l.overridden(p.declared, own, l.ofAllKeys(p))
	of.stations = l.stationsOf(of)
	p.byKey.Store(own.Key, of)
	return of
}

// inPlaceOf returns the limiter's own override, or that of the store if the limiter has none that holds. It returns nil if neither holds.
func (l *Limiter) inPlaceOf(local, stored *fleet.Setting) *fleet.Setting {
	return cmp.Or(l.unexpired(local), l.unexpired(stored))
}

// ofAllKeys returns the override of a rule for all keys, or nil.
func (l *Limiter) ofAllKeys(p *planned) *fleet.Setting { return l.inPlaceOf(p.local.All, p.stored.All) }

// InForce returns what a rule is for a subject, as the overrides in force make it. It is for what happens seldom: calls have plans.
func (l *Limiter) InForce(rule *Rule, subject string) *Rule {
	name := rule.Numbers.Name
	p := &planned{declared: rule, stored: l.fleet.InForce().Of(name), local: l.own.inForce.Load().Of(name)}
	own := l.inPlaceOf(p.local.OfKey(subject).Override, p.stored.OfKey(subject).Override)
	return l.overridden(rule, own, l.ofAllKeys(p))
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
