package wrap

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/decide"
	"github.com/ratelimit-go/ratelimit/internal/farside"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// ErrSkip is the error of a function of [NewKeyed] for a request that the rules do not count for.
var ErrSkip = errors.New("the rules do not count for this request")

// Keyed are rules that all count for the one key of a request R, such as those of an HTTP middleware. No code is generated for them.
type Keyed[R any] struct {
	limits *Limits
	key    func(context.Context, R) (string, error)
	rules  *Rules
	odd    sync.Map // the fields of a far side of which was logged that they cannot be read
}

// NewKeyed prepares rules for the function of a name. The function key returns the key of a request; if it is nil, all requests share the
// permits. NewKeyed panics if there is no rule, if a rule is not valid or needs what a request does not bring, or if the limiter is nil.
func NewKeyed[R any](name string, l *ratelimit.Limiter, key func(context.Context, R) (string, error), rules []ratelimit.Rule) *Keyed[R] {
	if len(rules) == 0 {
		panic(name + ": there is no rule")
	}
	for _, r := range rules {
		if r.Distinct != "" {
			panic(name + ": rule " + strconv.Quote(r.Name) + " has Distinct, and a request has no member to count")
		}
		if r.Every != "" {
			panic(name + ": rule " + strconv.Quote(r.Name) + " has Every, and a request brings no anchor; give the rule a Per or a Cron")
		}
		if r.Computed {
			panic(name + ": rule " + strconv.Quote(r.Name) + " has Computed, and a request brings no limit; give the rule a Limit")
		}
	}
	prepared := NewRules(name, rules...).WithCost()
	return &Keyed[R]{limits: prepared.On(l), key: key, rules: prepared}
}

// WithCharge returns a context with a Charge for the handler of a request, and that Charge. End it when the handler has returned. If ctx has a
// Charge, WithCharge returns ctx and nil.
func WithCharge(ctx context.Context) (_ context.Context, own *ratelimit.Charge) {
	if ratelimit.ChargeFrom(ctx) != nil {
		return ctx, nil
	}
	return ratelimit.WithCharge(ctx)
}

// End notes that the call of a Charge is over, so that nobody adds to it any more. The Charge may be nil.
func End(own *ratelimit.Charge) { (*decide.Charge)(own).Charges().End() }

// Pausable returns the rules for requests to a far side that may ask for quiet. Rules become Pausable, except those with Cron, Lease, or a mode
// that refuses nothing.
func Pausable(rules []ratelimit.Rule) []ratelimit.Rule {
	rules = slices.Clone(rules)
	for i := range rules {
		r := &rules[i]
		r.Pausable = r.Cron == "" && r.Lease == 0 && r.Mode == ratelimit.ModeEnforce
	}
	return rules
}

// Take takes a permit of each rule for a request. If the key fails, panics or is empty, the error is a *ratelimit.KeyError. If the key's error is
// [ErrSkip], nothing is taken, and Take returns nil.
func (k *Keyed[R]) Take(ctx context.Context, request R) (*Taken, error) {
	subject := Everybody
	if k.key != nil {
		var err error
		rules := k.rules.at(0)
		if subject, err = Value(rules, "", func() string { return Must(k.key(ctx, request)) }); err == nil && subject == "" {
			err = rules.KeyError("", errors.New("the key is empty"))
		}
		if errors.Is(err, ErrSkip) {
			return nil, nil
		}
		if err != nil {
			return nil, Failed(ctx, k.limits, err)
		}
	}
	return Begin(ctx, k.limits, k.rules, slices.Repeat([]Charge{{Key: subject, Cost: 1}}, len(k.rules.Rules()))...)
}

// GiveBack gives back the permits of a request that was not sent.
func (k *Keyed[R]) GiveBack(ctx context.Context, taken *Taken) {
	if taken != nil { // else the rules did not count: see ErrSkip
		taken.Settle(ctx, make([]int64, len(k.rules.Rules()))...)
	}
}

// Pause pauses the key of a request for as long as a far side asks. The first time that a field cannot be read is logged.
func (k *Keyed[R]) Pause(ctx context.Context, taken *Taken, asked farside.Asked) {
	for _, odd := range asked.Odd {
		if _, hashes := k.limits.limiter().Shown(odd.Value); hashes { // it may name whom the far side counts
			odd.Value = "left out"
		}
		sayOdd(ctx, &k.odd, k.rules.method, odd)
	}
	if asked.For > 0 && taken != nil {
		taken.PauseBy(ctx, asked.By, slices.Repeat([]time.Duration{asked.For}, len(k.rules.Rules()))...)
	}
}
