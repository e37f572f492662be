package redisstore

import (
	"context"
	"errors"
	"time"

	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
)

// group is the part of a call that one server decides in one step.
type group struct {
	call    engine.Call // with copies of the claims
	index   []int       // of the claims in the whole call
	verdict engine.Verdict
}

// groups returns copies of the wanted claims. If different subjects may be on different servers, there is a group for each subject, and
// otherwise a single group.
func (s *store) groups(call *engine.Call, wanted func(*engine.Claim) bool) []*group {
	var groups []*group
	split := s.Split.Load()
	for i := range call.Claims {
		c := &call.Claims[i]
		if !wanted(c) {
			continue
		}
		var g *group
		for _, other := range groups {
			if !split || other.call.Claims[0].Subject == c.Subject {
				g = other
			}
		}
		if g == nil {
			g = &group{call: *call}
			g.call.Claims = nil
			groups = append(groups, g)
		}
		g.call.Claims = append(g.call.Claims, *c)
		g.index = append(g.index, i)
	}
	return groups
}

// decideSpread decides a call whose claims may be on different servers, one group after the other. The servers cannot keep places for the same
// instant, so the verdict tells a call that would have to wait when to ask again. If a group does not admit the call now, the permits that
// earlier groups took are given back. The remaining groups are asked nevertheless, so that all refusing rules are known. All of that has one
// timeout.
func (s *store) decideSpread(ctx context.Context, call *engine.Call) (engine.Verdict, error) {
	groups := s.groups(call, func(*engine.Claim) bool { return true })
	admitted, taken, until := true, int64(0), time.Now().Add(s.Timeout)
	for _, g := range groups {
		g.prepare(call.Refused || !admitted, taken)
		v, err := s.decide(ctx, &request{call: &g.call, until: until})
		if err != nil {
			return engine.Verdict{}, errors.Join(err, s.keep(ctx, groups, 0, until))
		}
		g.verdict, taken = v, v.Taken
		admitted = admitted && v.Admitted && (v.At == v.Now || call.Peek)
	}
	if !admitted {
		_ = s.keep(ctx, groups, 0, until) // the call is refused even if this fails
		taken = 0
	} else if call.UpTo {
		if err := s.keep(ctx, groups, taken, until); err != nil {
			return engine.Verdict{}, errors.Join(err, s.keep(ctx, groups, 0, until))
		}
	}
	v := engine.Verdict{Now: groups[0].verdict.Now, At: groups[0].verdict.Now, Taken: taken, Answer: engine.Answer{Admitted: admitted}}
	for _, g := range groups {
		g.tell(call, &v)
	}
	if !admitted && !call.AskAgain(v) {
		v.At = 0
	}
	return v, nil
}

// prepare makes the group's call one that does not wait, except under rules with a Block: a refusal of a call that could wait would begin the
// block. An UpTo call asks for no more permits than the groups before have taken.
func (g *group) prepare(refused bool, taken int64) {
	g.call.Refused = refused
	for i := range g.call.Claims {
		c := &g.call.Claims[i]
		if !g.call.Peek && c.Rule.Block == 0 {
			c.Wait = min(c.Wait, 0)
		}
		if taken > 0 {
			c.Cost = taken
		}
	}
}

// keep leaves the groups a charge of at most n permits, and gives back the rest. If n is 0, it rolls the call back. After until it goes on in
// the background.
func (s *store) keep(ctx context.Context, groups []*group, n int64, until time.Time) error {
	var failed error
	for _, g := range groups {
		g.call.Rollback = n == 0
		for i := range g.call.Claims {
			c := &g.call.Claims[i]
			c.Delta = min(0, n-c.Charged)
		}
		if err := s.adjust(ctx, &g.call, until); err != nil {
			failed = errors.Join(failed, err)
		}
		for i := range g.call.Claims {
			c := &g.call.Claims[i]
			if n > 0 && c.Delta != 0 {
				continue // it surely was not done, so all of it is to be given back
			}
			if g.call.Report {
				c.Room += max(0, c.Charged-n)
			}
			if c.Charged = min(c.Charged, n); n == 0 {
				c.At, c.Extra, c.Stored, c.Fired = 0, 0, 0, 0
			}
		}
	}
	return failed
}

// tell copies the group's answer to the whole call. It converts times to the clock of the verdict.
func (g *group) tell(call *engine.Call, v *engine.Verdict) {
	ahead := g.verdict.Now - v.Now
	v.At = max(v.At, g.verdict.At-ahead)
	for i, at := range g.index {
		c, told := &call.Claims[at], g.call.Claims[i]
		told.Cost, told.Wait, told.Delta = c.Cost, c.Wait, c.Delta
		if told.Refused && told.Wait > 0 && told.Rule.Block == 0 {
			told.Refused = told.Earliest > g.verdict.Now+told.Wait
		}
		if told.Earliest > 0 {
			told.Earliest -= ahead
		}
		if told.Mode == engine.Enforce {
			v.At = max(v.At, told.Earliest)
		}
		if told.Full > 0 {
			told.Full -= ahead
		}
		*c = told
	}
}
