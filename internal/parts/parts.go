// Package parts decides calls whose claims nobody can decide in one step: claims of two scopes, or of subjects that may be on different servers.
// The claims that can be decided in one step are a part. Parts are decided one after the other. If one part does not admit its claims now, the
// others give back what they took.
//
// Package parts knows neither scopes nor servers. After the decision no part has a place for a call that waits, because two parts cannot keep one
// for the same instant. The verdict tells such a call when to ask again.
package parts

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/ratelimit-go/ratelimit/internal/backend"
	"github.com/ratelimit-go/ratelimit/internal/engine"
)

// Split returns the name of the part that the claim with an index belongs to, and the decider of that part. A Split is itself a backend.Decider of
// the call that it divides: it decides the call part by part, in the order of their names. It passes a call with a single part on unchanged. Whoever
// knows that a call has a single part asks the decider of that part instead: a Split compares names in each call.
type Split func(claim int) (name string, decider backend.Decider)

// part holds the claims of a call that are decided in one step.
type part struct {
	name    string
	decider backend.Decider
	call    engine.Call // with copies of the claims
	index   []int       // of the claims in the whole call
	verdict engine.Verdict
}

// sole returns the decider of a call with a single part, and otherwise nil.
func (s Split) sole(call *engine.Call) backend.Decider {
	first, decider := s(0)
	for i := 1; i < len(call.Claims); i++ {
		if name, _ := s(i); name != first {
			return nil
		}
	}
	return decider
}

// parts returns the parts of a call, in the order of their names: with all its claims, or only with those that an adjustment changes.
func (s Split) parts(call *engine.Call, changed bool) (parts []*part) {
	for i := range call.Claims {
		c := &call.Claims[i]
		if changed && c.Delta == 0 {
			continue
		}
		name, decider := s(i)
		index, found := slices.BinarySearchFunc(parts, name, func(p *part, name string) int { return strings.Compare(p.name, name) })
		if !found {
			parts = slices.Insert(parts, index, &part{name: name, decider: decider, call: *call})
			parts[index].call.Claims = nil
		}
		p := parts[index]
		p.call.Claims, p.index = append(p.call.Claims, *c), append(p.index, i)
	}
	return parts
}

// ErrParts is the error of a call that reserves and has several parts. None of them was asked.
var ErrParts = errors.New("several parts cannot keep a place for the same instant")

// Decide implements backend.Decider. It asks all parts, even after a refusal, so all rules that refuse are known.
func (s Split) Decide(ctx context.Context, call *engine.Call) (engine.Verdict, error) {
	if whole := s.sole(call); whole != nil {
		return whole.Decide(ctx, call)
	}
	if call.Reserves {
		return engine.Verdict{}, ErrParts
	}
	parts := s.parts(call, false)
	admitted, permits := !call.Refused, int64(0)
	for _, p := range parts {
		p.prepare(!admitted, permits)
		v, err := p.decider.Decide(ctx, &p.call)
		if err != nil {
			return v, errors.Join(err, trim(ctx, parts, 0))
		}
		p.verdict, permits = v, v.Taken
		admitted = admitted && v.Admitted && (v.At == v.Now || call.Peek)
	}
	if !admitted {
		_ = trim(ctx, parts, 0) // the call is refused even if this fails
		permits = 0
	} else if call.UpTo && !call.Peek {
		if err := trim(ctx, parts, permits); err != nil {
			return engine.Verdict{}, errors.Join(err, trim(ctx, parts, 0))
		}
	}
	return merge(call, parts, admitted, permits), nil
}

// prepare clears the part's answers, and takes the waits out of its call. A peek keeps its waits. So do rules with a Block: without its wait, a
// call that could wait would be refused, and a refusal begins a block. An UpTo call asks for as many permits as the part before it took.
func (p *part) prepare(refused bool, permits int64) {
	p.call.Refused = refused
	for i := range p.call.Claims {
		c := &p.call.Claims[i]
		c.Clear()
		if !p.call.Peek && c.Rule.Block == 0 {
			c.Wait = min(c.Wait, 0)
		}
		if permits > 0 {
			c.Cost = permits
		}
	}
}

