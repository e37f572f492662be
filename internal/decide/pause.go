package decide

import (
	"context"
	"time"
	"weak"

	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/printable"
)

// MaxBlock is the longest pause and the longest block.
const MaxBlock = 30 * 24 * time.Hour

// Pause pauses the subjects of the rules, those that are Pausable: one duration for each rule, or 0. A pause that ends later stays. The wrapped call
// returns its own result, so an error is only logged.
func (c *Charges) Pause(ctx context.Context, pauses ...time.Duration) {
	c.PauseBy(ctx, "pause=", pauses...)
}

// PauseBy is Pause. by is what asked for the pauses, in words: the field of a response and its value, for example.
func (c *Charges) PauseBy(ctx context.Context, by string, pauses ...time.Duration) {
	change := c.limiter.Change(engine.Pauses)
	for i, d := range pauses {
		if ch := c.pausable(i); ch != nil && d > 0 {
			change.by = ch.by // who has the count keeps the pause
			change.pause(ch.rule, ch.claim.Subject, min(d, MaxBlock))
		}
	}
	if len(change.Claims) == 0 {
		return
	}
	back, cancel := afterCall(ctx)
	defer cancel()
	err := change.Adjust(back)
	if err != nil && !c.limiter.FailedLately() { // otherwise the log has said that the store fails
		c.limiter.logger.WarnContext(ctx, "a pause that a far side asked for could not be stored", "err", printable.Line(err.Error()))
	}
	if err != nil || change.by != byStore { // nobody else sees a pause in this process
		return
	}
	for i, d := range pauses {
		if ch := c.pausable(i); ch != nil && d > 0 {
			c.limiter.NotePause(ch.rule, ch.claim.Subject, min(d, MaxBlock), by)
		}
	}
}

// pausable returns the charge of a rule that a far side may pause, or nil.
func (c *Charges) pausable(rule int) *charge {
	if at := c.of(rule); at >= 0 && c.list[at].rule.Numbers.Pausable {
		return &c.list[at]
	}
	return nil
}

// pause adds the claims that pause a subject of a rule for d.
func (s *Step) pause(rule *Rule, subject string, d time.Duration) {
	for _, count := range rule.Counts() {
		claim := count.ClaimOn(subject, count.Limit)
		claim.Delta = d.Microseconds()
		if same := s.Put(count, claim); same != nil {
			same.Delta = max(same.Delta, claim.Delta)
		}
	}
}

// NotePause notes a pause beside the counts of a subject, which lasts for d from now: see fleet.PauseNote. farSide is what asked for it, in words, if a
// far side did; otherwise it is "". Nobody else sees the counts of a rule of instance scope.
func (l *Limiter) NotePause(rule *Rule, subject string, d time.Duration, farSide string) {
	if rule.Instance {
		return
	}
	here := weak.Make(l) // the fleet does not keep the limiter alive
	l.fleet.NotePause(rule.Numbers.Name, subject, d, farSide, func(ctx context.Context, left time.Duration) {
		if l := here.Value(); l != nil {
			change := l.Change(engine.Pauses)
			change.pause(rule, subject, left)
			_ = l.guard(func() { _ = change.Adjust(ctx) }) // the beat tells of a store that fails
		}
	})
}

// isPaused reports whether a subject of the call is paused by now. Only the store knows the pauses of rules that are Pausable. If it fails to
// say, failure policies decide. A call whose place came before ctx ended goes on.
func (c *Call) isPaused(ctx context.Context) (bool, error) {
	peek := c.limiter.newPeek()
	for _, rules := range [...][]Asked{c.Asked, c.unlimited} {
		for i := range rules {
			a := &rules[i]
			if !a.Rule.enforces() {
				continue
			}
			if c.limiter.pauseLeft(a) > 0 {
				return true, nil
			}
			if a.Rule.Numbers.Pausable {
				peek.Put(a.Rule, *a.Claim)
			}
		}
	}
	if _, err := peek.look(ctx); err != nil && ended(ctx) == nil {
		return false, c.limiter.StoreError(ctx, c.Method(), err)
	}
	return peek.PausedUntil() > 0, nil
}

// newPeek returns a step that looks at counts, and has no claims yet.
func (l *Limiter) newPeek() *Step {
	return &Step{Call: engine.Call{Prefix: l.prefix, Peek: true}, limiter: l}
}

// look asks for the answers to the claims of a peek, and returns the time of the answers.
func (s *Step) look(ctx context.Context) (now int64, err error) {
	if len(s.Claims) == 0 {
		return 0, nil
	}
	v, err := s.split().Decide(ctx, &s.Call)
	s.noteStore(ctx)
	return v.Now, err
}

// pauseHere answers a call as a store would. A setting pauses one of its subjects.
func (c *Call) pauseHere() {
	now, longest := c.limiter.store.Time().UnixMicro(), int64(0)
	for i := range c.Claims { // others were answered before
		c.Claims[i].Clear()
	}
	for i := range c.Asked {
		claim, left := c.Asked[i].Claim, c.Asked[i].pauseLeft.Microseconds()
		if left > 0 {
			claim.Earliest, claim.Paused, claim.Refused = now+left, now+left, left > claim.Wait
			claim.Full, claim.More = now+left, now+left
		}
		longest = max(longest, left)
	}
	c.verdict = engine.Verdict{Now: now, At: now + longest}
}

// WakeAll wakes the calls of this limiter that wait for a subject of a rule, so that they ask again.
func (l *Limiter) WakeAll(rule *Rule, subject string) {
	waiting.Wake(l.count(rule, subject))
}
