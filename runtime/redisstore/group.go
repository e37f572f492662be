package redisstore

import (
	"slices"

	"github.com/ratelimit-go/ratelimit/runtime/internal/decide"
)

// group is the claims of a call that one script can decide.
type group struct {
	keys   []string
	claims []*decide.Claim
	wait   int64 // how long the call waits for the group, once it is decided
}

// groups returns the claims in groups of equal subjects where these may be on different servers, else in one.
func (s *store) groups(call *decide.Call) []*group {
	var groups []*group
	for i := range call.Claims {
		c := &call.Claims[i]
		g := find(groups, c, s.split.Load())
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

// args returns the keys, then the rules, as the script takes them for a call at now that is admitted by until.
func (g *group) args(now, until int64) []any {
	args := make([]any, 0, 2*len(g.keys)+2)
	for _, key := range g.keys {
		args = append(args, key)
	}
	for _, c := range g.claims {
		args = append(args, encode(c, now, until))
	}
	return args
}

// patience returns how long the call may have to wait: for one of the rules, or until after.
func (g *group) patience(after int64) int64 {
	for _, c := range g.claims {
		after = max(after, c.Wait)
	}
	return after
}

// plain reports whether no rule may delay the call, and all are of the kinds that script.lua is always ready for.
func (g *group) plain() bool {
	return !slices.ContainsFunc(g.claims, func(c *decide.Claim) bool { return c.Wait > 0 || c.Rule.Kind > decide.Prepaid })
}

// reset forgets the answer of an earlier decision.
func (g *group) reset() {
	g.wait = 0
	for _, c := range g.claims {
		c.Charged, c.At, c.Extra, c.Stored, c.Earliest, c.Room, c.Fired = false, 0, 0, 0, 0, 0, 0
	}
}

// read takes in the script's answer. With charge an admitted call was charged.
func (g *group) read(reply any, charge bool) (decide.Verdict, error) {
	switch reply := reply.(type) {
	case int64:
		return g.admitted(reply, reply, "", charge)
	case string:
		now, err := reportTime(reply)
		if err != nil {
			return decide.Verdict{}, err
		}
		return decide.Verdict{Now: now, At: now}, decodeReport(reply, g.claims)
	case []any:
		if len(reply) == 3 {
			at, ok1 := reply[0].(int64)
			now, ok2 := reply[1].(int64)
			report, ok3 := reply[2].(string)
			if ok1 && ok2 && ok3 {
				return g.admitted(at, now, report, charge)
			}
		}
	}
	return decide.Verdict{}, errReply
}

func (g *group) admitted(at, now int64, report string, charge bool) (decide.Verdict, error) {
	if err := decodeReport(report, g.claims); err != nil {
		return decide.Verdict{}, err
	}
	for _, c := range g.claims {
		c.At, c.Charged = at, charge && c.Rule.Kind != decide.Block && !c.Refused(now)
	}
	g.wait = at - now
	return decide.Verdict{Now: now, At: at, Admitted: true}, nil
}

// charged returns the part of the group that was charged.
func (g *group) charged() *group {
	part := new(group)
	for i, c := range g.claims {
		if c.Charged {
			part.keys = append(part.keys, g.keys[i])
			part.claims = append(part.claims, c)
		}
	}
	return part
}

// clone returns a group whose claims are its own.
func (g *group) clone() *group {
	copied := &group{keys: g.keys}
	for _, c := range g.claims {
		claim := *c
		copied.claims = append(copied.claims, &claim)
	}
	return copied
}

// shift moves the group's answer to the clock of another server.
func (g *group) shift(by int64) {
	for _, c := range g.claims {
		if c.Earliest != 0 {
			c.Earliest += by
		}
	}
}
