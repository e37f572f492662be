package ratelimit

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/decide"
	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/key"
)

// Request asks one rule for permits. For example, a request with Key "ann" and Cost 3 takes three permits of ann's, or none.
type Request struct {
	Rule   Rule   // the limit; two requests of a call may have the same
	Key    string // the owner of the permits, such as "ann", at most 64 KiB; "" is everybody, unless the rule has a Key
	Cost   int64  // permits; 0 means 1. A cost below 0 is a *KeyError, and so is one above 1 if the rule has Distinct
	Member string // the member to count, such as "bob", if the rule has Distinct; at most 64 KiB

	// Anchor is the time at which the windows of a rule with Every begin, such as when the user ann was first billed. It may be before 1970 or
	// in the future, in the years 1 to 9999. Windows count from it in both directions. The zero time is none: Peek, Give and Reset then go by the
	// window that is open, and other calls fail with a [KeyError]. If none is open, Peek reports all permits. Requests of one call with equal rules and
	// keys have equal Anchors. In Peek and Give some of them may have none. Other rules ignore it.
	Anchor time.Time

	// Match is in place of Key: all keys in a network, such as 203.0.113.0/24, or that begin with a text, such as ann*. It is only for
	// [Limiter.Block], Unblock, Pause and Resume: see [Overrides.Set]. Their Rule may have a glob such as shop.* as its Name.
	Match string

	// UpTo takes as many permits as every rule admits now, at least 1 and at most Cost; Decision.Taken says how many. Set it on all
	// requests of a call, with equal Costs, and ask each rule for a key once. It works in Allow and Peek, but not with Distinct, Prepay,
	// Warmup or Concurrency. With a Cost of 10, and 4 permits left, it takes 4.
	UpTo bool
}

// Allow decides a call under the rules of the requests: all of them are charged, or none. It does not wait. A refusal is a
// Decision, not an error. If two requests have equal rules and keys, their costs are added. Their Anchors must be equal: see [Request].
//
// The error is a *StoreError, *KeyError, *NeverAdmissibleError or *RuleError, or wraps the context's. It is a *RuleError if there are no requests
// or more than 255, or if two requests have different rules of one name, window and key. It is a *KeyError if two requests with equal rules and
// keys have two Anchors.
func (l *Limiter) Allow(ctx context.Context, requests ...Request) (Decision, error) {
	return l.decide(ctx, requests, 0, false)
}

// Peek returns what Allow would return, and charges and writes nothing. If a rule has Computed, its limit is unknown: Peek goes by the
// highest one, the Quota has the Limit 0, and its Remaining is minus the permits in use, of whichever of its counts has more. It is 0 while a
// block hides them, and for a bucket that stores no permits. A request finds the counts of a directive's rule by the rule's name and window. The
// first Peek makes the limiter follow overrides, blocks and pauses, as a call does. It may itself go by what the rule declares. The errors are
// those of Allow.
func (l *Limiter) Peek(ctx context.Context, requests ...Request) (Decision, error) {
	if ctx.Value(decide.Looks) == nil {
		l.machine().Fleet().Watch()
	}
	return l.decide(ctx, requests, 0, true)
}

// Wait is Allow for a caller that has time: it reserves the next free permits, and sleeps until they are due. On one server, calls are
// admitted in the order in which they came. The error is nil only if the call was admitted. Wait sleeps no longer than the context's deadline,
// or 3660 days if there is none, whatever Wait the rules have.
//
// A call that cannot be admitted before the deadline gets a *[TooManyRequestsError] at once. If the context ends while the call sleeps,
// the permits are given back, and the error wraps the context's. Calls cannot wait for a SlidingCounter or a rule with Distinct: the error is
// then a *RuleError, and nothing is charged. The other errors are those of Allow.
func (l *Limiter) Wait(ctx context.Context, requests ...Request) (Decision, error) {
	return l.decide(ctx, requests, longestWait, false)
}

