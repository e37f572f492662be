package redisstore

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/ratelimit-go/ratelimit/runtime/internal/decide"
)

// maxRounds bounds how often the places of a call are all given up and asked for again.
const maxRounds = 20

var errContended = errors.New("other calls are faster, again and again")

// decideSpread decides groups that may be on different servers: all of them at one instant, or none. Calls that compete for the
// places of two servers push each other back. So a call that cannot be admitted at once waits until it has its turn in this
// process before it takes places to come. Times are told on the clock of the first group's server.
func (s *store) decideSpread(ctx context.Context, groups []*group, call *decide.Call) (decide.Verdict, error) {
	if call.Peek || call.Refused {
		admitted, err := s.decideInTurn(ctx, groups, *call)
		return tell(groups, admitted), err
	}
	order := slices.Clone(groups)
	if call.After == 0 && call.From == 0 {
		if v, err := s.decideAtOnce(ctx, groups, order, call); err != errContended {
			return v, err
		}
	}
	leave, err := s.turns.Take(ctx, call)
	if err != nil {
		return decide.Verdict{}, err
	}
	defer leave()
	for range maxRounds {
		if v, err := s.attempt(ctx, groups, order, call); err != errContended {
			return v, err
		}
	}
	return contend(order, groups)
}

// decideAtOnce decides the groups for a call that has no time. The error is errContended if it has, and needs it; nothing is
// charged then.
func (s *store) decideAtOnce(ctx context.Context, groups, order []*group, call *decide.Call) (decide.Verdict, error) {
	blocks := func(c decide.Claim) bool { return c.Rule.Kind == decide.Block }
	if slices.ContainsFunc(call.Claims, blocks) {
		return s.attempt(ctx, groups, order, call) // what would be a refusal for want of time must not begin one
	}
	waits := make([]int64, len(call.Claims))
	for i := range waits {
		c := &call.Claims[i]
		waits[i], c.Wait = c.Wait, 0
	}
	v, err := s.attempt(ctx, groups, order, call)
	refused := false
	for i, wait := range waits {
		c := &call.Claims[i]
		c.Wait = wait
		refused = refused || c.Mode == decide.Enforce && c.Refused(v.Now)
	}
	if err == nil && !v.Admitted && !refused {
		err = errContended
	}
	return v, err
}

// attempt decides the groups, in an order. The error is errContended if all was given back because others were faster. Where the
// call is not admitted, order becomes that in which to ask again: first where it would have to wait longest.
func (s *store) attempt(ctx context.Context, groups, order []*group, call *decide.Call) (decide.Verdict, error) {
	asked := *call
	if asked.From > 0 {
		asked.From += order[0].ahead(groups[0])
	}
	admitted, err := s.decideInTurn(ctx, order, asked)
	if admitted && err == nil {
		admitted, err = s.meet(ctx, order, call)
	}
	if admitted && err == nil {
		return tell(groups, true), nil
	}
	slices.SortStableFunc(order, func(a, b *group) int { return b.compare(a) })
	back := s.giveBack(ctx, opUndo, groups)
	switch {
	case err == nil: // the refusal stands, whatever became of the rest
		return tell(groups, false), nil
	case err != errContended || back != nil:
		return decide.Verdict{}, errors.Join(err, back)
	}
	return decide.Verdict{}, errContended
}

// decideInTurn asks group after group, each for a place that is not before those of the others. Once one refuses, the rest are
// only asked, so that all refusing rules are known.
func (s *store) decideInTurn(ctx context.Context, order []*group, call decide.Call) (admitted bool, err error) {
	admitted = true
	var latest *group
	for _, g := range order {
		var v decide.Verdict
		if latest != nil && latest.waits() {
			v, err = s.follow(ctx, g, latest, &call)
		} else {
			v, err = s.decide(ctx, g, &call, first(&call))
		}
		switch {
		case err != nil && !admitted:
			return false, nil
		case err != nil:
			return false, err
		case !v.Admitted:
			admitted, call.Refused = false, true
		case latest == nil || g.compare(latest) > 0:
			latest = g
		}
	}
	return admitted, nil
}

// meet moves the groups to the latest place that one of them has, which is kept meanwhile. Nobody has to move once that is no
// longer to come. The error is errContended if a group finds its next place behind that: to go on from there would push others
// back, who would do the same.
func (s *store) meet(ctx context.Context, groups []*group, call *decide.Call) (admitted bool, err error) {
	latest := slices.MaxFunc(groups, (*group).compare)
	for _, g := range groups {
		if !latest.waits() || g.meets(latest) {
			continue
		}
		if err := s.giveBack(ctx, opUndo, []*group{g}); err != nil {
			return false, err
		}
		v, err := s.follow(ctx, g, latest, call)
		switch {
		case err != nil || !v.Admitted:
			return false, err
		case g.waits() && !g.meets(latest):
			return true, errContended
		case !g.waits():
			latest = g // and the call waits no more
		}
	}
	return true, nil
}

// follow decides a group for a time that is not before the place of another one. Two clocks are taken to agree until both are
// known.
func (s *store) follow(ctx context.Context, g, latest *group, call *decide.Call) (decide.Verdict, error) {
	known := g.high != 0
	v, err := s.decide(ctx, g, call, operation{opFrom, latest.at + g.ahead(latest)})
	if known || err != nil || !v.Admitted || call.Peek || g.ahead(latest) == 0 {
		return v, err
	}
	if err := s.giveBack(ctx, opUndo, []*group{g}); err != nil {
		return v, err
	}
	return s.decide(ctx, g, call, operation{opFrom, latest.at + g.ahead(latest)})
}

// waits reports whether the group's place was to come when it was decided.
func (g *group) waits() bool { return g.at > g.now }

// ahead returns how far the clock of g's server is ahead of that of h's: nothing, if that is possible by what is known.
func (g *group) ahead(h *group) int64 {
	if g.high == 0 || h.high == 0 {
		return 0
	}
	return max(g.low-h.high, min(g.high-h.low, 0))
}

// compare compares the groups' places.
func (g *group) compare(h *group) int { return cmp.Compare(g.at-g.ahead(h), h.at) }

// meets reports whether both have one place, as far as their clocks are known.
func (g *group) meets(h *group) bool {
	if d := g.at - h.at; g.ahead(h) != 0 {
		return g.low-h.high <= d && d <= g.high-h.low
	}
	return g.at == h.at
}

// tell returns the verdict of all groups, and moves what their claims say to the clock of the first one.
func tell(groups []*group, admitted bool) decide.Verdict {
	one := groups[0]
	v := decide.Verdict{Now: one.now, At: one.at, Admitted: admitted}
	if latest := slices.MaxFunc(groups, (*group).compare); latest.waits() {
		v.At = latest.at - latest.ahead(one)
	}
	for _, g := range groups {
		for _, c := range g.claims {
			if c.Earliest != 0 {
				c.Earliest += one.now - g.now
			}
		}
	}
	return v
}

// contend refuses a call for which others were too fast: by the rules of the latest place, or if they cannot, the next ones.
func contend(order, groups []*group) (decide.Verdict, error) {
	for _, g := range order {
		refused := false
		for _, c := range g.claims {
			refused = c.Contend(g.now, g.at) || refused
		}
		if refused {
			return tell(groups, false), nil
		}
	}
	return decide.Verdict{}, errContended
}
