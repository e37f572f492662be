package behaviour_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

func onCluster(t *testing.T, c redistest.Cluster) *subject {
	return &subject{limiter: ratelimit.New(scripted(connectCluster(t, c))), pass: time.Sleep, near: time.Sleep}
}

// On a cluster, a call whose subjects are on several nodes is still charged to all its rules or to none.
func TestCluster(t *testing.T) {
	t.Parallel()
	servers := redistest.StartCluster(t, 3)
	s := onCluster(t, servers)
	t.Run("one subject", func(t *testing.T) {
		for name, rule := range algorithms() {
			rule.Name = name
			q := ratelimit.Request{Rule: rule, Key: "k"}
			for range 3 {
				s.admit(t, q)
			}
			s.refuse(t, q)
		}
	})
	t.Run("a refusal on one node takes nothing on the others", func(t *testing.T) {
		for name, rule := range algorithms() {
			rule.Name = "across-" + name
			refusalAcrossNodes(t, s, rule)
		}
	})
	t.Run("anchors of some requests", func(t *testing.T) { requestsOfWhichSomeHaveAnAnchor(t, s) })
	t.Run("cold servers", func(t *testing.T) {
		for _, server := range servers {
			server.Do("SCRIPT FLUSH")
		}
		for i := range 100 {
			s.admit(t, ratelimit.Request{Rule: hourly, Key: fmt.Sprint("cold", i)})
		}
	})
	t.Run("behind a client that does not show it", func(t *testing.T) {
		wrapped := struct{ redis.UniversalClient }{connectCluster(t, servers)}
		s := &subject{limiter: ratelimit.New(scripted(wrapped)), pass: time.Sleep, near: time.Sleep}
		rule := hourly
		rule.Name, rule.Limit = "wrapped", 3
		refusalAcrossNodes(t, s, rule)
	})
	for _, server := range servers {
		requireExpiries(t, server)
	}
}

func refusalAcrossNodes(t *testing.T, s *subject, rule ratelimit.Rule) {
	t.Helper()
	var all []ratelimit.Request
	for i := range 8 {
		all = append(all, ratelimit.Request{Rule: rule, Key: fmt.Sprint("subject", i)})
	}
	s.admit(t, all...)
	s.admit(t, ratelimit.Request{Rule: rule, Key: "subject7", Cost: 2})
	d := s.refuse(t, all...)
	if len(d.Violations) != 1 || d.Violations[0].Key != "subject7" {
		t.Errorf("%s: violations %+v, want one, of subject7", rule.Name, d.Violations)
	}
	for _, q := range all[:7] {
		if left := s.left(t, q); left != 2 {
			t.Errorf("%s of %s: %d of 3 permits left after one call and a refused one", rule.Name, q.Key, left)
		}
	}
	if _, err := s.limiter.Reset(context.Background(), all...); err != nil {
		t.Fatal(err)
	}
	first := s.admit(t, all...)
	if err := first.Refund(context.Background()); err != nil {
		t.Fatal(err)
	}
	for _, q := range all {
		if left := s.left(t, q); left != 3 {
			t.Errorf("%s of %s: %d of 3 permits left after a reset and a return", rule.Name, q.Key, left)
		}
	}
}