// trim leaves the parts a charge of at most n permits, and gives back the rest. If n is 0, it rolls the call back.
func trim(ctx context.Context, parts []*part, n int64) (failed error) {
	for _, p := range parts {
		p.call.Rollback = n == 0
		for i := range p.call.Claims {
			c := &p.call.Claims[i]
			c.Delta = min(0, n-c.Charged)
		}
		failed = errors.Join(failed, Split(p.all).Adjust(ctx, &p.call))
		p.noteTrim(n)
	}
	return failed
}

// all is the Split of the part's own call.
func (p *part) all(int) (string, backend.Decider) { return p.name, p.decider }

// noteTrim takes what was given back out of the answers.
func (p *part) noteTrim(n int64) {
	for i := range p.call.Claims {
		c := &p.call.Claims[i]
		if n > 0 && c.Delta != 0 {
			continue // nothing of this charge was given back
		}
		if p.call.Report {
			c.Room += max(0, c.Charged-n)
		}
		if c.Charged = min(c.Charged, n); n == 0 {
			c.At, c.Extra, c.Stored, c.Fired = 0, 0, 0, 0
		}
	}
}

// merge copies the answers of the parts to the call, and returns their verdict. Its times are by the clock of the last part, whose source it has.
func merge(call *engine.Call, parts []*part, admitted bool, permits int64) engine.Verdict {
	v := parts[len(parts)-1].verdict
	v.At, v.Admitted, v.Taken = v.Now, admitted, permits
	for _, p := range parts {
		p.copyTo(call, &v)
	}
	if !admitted && !call.AskAgain(v) {
		v.At = 0
	}
	return v
}

// copyTo copies the part's answers to the whole call. It converts times to the clock of the verdict, except the At of a claim, which Adjust needs
// by the part's own clock. A rule that was asked without its wait refuses the call only if its earliest time is after the wait.
func (p *part) copyTo(call *engine.Call, v *engine.Verdict) {
	offset := p.verdict.Now - v.Now
	v.At = max(v.At, p.verdict.At-offset)
	for i, index := range p.index {
		c, answer := &call.Claims[index], p.call.Claims[i]
		answer.Cost, answer.Wait, answer.Delta = c.Cost, c.Wait, c.Delta
		if answer.Refused && answer.Wait > 0 && answer.Rule.Block == 0 {
			if answer.Rule.Kind.Row().Releases { // it was asked without its wait; it is asked again when the wait ends, or earlier
				answer.Earliest = min(answer.Earliest, p.verdict.Now+answer.Wait)
			}
			answer.Refused = answer.Earliest > p.verdict.Now+answer.Wait
		}
		if answer.Earliest > 0 {
			answer.Earliest -= offset
		}
		if answer.Mode == engine.Enforce {
			v.At = max(v.At, answer.Earliest)
		}
		if answer.Full > 0 {
			answer.Full -= offset
			answer.More -= offset
		}
		if answer.Paused > 0 {
			answer.Paused -= offset
		}
		*c = answer
	}
}

// Adjust implements backend.Decider. It passes on only the claims that change. If one part fails, the others are still adjusted.
func (s Split) Adjust(ctx context.Context, call *engine.Call) error {
	if whole := s.sole(call); whole != nil && !slices.ContainsFunc(call.Claims, func(c engine.Claim) bool { return c.Delta == 0 }) {
		return whole.Adjust(ctx, call)
	}
	var failed error
	for _, p := range s.parts(call, true) {
		failed = errors.Join(failed, p.decider.Adjust(ctx, &p.call))
		for i, index := range p.index {
			c, own := &call.Claims[index], &p.call.Claims[i]
			c.Delta, c.At, c.Dated = own.Delta, own.At, own.Dated
		}
	}
	return failed
}

// Reset implements backend.Decider.
func (s Split) Reset(ctx context.Context, call *engine.Call) (found int, err error) {
	if whole := s.sole(call); whole != nil {
		return whole.Reset(ctx, call)
	}
	for _, p := range s.parts(call, false) {
		n, failed := p.decider.Reset(ctx, &p.call)
		found, err = found+n, errors.Join(err, failed)
	}
	return found, err
}