// Reserve takes a place as [Limiter.Wait] does, and returns at once. Decision.At is when the place comes, and Decision.Delay is how long that is from
// now. A job queue can run a job at At, and need not ask again: the permits are charged, and no other call gets them. Reserve looks no further ahead
// than the context's deadline, or 3660 days if there is none.
//
// If no place can be kept now, the Decision is not Allowed, and RetryAfter says when to ask again. The reason is one of these: the place would come
// after the deadline; the Queue of a rule is full; the key is blocked or paused; a rule has 64 windows ahead, or 4,096 entries of Amounts; or one of
// several rules cannot keep a place for that time, as a calendar on Redis if the place is after its next 64 windows. In the last two cases RetryAfter
// is until the call passes at once, and a place may be had earlier: with 64 windows ahead when the present window ends, with 4,096 entries when the
// oldest one leaves. A call of several rules may then be refused by another one of them, even by one that would admit it now.
//
// A pause may hold calls of Wait in this process. These come first until all of them have asked again, and RetryAfter is at least a second until then. A
// block or a pause that begins later does not move the place.
//
// For example, a LeakyBucket admits 2 calls a second. Three calls of Reserve at 12:00:00 have a Delay of 0, 500 ms and a second. If the third has a
// deadline at 12:00:00.9, it is not Allowed, and its RetryAfter is 100 ms: at 12:00:00.1 there is a place within 900 ms.
//
// [Decision.Refund] gives the place back, also before At. Rules in shadow or trigger mode keep no place: they count the call when it reserves.
// Observers see an admitted call that waited for Delay.
//
// The error is a *RuleError if a rule is a SlidingCounter or a Concurrency, has Distinct, or is Pausable; if a request has UpTo; and if the call
// cannot be decided in one step, because its rules have two scopes, or because its keys may be on different servers of a cluster or a ring. The
// other errors are those of Allow.
func (l *Limiter) Reserve(ctx context.Context, requests ...Request) (d Decision, err error) {
	c := l.machine().OpenRequests(min(len(requests), maxRules), longestWait, false)
	defer c.Free()
	c.Reserves = true
	if err = c.Perform(ctx, l.addAll(c, requests, true)); err == nil {
		d.set(c)
	}
	return d, err
}

// maxRules is how many rules a call may have: the script counts them in a byte.
const maxRules = 255

// longestWait bounds [Limiter.Wait] and [Limiter.Reserve] if the context has no deadline.
const longestWait = maxPer

func (l *Limiter) decide(ctx context.Context, requests []Request, wait time.Duration, peek bool) (d Decision, err error) {
	c := l.machine().OpenRequests(min(len(requests), maxRules), wait, peek)
	defer c.Free()
	if err := c.Perform(ctx, l.addAll(c, requests, wait > 0)); err != nil {
		return d, err
	}
	if !c.Verdict().Admitted && wait > 0 {
		return d, refusalOf(c)
	}
	d.set(c)
	return d, nil
}

func (l *Limiter) addAll(c *decide.Call, requests []Request, waits bool) error {
	if n := len(requests); n == 0 || n > maxRules {
		return &RuleError{Argument: "requests", Reason: fmt.Sprintf("found %d; expected 1 to %d", n, maxRules)}
	}
	for i := range requests {
		r := &requests[i]
		m, err := l.prepare(&r.Rule)
		if err == nil && r.Match != "" {
			err = r.wrongMatch()
		}
		if err != nil {
			return err
		}
		use := decide.Use{Key: r.Key, Cost: cmp.Or(r.Cost, 1), Member: r.Member, Anchor: r.Anchor}
		if r.Rule.Computed {
			if !c.Peek {
				return r.Rule.wrong("limit", "found Computed, so the limit of this call is unknown; give the request a rule with its Limit")
			}
		}
		c.UpTo = r.UpTo
		if r.UpTo || requests[0].UpTo {
			if err = r.checkUpTo(&requests[0], waits); err != nil {
				return err
			}
		}
		if err = c.AddRequest(m, &use); err != nil {
			return err
		}
	}
	if n := len(c.Claims); n > maxRules { // of a peek
		return &RuleError{Argument: "requests", Reason: fmt.Sprintf("found %d counts; expected at most %d; with Computed a request may have two", n, maxRules)}
	}
	return nil
}

