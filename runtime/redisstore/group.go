package redisstore

import (
	"slices"

	"github.com/ratelimit-go/ratelimit/runtime/internal/decide"
)

// group is the claims of a call that one script can decide.
type group struct {
	keys   []string
	claims []*decide.Claim

	// Once it is decided, on its server's clock:
	now, at   int64 // of the decision, and of the admission, now or later
	low, high int64 // how far that clock is ahead of this process's, at least and at most
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

// until returns until when a call at now may have to wait: for one of the rules, or for what the operation says.
func (g *group) until(now int64, op operation) int64 {
	patience := int64(0)
	for _, c := range g.claims {
		patience = max(patience, c.Wait)
	}
	switch op.name {
	case "", opReturn, opUndo:
		return now
	case opFrom:
		return max(op.operand, now+patience)
	default:
		return now + max(op.operand, patience)
	}
}

// plain reports whether no rule may delay the call, and all are of the kinds that script.lua is always ready for.
func (g *group) plain() bool {
	return !slices.ContainsFunc(g.claims, func(c *decide.Claim) bool { return c.Wait > 0 || c.Rule.Kind > decide.Prepaid })
}

// reset forgets the answer of an earlier decision.
func (g *group) reset() {
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

// earliest returns when the call is admitted, or would be.
func (g *group) earliest(v decide.Verdict) int64 {
	at := v.At
	for _, c := range g.claims {
		if c.Mode == decide.Enforce && c.Earliest > at {
			at = c.Earliest
		}
	}
	return at
}

func (g *group) admitted(at, now int64, report string, charge bool) (decide.Verdict, error) {
	if err := decodeReport(report, g.claims); err != nil {
		return decide.Verdict{}, err
	}
	for _, c := range g.claims {
		c.At, c.Charged = at, charge && c.Rule.Kind != decide.Block && !c.Refused(now)
	}
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
