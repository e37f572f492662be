package behaviour_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/lua"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/plain"
)

// A subject is a limiter under test and a way to let time pass for it.
type subject struct {
	limiter *ratelimit.Limiter
	store   ratelimit.Store           // of the limiter
	server  *redistest.Server         // of the store, if opened started one
	another func() *ratelimit.Limiter // one more program on the same store
	pass    func(time.Duration)       // lets at least that much time pass
	window  ratelimit.Algorithm       // of rules for which any window serves: a sliding one, or a fixed one if the store has no other
	late    bool                      // a fixed window may begin after its first call: until the server has written it
	// near lets most of a delay pass: all but a microsecond if the test moves the clock, and otherwise as much as a sleep allows.
	near func(time.Duration)
}

// bare is a store that limiters only ask for decisions, so that no beat of theirs writes keys.
type bare struct{ ratelimit.Store }

func (bare) Fleet(string) *fleet.Fleet { return fleet.NewLocal(time.Now, nil) }

func (bare) Ping(context.Context, string, []*engine.Rule) error { return nil }

// opened opens each kind of store for a test.
var opened = map[string]func(*testing.T) *subject{
	"memory":    func(*testing.T) *subject { return inMemory(newClock()) },
	"real time": func(*testing.T) *subject { return onStore(memstore.New()) },
	"functions": func(t *testing.T) *subject { return onServer(t, redistest.Start(t), scriptedBy["functions"]...) },
	"evalsha":   func(t *testing.T) *subject { return onServer(t, redistest.Start(t), scriptedBy["evalsha"]...) },
	"plain":     func(t *testing.T) *subject { return onPlain(t, redistest.Start(t)) },
}

// scriptedBy are the ways in which a server runs the script.
var scriptedBy = map[string][]redisstore.Option{"functions": nil, "evalsha": {redisstore.WithoutFunctions()}}

// on runs a scenario on each of some stores at the same time, and beside other tests.
func on(t *testing.T, scenario func(*testing.T, *subject), stores ...string) {
	t.Parallel()
	for _, name := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scenario(t, opened[name](t))
		})
	}
}

// onEveryStore runs a scenario once for each store that knows every rule.
func onEveryStore(t *testing.T, scenario func(*testing.T, *subject)) {
	on(t, scenario, "memory", "functions", "evalsha")
}

// inRealTime does so with a store in memory whose clock the test does not move.
func inRealTime(t *testing.T, scenario func(*testing.T, *subject)) {
	on(t, scenario, "real time", "functions", "evalsha")
}

// onPlainToo runs a scenario once for each store. Its rules are fixed or calendar windows for which no call waits.
func onPlainToo(t *testing.T, scenario func(*testing.T, *subject)) {
	on(t, scenario, "memory", "functions", "evalsha", "plain")
}

// onServers runs a scenario once for each store on a server, which it gets, too. Its rules are those of onPlainToo.
func onServers(t *testing.T, scenario func(*testing.T, *redistest.Server, *subject)) {
	on(t, func(t *testing.T, s *subject) { scenario(t, s.server, s) }, "functions", "evalsha", "plain")
}

// onEveryServer runs a scenario of several programs on a server where they call functions, and on one that lets them run the script by EVALSHA
// only.
func onEveryServer(t *testing.T, scenario func(*testing.T, *redistest.Server)) {
	t.Parallel()
	for by := range scriptedBy {
		t.Run(by, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			if by == "evalsha" {
				server.Do("ACL SETUSER default -fcall")
			}
			scenario(t, server)
		})
	}
}

func inMemory(c *clock) *subject {
	store := memstore.New(memstore.WithClock(c.now))
	another := func() *ratelimit.Limiter { return ratelimit.New(store) }
	return &subject{limiter: another(), store: store, another: another, pass: c.pass, near: func(d time.Duration) {
		c.pass(max(d-time.Microsecond, time.Microsecond))
	}}
}

// onServer returns a subject on Redis that runs scripts.
func onServer(t testing.TB, server *redistest.Server, options ...redisstore.Option) *subject {
	s := onStores(func() ratelimit.Store { return scripted(connect(t, server.Addr), options...) })
	s.server = server
	return s
}

// onPlain returns a subject on Redis that runs no scripts.
func onPlain(t testing.TB, server *redistest.Server) *subject {
	s := onStores(func() ratelimit.Store { return plain.New(connect(t, server.Addr), plain.WithTimeout(patience)) })
	s.server, s.window = server, ratelimit.FixedWindow
	s.late = true
	return s
}

// onStore returns a subject whose programs share a store that they do not move the clock of.
func onStore(store ratelimit.Store) *subject {
	return onStores(func() ratelimit.Store { return store })
}

