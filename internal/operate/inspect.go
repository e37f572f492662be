package operate

import (
	"context"
	"crypto/rand"
	"slices"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/decide"
	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/internal/traffic"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// Use is what a key has used under one rule, what is in force for it, and why. For example, "login" declares 5 per hour, an override of all keys
// has a factor of 2, and ann has used 7 permits: InForce has a Limit of 10, Overrides has that override, Limit is 10, and Used is 7.
type Use struct {
	ratelimit.UsedRule
	Key       string           // as errors show it; "" is everybody
	InForce   ratelimit.Rule   // with the limit that the last call brought, if calls bring it and a process has said so
	AsOf      time.Time        // when a process said so; zero if the rule has its limit
	Overrides []*fleet.Setting // that apply to the key, the most exact one first
	Refusals  []Refusal        // blocks and pauses of the key
	Unmatched bool             // the key is known only by its hash, so settings for networks are left out

	Limit   int64 // permits that the key can have at once: the limit, or the burst of a bucket; -1 if the call brings the limit
	Used    int64 // of these; it may be more than Limit, after the limit was lowered
	Counted bool  // the store has a count
	Reset   time.Duration
	Window  time.Duration // until the count admits one more permit; 0 if it does now, or nobody knows
	Retry   time.Duration // until a call passes: Window, and whatever refuses besides
	Never   bool          // the limit is 0
	Ends    time.Time     // when the open window of a rule with Every ends; zero if none of its permits is used, or if calls wait for later ones

	Taken   []engine.Charge // the newest permits of the window, the newest last
	Waiting []engine.Charge // that calls wait for
	Ahead   []engine.Charge // that leases took
	Free    []engine.Charge // that calls gave up, while others waited after them
	Running []Running       // of calls that run
	Err     error           // why the rest is unknown
}

// Running are the permits of a call that runs.
type Running struct {
	Permits int64
	Until   time.Time // when they end if the process is gone; zero if they end with the process
	Process string    // whose they are; "" if that is unknown
}

// IsRefused reports whether a call of the key is refused now.
func (u *Use) IsRefused() bool { return u.Never || u.Retry > 0 }

// Left returns how many permits are left. It is below 0 if more are used than the key can have, and minus what is used if the call brings the limit.
func (u *Use) Left() int64 { return max(0, u.Limit) - u.Used }

const (
	maxDetails = 20  // counts of which the store is asked for more than a peek says
	perPeek    = 250 // claims in one run
)

// Inspect returns what a key has used under the given rules, in one run for all of them, and a further run for each of the first ones under which
// something is used. If the store cannot be asked, the error says why.
func (p *Prefix) Inspect(ctx context.Context, k Key, rules ...ratelimit.UsedRule) ([]Use, error) {
	if at := p.Follow(ctx); at.Err != nil {
		return nil, at.Err
	}
	if err := p.checkSecret(ctx, k, rules); err != nil {
		return nil, err
	}
	sums, _ := p.Traffic(ctx)
	looks := make([]look, len(rules))
	for i, rule := range rules {
		looks[i].open(p, rule, k, sums)
	}
	if err := p.patience.ask(ctx, func(ctx context.Context) error { return p.peek(ctx, looks) }); err != nil {
		return nil, err
	}
	uses, details := make([]Use, len(rules)), 0
	for i := range looks {
		l := &looks[i]
		if l.use.Err == nil && l.more && details < maxDetails {
			details++
			err := p.patience.ask(ctx, func(ctx context.Context) (err error) {
				l.looked, err = p.machine().Look(ctx, l.rule, l.subject)
				return err
			})
			if err != nil {
				return nil, err
			}
		}
		l.close(ctx, p)
		uses[i] = l.use
	}
	return uses, nil
}

// look is a look at the counts of one rule.
type look struct {
	use      Use
	subject  string
	rule     *decide.Rule // in force
	claims   []engine.Claim
	looked   []engine.Looked // at each count
	settings decide.ForKey
	more     bool // a peek does not tell all that matters
}

// open finds out what is in force for a key.
func (l *look) open(p *Prefix, declared ratelimit.UsedRule, k Key, sums *traffic.Sums) {
	l.subject = p.subjectOf(declared.Rule, k)
	l.use = Use{UsedRule: declared, Key: key.Shown(l.subject), Limit: -1}
	limiter, asked := p.limiterFor(k), ratelimit.Request{Rule: declared.Rule, Key: k.Text}
	u := &l.use
	if u.InForce, u.Err = limiter.RuleFor(asked); u.Err == nil && u.InForce.Computed {
		asked.Rule, u.AsOf = sums.Known(declared.Rule, u.InForce.Window(), l.subject)
		u.InForce, u.Err = limiter.RuleFor(asked)
	}
	if u.Err != nil {
		return
	}
	rule, err := prepared(asked.Rule)
	if u.Err = err; err != nil {
		return
	}
	l.rule = p.machine().InForce(rule, k.Text, l.subject)
	l.settings = p.machine().ForKey(rule, k.Text, l.subject)
	u.Overrides = l.settings.Overrides
	networks := p.fleet.InForce().ByPattern(fleet.SettingName(declared.Name)).HasNetworks()
	u.Unmatched = networks && k.Shown && declared.Hash == ratelimit.HashSubject && decide.IsHash(k.Text)
	for _, count := range l.rule.Counts() {
		claim := count.ClaimOn(l.subject, count.LimitFor(count.MostLimit))
		claim.Burst = count.Capacity(claim.Limit)
		if count.Distinct != "" {
			claim.Member = rand.Text() // which is not counted yet
		}
		l.claims = append(l.claims, claim)
	}
}

// peek asks for the counts of all looks. Rules may share a count.
func (p *Prefix) peek(ctx context.Context, looks []look) error {
	type count struct{ name, subject, tag string }
	var asked []engine.Claim
	of := map[count]int{} // in asked
	for i := range looks {
		for _, c := range looks[i].claims {
			id := count{c.Rule.Name, c.Subject, c.Rule.Tag}
			if _, found := of[id]; !found {
				of[id] = len(asked)
				asked = append(asked, c)
			}
		}
	}
	now := int64(0)
	for some := range slices.Chunk(asked, perPeek) {
		verdict, err := p.store().Decide(ctx, &engine.Call{Prefix: p.name, Claims: some, Peek: true})
		if err != nil {
			return err
		}
		now = verdict.Now
	}
	for i := range looks {
		for _, c := range looks[i].claims {
			c.Answer = asked[of[count{c.Rule.Name, c.Subject, c.Rule.Tag}]].Answer
			looks[i].more = looks[i].more || c.Blocked || c.Paused > 0 || c.Room != capacity(&c)
			if looks[i].use.InForce.Limit == 0 && !looks[i].use.InForce.Computed { // the claim has a limit of 1
				c.Room--
			}
			looks[i].looked = append(looks[i].looked, c.See(engine.Sight{Now: now, Earliest: max(now, c.Earliest), Room: c.Room, Full: c.Full, Paused: c.Paused}))
		}
	}
	return nil
}

// close says what the answers mean.
func (l *look) close(ctx context.Context, p *Prefix) {
	u := &l.use
	if u.Err != nil {
		return
	}
	u.Never = u.InForce.Limit == 0 && !u.InForce.Computed
	u.Refusals = p.refusalsOf(ctx, u.Name, u.Key, l.settings, l.looked)
	for i := range l.claims {
		l.count(&l.claims[i], &l.looked[i])
	}
	processes, _ := p.processes.Get(ctx)
	for i := range l.looked {
		l.list(&l.looked[i], processes)
	}
	if waiting := permitsOf(u.Waiting); waiting > 0 && u.Limit >= 0 { // they are not used yet
		u.Used = max(min(u.Used, u.Limit), u.Used-waiting)
	}
	slices.SortStableFunc(u.Taken, func(a, b engine.Charge) int { return a.At.Compare(b.At) })
	if u.InForce.Every != "" && u.Reset > 0 && len(u.Waiting) == 0 {
		u.Ends = l.looked[0].Now.Add(u.Reset)
	}
	u.Counted = u.Used != 0 || u.Reset > 0 || len(u.Taken)+len(u.Waiting)+len(u.Running) > 0
	if u.InForce.Mode != ratelimit.ModeEnforce || u.Never {
		return
	}
	u.Retry = u.Window
	for _, r := range u.Refusals {
		u.Retry = max(u.Retry, r.Until.Sub(p.Now()))
	}
}

// permitsOf returns how many permits charges have.
func permitsOf(all []engine.Charge) (n int64) {
	for _, c := range all {
		n += c.Permits
	}
	return n
}

// list adds the permits that one of the rule's counts lists.
func (l *look) list(seen *engine.Looked, processes []fleet.Process) {
	u := &l.use
	u.Free = append(u.Free, seen.Free...)
	for _, charge := range seen.Taken {
		switch {
		case !charge.At.After(seen.Now):
			u.Taken = append(u.Taken, charge)
		case u.InForce.Lease > 0: // future permits are those of leases
			u.Ahead = append(u.Ahead, charge)
		default:
			u.Waiting = append(u.Waiting, charge)
		}
	}
	for _, r := range seen.Running {
		one := Running{Permits: r.Permits, Until: r.Until}
		if process := fleet.CallerOf(r.ID, processes); process != nil {
			one.Process = process.String()
		}
		u.Running = append(u.Running, one)
	}
}

// count adds what one of the rule's counts has. Each call has one of them, so the one that has more counts.
func (l *look) count(c *engine.Claim, seen *engine.Looked) {
	u, limit := &l.use, capacity(c)
	if u.Never {
		limit = 0
	}
	u.Used = max(u.Used, limit-seen.Room)
	isBucket := c.Rule.Kind.Row().IsBucket
	switch {
	case u.Never:
		u.Limit = 0
	case !u.InForce.Computed || isBucket && u.InForce.Burst > 0:
		u.Limit = limit
	}
	if !u.InForce.Computed || !isBucket { // otherwise nobody knows the rate
		u.Reset = max(u.Reset, seen.Full.Sub(seen.Now))
	}
	if !u.InForce.Computed && !u.Never && !seen.Next.IsZero() {
		u.Window = max(u.Window, seen.Next.Sub(seen.Now))
	}
}

// capacity is how many permits a key can have at once under a claim.
func capacity(c *engine.Claim) int64 {
	if c.Rule.Kind.Row().IsBucket && c.Burst > 0 {
		return c.Burst
	}
	return c.Limit
}
