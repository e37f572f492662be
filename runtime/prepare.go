package ratelimit

import (
	"cmp"
	"hash/maphash"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/cron"
	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/key"
)

// preparedRule is a rule that is ready to be decided on.
type preparedRule struct {
	Rule
	label   string // the name in errors, events and quotas
	window  string
	numbers *engine.Rule
	row     *engine.Row   // what the engine knows about how the rule counts
	priced  bool          // the rule of a method has cost=
	base    *preparedRule // the rule without overrides; nil if it has none
	method  *methodRules  // nil for the rule of a request, and with overrides
	claim   engine.Claim  // claims one permit, without a subject and a wait; calls copy it
	factor  float64       // multiplies the limits of calls, as an override says: see limitFor; 0 leaves them

	settings atomic.Pointer[ruleSettings] // the settings in force, when a limiter last looked
	usedBy   [usedSlots]atomic.Uint64     // the limiters that noted it as used
}

// prepare checks a rule and prepares it for decisions. method is "" for the rule of a request.
func (r Rule) prepare(method string) (*preparedRule, error) {
	label := r.Name
	if r.unnamed && method == "" {
		r.Name, _, _ = strings.Cut(r.Name, "#")
		method = r.Name
	}
	window := r.Window()
	return r.prepareAs(label, window, key.Tag(r.Name, method, window, r.Key))
}

func (r Rule) prepareAs(label, window, tag string) (*preparedRule, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	numbers := &engine.Rule{
		Name: r.Name, Tag: tag, Kind: r.kind(), Per: r.length().Microseconds(), Warmup: r.Warmup.Microseconds(),
		Slices: r.sliceCount(), Block: r.Block.Microseconds(), BlockMax: r.BlockMax.Microseconds(), Pausable: r.Pausable, Lease: r.Lease.Microseconds(),
		Instance: r.Scope == ScopeInstance, OnError: uint32(r.OnError),
	}
	if r.Cron != "" {
		var err error
		if numbers.Schedule, err = r.schedule(); err != nil {
			return nil, err
		}
	}
	return &preparedRule{
		Rule: r, label: label, window: window, numbers: numbers, row: numbers.Kind.Row(),
		claim: engine.Claim{Rule: numbers, Cost: 1, Limit: r.Limit, Burst: r.capacity(r.Limit), Mode: engine.Mode(r.Mode)},
	}, nil
}

// countAlike reports whether two rules of one count can decide a call together: they differ at most in where their keys come from, and in what they
// say to callers.
func countAlike(a, b Rule) bool {
	a.Key, a.Message = b.Key, b.Message
	return a == b
}

// limitFor returns the limit for a call. Only a rule with Computed uses the given one. The factor of an override does not raise it above the
// largest limit that the rule can have.
func (p *preparedRule) limitFor(given int64) int64 {
	if !p.Computed {
		return p.Limit
	}
	return min(times(given, p.factor), max(given, p.mostLimit()))
}

// capacity is how many permits a bucket holds at a limit.
func (r *Rule) capacity(limit int64) int64 {
	switch {
	case r.Warmup > 0, r.Algorithm == LeakyBucket && r.Prepay:
		return 0
	case r.Algorithm == LeakyBucket:
		return 1
	case r.Burst > 0:
		return r.Burst
	default:
		return limit
	}
}

// sliceCount is how many slices the window of a SlidingCounter has.
func (r *Rule) sliceCount() int64 { return cmp.Or(r.Slices, defaultSlices) }

// delay returns how long the rule may delay a call at a limit, in microseconds: at most longest, and at most the time that the permits of
// its queue take to leave. That time is rounded up, because places are. In a bucket of one permit each place is rounded up from the place
// before it.
func (r *Rule) delay(longest time.Duration, limit int64) int64 {
	wait := longest.Microseconds()
	if r.Queue == 0 || limit == 0 {
		return wait
	}
	per := r.Per.Microseconds()
	if r.capacity(limit) == 1 {
		per += (limit - per%limit) % limit
	}
	return min(wait, engine.MulDiv(r.Queue, per, limit))
}

func (r Rule) schedule() (*engine.Schedule, error) {
	zone, err := time.LoadLocation(r.TZ)
	if err != nil || r.TZ == "Local" {
		return nil, r.wrong("tz", "unknown time zone %q; expected an IANA name such as Europe/Berlin", r.TZ)
	}
	next, hourly, err := cron.Parse(r.Cron)
	if err != nil {
		return nil, r.wrong("cron", "%v", err)
	}
	return engine.NewSchedule(next, hourly, zone), nil
}

// farthest is how far ahead the cron package looks for the next fire time.
const farthest = 5 * 366 * 24 * time.Hour

// Boundaries returns the next n times after now at which the rule's calendar windows end, in the rule's time zone. It returns fewer if five
// years pass between two of them. It returns none for a rule without Cron, because its windows depend on the calls. The error is a *RuleError.
func (r Rule) Boundaries(now time.Time, n int) ([]time.Time, error) {
	p, err := r.prepare("")
	if err != nil || r.Cron == "" {
		return nil, err
	}
	var ends []time.Time
	for last := now; len(ends) < n; {
		_, stop := p.numbers.Schedule.Window(last.UnixMicro())
		end := time.UnixMicro(stop).In(p.numbers.Schedule.Zone)
		if end.Sub(last) > farthest {
			break
		}
		ends, last = append(ends, end), end
	}
	return ends, nil
}

// clone returns a copy of the rule with texts of its own.
func (r Rule) clone() Rule {
	for _, text := range []*string{&r.Name, &r.Key, &r.Cron, &r.TZ, &r.Distinct, &r.Message} {
		*text = strings.Clone(*text)
	}
	return r
}

// ruleCache keeps the prepared rules of requests. When it is full, a new rule replaces an arbitrary one: if a program uses a few more rules in
// turns than the cache keeps, it still finds most of them.
type ruleCache struct {
	recent [recentRules]atomic.Pointer[preparedRule]

	mu    sync.Mutex
	rules map[uint64]*preparedRule // by the hash of the rule; at most cachedRules
}

const (
	cachedRules = 40_000 // about 20 MB
	// recentRules is the number of rules that are found by comparison alone. Comparing takes a tenth of the time of hashing a rule.
	recentRules = 64
)

var ruleSeed = maphash.MakeSeed()

// prepare returns the prepared rule of a request.
func (l *Limiter) prepare(r *Rule) (*preparedRule, error) {
	recent := &l.ruleCache.recent[(maphash.String(ruleSeed, r.Name)^uint64(r.Limit))%recentRules]
	if p := recent.Load(); p != nil && p.Rule == *r {
		return p, nil
	}
	p, err := l.ruleCache.find(r)
	if err == nil {
		recent.Store(p)
	}
	return p, err
}

func (c *ruleCache) find(r *Rule) (*preparedRule, error) {
	hash := maphash.Comparable(ruleSeed, *r)
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.rules[hash]; p != nil && p.Rule == *r {
		return p, nil
	}
	p, err := r.clone().prepare("")
	if err != nil {
		return nil, err
	}
	for other := range c.rules {
		if len(c.rules) < cachedRules {
			break
		}
		delete(c.rules, other)
	}
	c.rules[hash] = p
	return p, nil
}