// wrongMatch is the error of a request that is for a key.
func (r *Request) wrongMatch() error {
	return r.Rule.wrong("match", "found one; expected a key: only Block, Unblock, Pause and Resume take a match")
}

// checkUpTo returns an error if UpTo does not go with the rule of r, or if UpTo or its Cost differs from the first request of the call.
func (r *Request) checkUpTo(first *Request, waits bool) error {
	switch {
	case r.UpTo != first.UpTo || r.UpTo && cmp.Or(r.Cost, 1) != cmp.Or(first.Cost, 1):
		return r.Rule.wrong("requests", "found UpTo on some requests, or with different costs; expected one cost and UpTo on all of them")
	case r.UpTo && !r.Rule.kind().Accepts("up-to"):
		return r.Rule.wrong("requests", "found UpTo for a rule with distinct, prepay, warmup or concurrency, which do not go with it")
	case r.UpTo && waits:
		return r.Rule.wrong("requests", "found UpTo in Wait or Reserve; expected Allow or Peek")
	}
	return nil
}

// Reset forgets what the keys of the requests have used under their rules, and ends a block that the Block of a rule began. It finds the counts
// in the same way as Peek, and returns how many it found. It also finds a window whose permits were all given back, until the window ends. It
// ends a pause of a rule that is Pausable, too, unless an actor made it. On Redis it finds a count as long as its key exists, which is up to an eighth of the window and
// a second longer than the count matters. It does not count a block that has outlived its count. Costs do not matter. Do not refund or settle a
// charge from before a Reset: a Calendar window and a SlidingCounter cannot tell it from later charges. The errors are those of Allow.
func (l *Limiter) Reset(ctx context.Context, requests ...Request) (int, error) {
	change := l.machine().Change(engine.Charges)
	for i := range requests {
		counts, subject, err := l.countsOf(&requests[i])
		if err != nil {
			return 0, err
		}
		for _, count := range counts {
			change.Put(count, claimOn(count, subject))
		}
	}
	if len(requests) == 0 {
		return 0, noRequests()
	}
	found := 0
	err := l.changeStates(ctx, "reset", change, func(ctx context.Context) (err error) {
		found, err = change.Reset(ctx)
		return err
	})
	if err == nil {
		l.forgetPauses(ctx, change)
	}
	return found, err
}

// Give gives up to n permits back to each request, whichever calls took them: the newest ones, but not the places of calls that wait. Windows
// of FixedWindow and Calendar get permits of the present window. A rule never has more than its limit left. A bucket for which calls wait gets at
// most what was taken beyond their places, as by a negative n, and often nothing. A bucket with a Warmup does not know its places, and gives them
// away. A negative n takes permits instead, also beyond the limit, as [Decision.Settle] does. Give(0) does nothing. Costs of the requests do not
// matter. If a rule with Computed has two counts, both change. Observers see an [EventGiven].
//
// The error is a *RuleError if a rule has Distinct or counts calls that run. The other errors are those of [Limiter.Reset].
func (l *Limiter) Give(ctx context.Context, n int64, requests ...Request) error {
	if n == 0 {
		return nil
	}
	if len(requests) == 0 {
		return noRequests()
	}
	n = min(max(n, -maxLimit), maxLimit)
	change := l.machine().Change(engine.Gives)
	var changed []decide.Changed
	for i := range requests {
		counts, subject, err := l.countsOf(&requests[i])
		if err == nil {
			err = checkGive(counts[0])
		}
		var anchor engine.Anchor
		if err == nil && requests[i].Rule.Every != "" {
			anchor, err = l.machine().Anchor("", counts[0], requests[i].Anchor)
		}
		if err != nil {
			return err
		}
		for _, count := range counts {
			claim := claimOn(count, subject)
			claim.Anchor, claim.Delta = anchor, -n
			if same := change.Put(count, claim); same != nil {
				same.Delta += claim.Delta
				if err := l.machine().ShareAnchor("", count, same, anchor); err != nil {
					return err
				}
				continue
			}
			changed = append(changed, decide.Changed{Rule: count, Subject: subject, Limit: count.Limit})
		}
	}
	for i := range change.Claims {
		c, o := &change.Claims[i], &changed[i]
		most := c.MostSettled()
		c.Delta = min(max(c.Delta, -most), most)
		o.Before, o.After = max(0, -c.Delta), max(0, c.Delta)
	}
	err := l.changeStates(ctx, "give", change, func(ctx context.Context) error {
		return cmp.Or(change.Adjust(ctx), notOpen(change))
	})
	l.machine().Tell(ctx, decide.Given, "", err, changed...)
	return err
}

