package ratelimit_test

import (
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
)

// A status has the limits in force, and says when the settings were last read.
func TestStatus(t *testing.T) {
	server := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer client.Close()
	l := ratelimit.New(redisstore.New(client, redisstore.WithTimeout(time.Minute)))
	if s := l.Status(); !s.Read.IsZero() || !s.StoreUp || len(s.Rules) > 0 {
		t.Errorf("got %+v", s)
	}
	rules := []ratelimit.Rule{{Name: "b", Limit: 5, Per: time.Minute}, {Name: "a", Limit: 7, Per: time.Minute}, {Name: "b", Limit: 50, Per: time.Hour}}
	if err := l.Check(rules...); err != nil {
		t.Fatal(err)
	}
	if got := l.Status().Rules; !slices.Equal(got, []ratelimit.RuleStatus{{Name: "a", Limit: 7}, {Name: "b", Limit: 5}}) {
		t.Errorf("got %+v", got)
	}
	began, two := time.Now(), int64(2)
	if err := l.Overrides().Set(t.Context(), "a", ratelimit.Override{Limit: &two}); err != nil {
		t.Fatal(err)
	}
	s := l.Status()
	if s.Settings != 1 || s.Read.Before(began) || !slices.Equal(s.Rules, []ratelimit.RuleStatus{{Name: "a", Limit: 2}, {Name: "b", Limit: 5}}) {
		t.Errorf("got %+v", s)
	}
}
