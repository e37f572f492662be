package behaviour_test

import (
	"testing"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
)

// However many rules a call has, and whatever their algorithms and subjects, a server decides them in one script.
func TestRulesOfACallShareOneScript(t *testing.T) {
	t.Parallel()
	client := connect(t, redistest.Start(t).Addr)
	load(t, client)
	s := &subject{limiter: ratelimit.New(scripted(client, redisstore.WithRefusalMemory(0)))}
	var call []ratelimit.Request
	for name, rule := range algorithms() {
		rule.Name = name
		call = append(call, ratelimit.Request{Rule: rule, Key: "k"}, ratelimit.Request{Rule: rule, Key: "another subject"})
	}
	s.admit(t, call...) // afterwards the server knows the script
	for n := range 5 {
		before := scripts(t, client)
		if d := s.allow(t, call...); d.Allowed != (n < 2) {
			t.Errorf("call %d: got %+v", n+2, d)
		}
		if ran := scripts(t, client) - before; ran != 1 {
			t.Errorf("call %d under %d rules ran %d scripts", n+2, len(call), ran)
		}
	}
}

// The limiters of a fleet share the counts of fleet scope. Each has its own counts of instance scope.
func TestLimitersOfOneStore(t *testing.T) {
	onPlainToo(t, func(t *testing.T, s *subject) {
		for _, rule := range s.algorithms() {
			fleet, instance := ratelimit.Request{Rule: rule, Key: "fleet"}, ratelimit.Request{Rule: rule, Key: "instance"}
			instance.Rule.Scope = ratelimit.ScopeInstance
			other := &subject{limiter: s.another()}
			s.admit(t, fleet)
			other.admit(t, fleet)
			s.admit(t, fleet)
			other.refuse(t, fleet)
			s.refuse(t, fleet)
			for _, limiter := range []*subject{s, other} {
				for range 3 {
					limiter.admit(t, instance)
				}
				limiter.refuse(t, instance)
			}
		}
	})
}