// onStores returns a subject on a server. Each program has a store of its own.
func onStores(connect func() ratelimit.Store) *subject {
	store := connect()
	another := func() *ratelimit.Limiter { return ratelimit.New(connect()) }
	return &subject{limiter: ratelimit.New(store), store: store, another: another, pass: time.Sleep, near: func(d time.Duration) {
		time.Sleep(d - 200*time.Microsecond)
	}}
}

// patience is how long clients and stores wait for servers, which may be slow on a busy machine.
const patience = time.Minute

// scripted returns a store on Redis with patience, unless an option says otherwise.
func scripted(client redis.UniversalClient, options ...redisstore.Option) ratelimit.Store {
	return redisstore.New(client, append([]redisstore.Option{redisstore.WithTimeout(patience)}, options...)...)
}

// connect returns a client that notices at once that a server is gone.
func connect(t testing.TB, addr string) *redis.Client { return connectBy(t, addr, 0) }

// connectBy returns a client with at most so many connections. A proxy that loses the next reply needs a client with one: other clients may open
// a connection in the background meanwhile, and then the proxy loses the reply to that.
func connectBy(t testing.TB, addr string, connections int) *redis.Client {
	client := redis.NewClient(&redis.Options{Addr: addr, ReadTimeout: patience, DialerRetries: 1, PoolSize: connections})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// load loads the script into a server. A store does that in the background. Tests in a synctest bubble, and tests that count commands, cannot wait
// for that.
func load(t testing.TB, client *redis.Client) {
	t.Helper()
	if err := client.FunctionLoad(context.Background(), lua.Library).Err(); err != nil {
		t.Fatal(err)
	}
	if err := client.ScriptLoad(context.Background(), lua.Script).Err(); err != nil {
		t.Fatal(err)
	}
}

func connectCluster(t testing.TB, servers redistest.Cluster) *redis.ClusterClient {
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: servers.Addrs(), ReadTimeout: patience})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// A clock is moved by the test.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

// newClock starts ten hours before New York loses an hour.
func newClock() *clock {
	return &clock{t: time.Date(2026, time.March, 7, 21, 0, 0, 123456000, time.UTC)}
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

// knows reports whether the store can decide a rule. TestRulesItCannotDoAreRefused of package plain shows which ones plain cannot.
func (s *subject) knows(rule ratelimit.Rule) bool { return s.limiter.Check(rule) == nil }

// known returns the rules that the store can decide.
func (s *subject) known(rules ...ratelimit.Rule) []ratelimit.Rule {
	return slices.DeleteFunc(slices.Clone(rules), func(r ratelimit.Rule) bool { return !s.knows(r) })
}

// with returns the subject with another limiter on its store, or on the same server.
func (s *subject) with(l *ratelimit.Limiter) *subject {
	other := *s
	other.limiter = l
	return &other
}

// requireEnd fails the test unless a refusal by a full window tells its end. The window's first call was decided at the time first.
func (s *subject) requireEnd(t *testing.T, refusal ratelimit.Decision, first time.Time, per time.Duration) {
	t.Helper()
	latest := first
	if s.late {
		latest = time.Now().Add(time.Millisecond) // it begins at a whole millisecond
	}
	if end := refusal.At.Add(refusal.RetryAfter); end.Before(first.Add(per)) || end.After(latest.Add(per)) {
		t.Errorf("%v: the permits come back %v after %v", refusal.Violations, end.Sub(first.Add(per)), first.Add(per))
	}
}

// allow fails the test on an error.
func (s *subject) allow(t *testing.T, requests ...ratelimit.Request) ratelimit.Decision {
	t.Helper()
	d, err := s.limiter.Allow(context.Background(), requests...)
	if err != nil {
		t.Fatalf("Allow: %v", err)
	}
	return d
}

func (s *subject) peek(t *testing.T, requests ...ratelimit.Request) ratelimit.Decision {
	t.Helper()
	d, err := s.limiter.Peek(context.Background(), requests...)
	if err != nil {
		t.Fatalf("Peek: %v", err)
	}
	return d
}

// admit fails the test unless the call is allowed.
func (s *subject) admit(t *testing.T, requests ...ratelimit.Request) ratelimit.Decision {
	t.Helper()
	d := s.allow(t, requests...)
	if !d.Allowed {
		t.Fatalf("refused: %+v", d)
	}
	return d
}

// refuse fails the test unless the call is refused.
func (s *subject) refuse(t *testing.T, requests ...ratelimit.Request) ratelimit.Decision {
	t.Helper()
	d := s.allow(t, requests...)
	if d.Allowed {
		t.Fatalf("allowed: %+v", requests)
	}
	return d
}

// left returns how many permits a request's rule would still admit now.
func (s *subject) left(t *testing.T, q ratelimit.Request) int64 {
	t.Helper()
	q.Cost = q.Rule.Limit
	d := s.peek(t, q)
	if d.Allowed {
		return q.Cost
	}
	return d.Violations[0].Remaining
}
