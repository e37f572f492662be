package plain

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// patience is how long to wait for a server, which may be slow on a busy machine.
const patience = time.Minute

// A site is a server without scripts, and a limiter on it.
type site struct {
	*ratelimit.Limiter
	server *redistest.Server
	client *redis.Client
	store  *store
}

// start lets the test run beside others, and returns a site for it.
func start(t *testing.T) *site {
	t.Parallel()
	server := redistest.Start(t)
	server.Do("ACL SETUSER default -@scripting")
	return on(t, server, server.Addr)
}

func on(t *testing.T, server *redistest.Server, addr string) *site {
	client := redis.NewClient(&redis.Options{
		ReadTimeout: patience, Addr: addr, PoolSize: 80, MinRetryBackoff: time.Millisecond, MaxRetryBackoff: time.Millisecond,
	})
	t.Cleanup(func() { _ = client.Close() })
	s := New(client, WithTimeout(patience)).(*store)
	return &site{ratelimit.New(s), server, client, s}
}

// withoutOverrides returns the site with a limiter whose store has no settings, so that all commands belong to calls.
func (s *site) withoutOverrides() *site {
	own := *s
	own.Limiter = ratelimit.New(bare{s.store})
	return &own
}

// bare is a store whose fleet is this process.
type bare struct{ ratelimit.Store }

func (bare) Fleet(string) *fleet.Fleet { return fleet.NewLocal(time.Now, nil) }

var (
	hourly = ratelimit.Rule{Name: "hourly", Limit: 3, Per: time.Hour, Algorithm: ratelimit.FixedWindow}
	yearly = ratelimit.Rule{Name: "yearly", Limit: 3, Cron: fmt.Sprintf("0 0 1 %d *", inHalfAYear)}
)

// inHalfAYear is the month in which years begin in these tests, so that none begins while they run.
var inHalfAYear = (time.Now().UTC().Month()+5)%12 + 1

func ask(rule ratelimit.Rule, key string) ratelimit.Request {
	return ratelimit.Request{Rule: rule, Key: key}
}

func (s *site) allow(t *testing.T, requests ...ratelimit.Request) ratelimit.Decision {
	t.Helper()
	d, err := s.Allow(context.Background(), requests...)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func (s *site) admit(t *testing.T, requests ...ratelimit.Request) ratelimit.Decision {
	t.Helper()
	d := s.allow(t, requests...)
	if !d.Allowed {
		t.Fatalf("refused: %+v", d)
	}
	return d
}

func (s *site) refuse(t *testing.T, requests ...ratelimit.Request) ratelimit.Decision {
	t.Helper()
	d := s.allow(t, requests...)
	if d.Allowed {
		t.Fatalf("admitted: %+v", requests)
	}
	return d
}

// left returns how many permits a rule has left. It finds out by asking for one too many.
func (s *site) left(t *testing.T, rule ratelimit.Rule, key string) int64 {
	t.Helper()
	q := ratelimit.Request{Rule: rule, Key: key, Cost: rule.Limit}
	d, err := s.Peek(context.Background(), q)
	if err != nil {
		t.Fatal(err)
	}
	if d.Allowed {
		return rule.Limit
	}
	return d.Violations[0].Remaining
}

// waitLeft waits until a rule has n permits left.
func (s *site) waitLeft(t *testing.T, rule ratelimit.Rule, key string, n int64) {
	t.Helper()
	redistest.Eventually(t, fmt.Sprint("permits left: ", n), func() bool { return s.left(t, rule, key) == n })
}

// requireBounded fails the test if a key has no expiry.
func (s *site) requireBounded(t *testing.T) {
	t.Helper()
	for key := range strings.FieldsSeq(s.server.Do("KEYS *")) {
		if ttl := s.client.Do(context.Background(), "PTTL", key).Val(); ttl == int64(-1) {
			t.Errorf("%q has no expiry", key)
		}
	}
}

// dump returns all keys and values of the server.
func (s *site) dump(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for key := range strings.SplitSeq(s.server.Do("KEYS *"), "\n") {
		all.WriteString(key + s.client.Dump(context.Background(), key).Val() + s.client.PExpireTime(context.Background(), key).String())
	}
	return all.String()
}
