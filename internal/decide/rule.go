package decide

import (
	"math"
	"slices"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/fleet"
)

// Rule is a rule that is ready to be decided on: as the program declares it, or as overrides make it. Nothing changes it once a limiter uses it.
type Rule struct {
	Declared Declared
	Numbers  engine.Rule
	Ask      engine.Ask  // asks for one permit, without a subject and a wait; calls copy it
	Row      *engine.Row // what the engine knows about how the rule counts

	Label    string // its name in errors, events and quotas
	Window   string
	Key      string // the template of its keys; "" if it has none
	Distinct string // the template of its members; "" if it counts none
	Message  string

	Unreported bool // clients do not learn of it

	Algorithm engine.Kind   // of which Numbers.Kind may be a variant
	Limit     int64         // permits per window; 0 if calls bring it
	MostLimit int64         // the highest limit that the rule can have
	Burst     int64         // of a bucket: how many permits it holds; 0 means its limit
	NoStore   bool          // of a bucket: it holds no permits
	Per       time.Duration // 0 for calendars
	Wait      time.Duration // how long it may delay a call of its method
	Queue     int64         // how many permits may wait; 0 means any number
	Factor    float64       // multiplies the limits that calls bring, as an override says; 0 leaves them

	Computed  bool   // each call brings its limit
	Unnamed   bool   // it has the name of its method or type
	Priced    bool   // it has cost=
	PlainKeys bool   // its subjects and members are not hashed
	Refunds   bool   // its permits go back if the wrapped call fails
	Instance  bool   // it is counted in this process only, not in the limiter's store
	OnError   Policy // while the store fails

	Base  *Rule  // the rule without overrides; nil if it has none
	Other *Rule  // the same rule for calls that bring a limit which another kind counts: see Kind.At; nil if one kind counts all limits
	Of    *Rules // the rules of its method, or the one of a request
}

// Declared is a rule as programs write it. Package ratelimit has the type.
type Declared interface {
	// Override returns the rule as overrides make it, of which the most exact one comes first.
	Override(rule *Rule, overrides []*fleet.Setting) (*Rule, error)
	// WrongLimit says why a call cannot bring a limit, or returns "".
	WrongLimit(limit int64) string
	// CannotWait returns a *ratelimit.RuleError if no call can wait for the rule.
	CannotWait() error
	// Wrong returns a *ratelimit.RuleError about an argument.
	Wrong(argument, reason string) error
	// CountsLike reports whether two rules of one count can decide a call together.
	CountsLike(other Declared) bool
	// Text returns the rule as JSON, for tools.
	Text(label string) string
}

// Counts returns the rules by which calls are counted, each of which has counts of its own: the rule, and its Other.
func (r *Rule) Counts() []*Rule {
	if r.Other == nil {
		return []*Rule{r}
	}
	return []*Rule{r, r.Other}
}

// at returns the rule that counts a call with a limit: the rule itself, or its Other.
func (r *Rule) at(limit int64) *Rule {
	if r.Other != nil && r.Numbers.Kind != r.Algorithm.At(limit) {
		return r.Other
	}
	return r
}

// Rules are the rules of one method, or the one of a request.
type Rules struct {
	Method string // pkg.Type.Method; "" for the rule of a request
	All    []*Rule
}

// WithCost notes which of the rules have cost=, by the names that errors and events show. Without names, all have it.
func (r *Rules) WithCost(labels ...string) {
	for _, rule := range r.All {
		rule.Priced = rule.Priced || len(labels) == 0 || slices.Contains(labels, rule.Label)
	}
}

// enforces reports whether the rule refuses calls.
func (r *Rule) enforces() bool { return r.Ask.Mode == engine.Enforce }

// ClaimOn returns a claim of one permit of a subject, for a change. A claim has a limit of at least 1.
func (r *Rule) ClaimOn(subject string, limit int64) engine.Claim {
	claim := engine.Claim{Ask: r.Ask}
	claim.Subject, claim.Limit = subject, max(1, limit)
	return claim
}

// Capacity is how many permits a bucket holds at a limit.
func (r *Rule) Capacity(limit int64) int64 {
	switch {
	case r.NoStore:
		return 0
	case r.Burst > 0:
		return r.Burst
	default:
		return limit
	}
}

// NoLimit is the limit of a call that its rule does not limit.
const NoLimit = -1

// LimitFor returns the limit for a call. Only a rule with Computed uses the given one. The factor of an override does not raise it above the
// largest limit that the rule can have. It leaves NoLimit, and a limit that no call can bring: half of -3 would be NoLimit.
func (r *Rule) LimitFor(given int64) int64 {
	switch {
	case !r.Computed:
		return r.Limit
	case given < 0 || given > r.MostLimit:
		return given
	default:
		return min(Times(given, r.Factor), r.MostLimit)
	}
}

// delay returns how long the rule may delay a call at a limit, in microseconds: at most longest, and at most the time that the permits of
// its queue take to leave. That time is rounded up, because places are. In a bucket of one permit each place is rounded up from the place
// before it.
func (r *Rule) delay(longest time.Duration, limit int64) int64 {
	wait := longest.Microseconds()
	if r.Queue == 0 || limit <= 0 {
		return wait
	}
	per := r.Per.Microseconds()
	if r.Capacity(limit) == 1 {
		per += (limit - per%limit) % limit
	}
	return min(wait, engine.MulDiv(r.Queue, per, limit))
}

// Times returns n times a factor, rounded up. A factor of 0 changes nothing.
func Times(n int64, factor float64) int64 {
	if factor == 0 {
		return n
	}
	return int64(math.Ceil(Near(float64(n) * factor)))
}

// Near returns f, or the integer that f is but for the error of a binary float: by at most 10^-12 of f, or 10^-9 below 1. For example,
// Near(2.0000000000001) is 2.
func Near(f float64) float64 {
	near, limit := math.Round(f), 1e-9
	if math.Abs(f) >= 1 {
		limit = math.Abs(f) * 1e-12
	}
	if math.Abs(f-near) <= limit {
		return near
	}
	return f
}

// ruleID identifies the counts of a rule.
type ruleID struct {
	name, tag string
	instance  bool
}

func (r *Rule) id() ruleID { return ruleID{r.Numbers.Name, r.Numbers.Tag, r.Instance} }

// countsWith reports whether two rules have one count for each subject.
func (r *Rule) countsWith(other *Rule) bool { return r == other || r.id() == other.id() }

// mayCountWith reports whether two rules have one count for each subject, for some limits of calls.
func (r *Rule) mayCountWith(other *Rule) bool {
	return slices.ContainsFunc(r.Counts(), func(one *Rule) bool { return slices.ContainsFunc(other.Counts(), one.countsWith) })
}