// notOpen returns an error if a claim without an anchor would take permits of a window that is not open.
func notOpen(change *decide.Step) error {
	for i := range change.Claims {
		if c := &change.Claims[i]; c.Delta > 0 && c.LacksAnchor() {
			return &RuleError{Rule: c.Rule.Name, Argument: "every", Reason: "no window is open; give the request an Anchor, from which the windows of the key count"}
		}
	}
	return nil
}

// checkGive returns an error if permits of a rule cannot be given.
func checkGive(rule *decide.Rule) error {
	switch {
	case rule.Distinct != "":
		return ruleOf(rule).wrong("give", "does not go with distinct=: each member counts once")
	case rule.Computed && rule.Row.IsBucket:
		return ruleOf(rule).wrong("give", "each call brings the limit of this bucket, so its rate is unknown; override the limit first")
	}
	return ruleOf(rule).checkAccepts("give", true)
}

// StateKeys returns the keys under which package redisstore keeps the counts of a request: prefix:name:{subject}:tag. A SlidingWindow with
// Computed has two, because calls with limits above 10,000 have a count of their own: p:plan:{ann}:1h and p:plan:{ann}:amounts:1h. Other rules
// have one. StateKeys applies the overrides that the limiter knows. It is for tools that look into the store. The format of the values may
// change. The error is a *RuleError.
func (l *Limiter) StateKeys(r Request) ([]string, error) {
	rule, subject, err := l.ruleFor(&r)
	if err != nil {
		return nil, err
	}
	var keys []string
	for _, count := range rule.Counts() {
		keys = append(keys, key.State(l.machine().Prefix(), count.Numbers.Name, subject, count.Numbers.Tag))
	}
	return keys, nil
}

// RuleFor returns the rule of a request as the overrides that the limiter knows make it for the request's key. It is for tools. The error is a
// *RuleError.
func (l *Limiter) RuleFor(r Request) (Rule, error) {
	rule, _, err := l.ruleFor(&r)
	if err != nil {
		return Rule{}, err
	}
	changed := *ruleOf(rule)
	changed.Name = r.Rule.Name
	return changed, nil
}

// ruleFor returns the rule and the subject of a request, with the settings in force applied.
func (l *Limiter) ruleFor(r *Request) (*decide.Rule, string, error) {
	m, err := l.prepare(&r.Rule)
	if err == nil && r.Match != "" {
		err = r.wrongMatch()
	}
	if err != nil {
		return nil, "", err
	}
	subject := l.subject(&r.Rule, r.Key)
	return l.machine().InForce(m.Rule(), r.Key, subject), subject, nil
}

// countsOf returns the rules that count the calls of a request, as they are in force, and its subject. See [decide.Rule.Counts].
func (l *Limiter) countsOf(r *Request) ([]*decide.Rule, string, error) {
	rule, subject, err := l.ruleFor(r)
	if err == nil {
		err = l.machine().Supports(rule, 0)
	}
	if err == nil && r.Key == "" && rule.Key != "" {
		err = &KeyError{Rule: rule.Label, Expr: rule.Key, Reason: "the key is empty"}
	}
	if err != nil {
		return nil, "", err
	}
	return rule.Counts(), subject, nil
}

// claimOn returns a claim of one permit of a subject, at the highest limit that the rule can have if calls bring it.
func claimOn(rule *decide.Rule, subject string) engine.Claim {
	return rule.ClaimOn(subject, rule.LimitFor(rule.MostLimit))
}
