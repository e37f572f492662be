package redisstore

import (
	"slices"

	"github.com/ratelimit-go/ratelimit/runtime/internal/decide"
)

// group is the claims of a call that one script can decide.
type group struct {
	keys   []string
	claims []*decide.Claim
}

// groups returns the claims in groups of equal subjects where these may be on different servers, else in one.
func (s *store) groups(call *decide.Call) []*group {
	var groups []*group
	for i := range call.Claims {
		c := &call.Claims[i]
		g := find(groups, c, s.split)
		if g == nil {
			g = new(group)
			groups = append(groups, g)
		}
		g.keys = append(g.keys, keyOf(call.Prefix.Value(), c))
		g.claims = append(g.claims, c)
	}
	return groups
}

func find(groups []*group, c *decide.Claim, split bool) *group {
	for _, g := range groups {
		if !split || g.claims[0].Subject == c.Subject {
			return g
		}
	}
	return nil
}

// args returns the keys, then the rules, as the script takes them in the calendar windows that hold now.
func (g *group) args(now int64) []any {
	args := make([]any, 0, 2*len(g.keys)+2)
	for _, key := range g.keys {
		args = append(args, key)
	}
	for _, c := range g.claims {
		args = append(args, encode(c, now))
	}
	return args
}

// plain reports whether no rule may delay the call, and all are of the kinds that script.lua is always ready for.
func (g *group) plain() bool {
	return !slices.ContainsFunc(g.claims, func(c *decide.Claim) bool { return c.Wait > 0 || c.Rule.Kind > decide.Prepaid })
}

// admitted takes in that the call is admitted at a time.
func (g *group) admitted(at, now int64, report string) (decide.Verdict, error) {
	for _, c := range g.claims {
		c.At, c.Earliest, c.Room, c.Fired = at, 0, 0, 0
	}
	v := decide.Verdict{Now: now, At: at, Admitted: true}
	return v, decodeReport(report, g.claims)
}

func (g *group) admittedWith(reply []any) (decide.Verdict, error) {
	if len(reply) == 3 {
		at, ok1 := reply[0].(int64)
		now, ok2 := reply[1].(int64)
		report, ok3 := reply[2].(string)
		if ok1 && ok2 && ok3 {
			return g.admitted(at, now, report)
		}
	}
	return decide.Verdict{}, errReply
}

// refused takes in that the call is refused.
func (g *group) refused(report string) (decide.Verdict, error) {
	now, err := reportTime(report)
	if err != nil {
		return decide.Verdict{}, err
	}
	v, err := g.admitted(0, now, report)
	v.Admitted, v.At = false, now
	return v, err
}

// shift moves the group's answer to the clock of another server.
func (g *group) shift(by int64) {
	for _, c := range g.claims {
		if c.Earliest != 0 {
			c.Earliest += by
		}
	}
}
