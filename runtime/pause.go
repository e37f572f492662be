package ratelimit

import (
	"context"
	"strings"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/decide"
	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/fleet"
)

// Pause holds the calls of the requests' keys under their rules for d, up to 30 days, in all programs with this prefix on the store. Calls that
// may wait longer than the pause lasts hold: they wait until it ends, and then for their permits. Other calls are refused, and RetryAfter is
// the rest of the pause. Pause replaces any other pause. [Limiter.Resume] ends it.
//
// Under a rule that is Pausable no call is admitted once Pause has returned. A call that waits for its place gives the place back. Without an actor
// (see [WithActor]) such a pause belongs to the count: an override of Per, which makes the rule count from zero, and [Limiter.Reset] end it. The pause
// of an actor is kept like that of another rule, too, so that it outlives a loss of the store's data. Under other rules this limiter
// follows at once, the others within about two seconds, and only the Name, Key and Hash of the rule matter. So it is for a request with a Match or a
// glob. A rule in shadow or trigger mode pauses nothing. The errors are those of [Limiter.Block].
func (l *Limiter) Pause(ctx context.Context, d time.Duration, requests ...Request) error {
	return l.changePauses(ctx, requests, fleet.Edit{What: "pause", For: d})
}

// Resume ends the pauses of the requests' keys under their rules. The calls that this limiter holds go on at once, those of others within about
// two seconds. A key that is not paused is no error. The errors are those of [Limiter.Block].
func (l *Limiter) Resume(ctx context.Context, requests ...Request) error {
	return l.changePauses(ctx, requests, fleet.Edit{What: "resume"})
}

// changePauses pauses the keys of the requests, or ends their pauses. The pause of a rule that is Pausable is a marker beside its state, which is noted
// for people. Other pauses are settings, and so is that of an actor. The end of a pause is written in both, because a rule may have been another one
// when the pause began.
func (l *Limiter) changePauses(ctx context.Context, requests []Request, e fleet.Edit) error {
	all, err := l.keySettings(ctx, fleet.Pause, requests, e)
	if err != nil {
		return err
	}
	by, err := actorOf(ctx)
	if err != nil {
		return err
	}
	set := all[0].Cleared || by.By != ""
	marks := l.machine().Change(engine.Repauses)
	for i := range requests {
		isMarked := requests[i].Rule.Pausable && requests[i].Match == "" && !fleet.IsGlob(requests[i].Rule.Name)
		if isMarked {
			if err := l.mark(marks, &requests[i], e.For, all[i].Cleared); err != nil {
				return err
			}
		}
		if set || !isMarked {
			e.Settings = append(e.Settings, all[i])
		}
	}
	if len(e.Settings) > 0 {
		if _, err := l.changeSettings(ctx, e); err != nil {
			return err
		}
	}
	if set { // the settings have all keys, and are noted
		ctx = WithActor(ctx, "", "")
	}
	if len(marks.Claims) > 0 {
		if err = l.changeStates(ctx, e.What, marks, marks.Adjust); err == nil {
			l.notePauses(ctx, requests, e.For, set)
		}
	}
	l.wakeAll(requests)
	return err
}

// notePauses notes the pauses beside the counts of the requests, or that they were ended or are settings.
func (l *Limiter) notePauses(ctx context.Context, requests []Request, d time.Duration, ended bool) {
	m := l.machine()
	for i := range requests {
		if !requests[i].Rule.Pausable {
			continue
		}
		rule, subject, err := l.ruleFor(&requests[i])
		switch {
		case err != nil: // as before
		case ended:
			m.Fleet().ForgetPause(rule.Numbers.Name, subject)
		default:
			m.NotePause(rule, strings.Clone(subject), d, "")
		}
	}
	_ = m.Fleet().TellPauses(ctx) // otherwise a beat does
}

// forgetPauses notes that the pauses beside counts were ended. A call does not wait for that where a beat tells it.
func (l *Limiter) forgetPauses(ctx context.Context, ended *decide.Step) {
	of, pausable := l.machine().Fleet(), false
	for i := range ended.Claims {
		if c := &ended.Claims[i]; c.Rule.Pausable {
			of.ForgetPause(c.Rule.Name, strings.Clone(c.Subject))
			pausable = true
		}
	}
	if pausable && !of.Beats() {
		_ = of.TellPauses(ctx)
	}
}

// mark adds the markers of a request's counts to a step that pauses them, or ends their pauses.
func (l *Limiter) mark(marks *decide.Step, r *Request, d time.Duration, ends bool) error {
	counts, subject, err := l.countsOf(r)
	for _, count := range counts {
		claim := claimOn(count, subject)
		if claim.Delta = d.Microseconds(); ends {
			claim.Delta = -1
		}
		if count.Numbers.Pausable {
			marks.Put(count, claim)
		}
	}
	return err
}

// changeStates calls do, which changes counts, in the name of the actor of ctx.
func (l *Limiter) changeStates(ctx context.Context, what string, step *decide.Step, do func(context.Context) error) error {
	by, err := actorOf(ctx)
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return decide.ContextError(ctx, "")
	}
	first := &step.Claims[0]
	change := fleet.Change{By: by.By, Reason: by.Reason, What: what, Rule: first.Rule.Name, Key: strings.Clone(first.Subject), Keys: len(step.Claims)}
	if step.Change == engine.Gives {
		change.Permits = -first.Delta
	}
	if err = do(ctx); err == nil {
		err = l.machine().Fleet().Note(ctx, change)
	}
	return l.machine().StoreError(ctx, "", err)
}

// wakeAll wakes the calls of this limiter that wait for the keys of the requests, so that they ask again.
func (l *Limiter) wakeAll(requests []Request) {
	for i := range requests {
		rule, subject, err := l.ruleFor(&requests[i])
		if err != nil {
			continue
		}
		for _, count := range rule.Counts() {
			l.machine().WakeAll(count, subject)
		}
	}
}
