package redisstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/backend"
	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/internal/probe"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/lua"
)

// as returns a store that signs in as a user. Its timeout is long enough for a busy machine.
func as(t *testing.T, addr, user, password string) *store {
	client := redis.NewClient(&redis.Options{Addr: addr, Username: user, Password: password, MaxRetries: -1})
	t.Cleanup(func() { _ = client.Close() })
	return New(client, WithTimeout(20*time.Second)).(*store)
}

func rulesOfAllKinds() (rules []*engine.Rule) {
	for _, kind := range engine.Kinds() {
		rules = append(rules, &engine.Rule{Kind: kind})
	}
	return rules
}

// requirePing checks that Ping fails with an error of one line that contains want.
func requirePing(t *testing.T, s *store, want string) {
	t.Helper()
	err := s.Ping(context.Background(), "p", rulesOfAllKinds())
	if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v, want %q", err, want)
	}
}

func TestPing(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	if err := as(t, server.Addr, "", "").Ping(t.Context(), "p", rulesOfAllKinds()); err != nil {
		t.Error(err)
	}
	if keys := server.Do("KEYS *"); keys != "" {
		t.Errorf("it left %q", keys)
	}
	requirePing(t, as(t, server.Addr, "ann", "x"), `does not know the user "ann", or the password is wrong`)
	server.Do("REPLICAOF 127.0.0.1 1")
	requirePing(t, as(t, server.Addr, "", ""), "read-only replica: connect to its master")
	server.Do("ACL SETUSER default resetpass >right")
	requirePing(t, as(t, server.Addr, "", "wrong"), "the password is wrong")
	requirePing(t, as(t, server.Addr, "", ""), "the server wants a password")
	server.Stop()
	requirePing(t, as(t, server.Addr, "", ""), "cannot be reached")
}

// The error of a closed client differs from that of a server that is away.
func TestPingOfAClosedClient(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(testing.TB) *store{
		"server": func(t testing.TB) *store { s, _ := open(t); return s }, "cluster": openCluster,
	} {
		s := open(t)
		if err := s.servers.Client.(interface{ Close() error }).Close(); err != nil {
			t.Fatal(err)
		}
		if err := s.Ping(t.Context(), "p", rulesOfAllKinds()); !errors.Is(err, backend.ErrClosed) || !errors.Is(err, redis.ErrClosed) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// Ping succeeds in a program whose clock is decades behind the server's, and leaves no key there.
func TestPingByAWrongClock(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	synctest.Test(t, func(t *testing.T) { // in the year 2000
		client := redis.NewClient(&redis.Options{Addr: server.Addr, DisableIdentity: true})
		defer client.Close()
		if err := New(client, WithTimeout(time.Minute)).(*store).Ping(t.Context(), "p", rulesOfAllKinds()); err != nil {
			t.Error(err)
		}
	})
	if keys := server.Do("KEYS *"); keys != "" {
		t.Errorf("it left %q", keys)
	}
}

// Ping names each command that a user may not run, and says if the user may not use keys of the prefix.
func TestPingNamesWhatIsDenied(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	server.Do("ACL SETUSER all on >x ~p:* +@all")
	if err := as(t, server.Addr, "all", "x").Ping(t.Context(), "p", rulesOfAllKinds()); err != nil {
		t.Error(err)
	}
	for i, command := range append(lua.Commands(rulesOfAllKinds()...), "EVAL", "EVALSHA", "HMGET", "HSCAN", "MGET", "ZRANGEBYSCORE") {
		name := fmt.Sprint("user", i)
		server.Do("ACL SETUSER " + name + " on >x ~p:* +@all -" + strings.ToLower(command))
		requirePing(t, as(t, server.Addr, name, "x"), "the user may not run")
		if err := as(t, server.Addr, name, "x").Ping(t.Context(), "p", rulesOfAllKinds()); !strings.Contains(strings.ToUpper(err.Error()), command) {
			t.Errorf("%s is not named: %v", command, err)
		}
	}
	server.Do("ACL SETUSER elsewhere on >x ~q:* +@all")
	requirePing(t, as(t, server.Addr, "elsewhere", "x"), "permit it")
}

// Ping does not try commands that only other rules need.
func TestPingGoesByRules(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for i, kind := range engine.Kinds() {
		rule := &engine.Rule{Kind: kind, Block: int64(i % 2)}
		commands := append(lua.Commands(rule), "EVAL", "EVALSHA", "HMGET", "HSCAN", "MGET", "ZRANGEBYSCORE")
		server.Do("ACL SETUSER " + kind.String() + " on >x ~p:* -@all +" + strings.ToLower(strings.Join(commands, " +")))
		if err := as(t, server.Addr, kind.String(), "x").Ping(t.Context(), "p", []*engine.Rule{rule}); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
	if keys := server.Do("KEYS *"); keys != "" {
		t.Errorf("it left %q", keys)
	}
	server.Do("ACL SETUSER nothing on >x ~p:* -@all +del +time +eval +evalsha +hmget +hscan +mget +zrangebyscore")
	if err := as(t, server.Addr, "nothing", "x").Ping(t.Context(), "p", nil); err != nil {
		t.Error(err)
	}
	server.Do("CONFIG SET maxmemory 1")
	requirePing(t, as(t, server.Addr, "", ""), "the server's memory is full")
	if err := as(t, server.Addr, "", "").Ping(t.Context(), "p", nil); err == nil || !strings.Contains(err.Error(), "the server's memory is full") {
		t.Errorf("without rules: %v", err)
	}
}

// Servers before Redis 7 do not tell scripts their version, and miniredis has no struct.
func TestPingOfAnotherLua(t *testing.T) {
	t.Parallel()
	client := connect(t, redistest.Start(t).Addr)
	for lua, want := range map[string]string{
		"local redis = { error_reply = redis.error_reply }; ": "older than Redis 7",
		"local struct; ": "lacks struct, as that of the fake miniredis does: in tests use package memstore, or a real server",
	} {
		for _, try := range tries("p:{s}") {
			if try[0] == "EVAL" {
				try[1] = lua + try[1].(string)
				if err := probe.Try(t.Context(), client, [][]any{try}, nil); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %q", err, want)
				}
			}
		}
	}
}

// Hosted servers forbid commands. Ping names one that decisions need, and passes without the others.
func TestPingOfARestrictedServer(t *testing.T) {
	t.Parallel()
	rule := ratelimit.Rule{Name: "x", Limit: 10, Per: time.Minute}
	for command, want := range map[string]string{"SCAN": "", "HSCAN": "", "EVALSHA": "", "EVAL": "lacks EVAL:", "TIME": "lacks TIME:", "LINDEX": "lacks LINDEX"} {
		client := connect(t, redistest.Start(t, "--rename-command", command, "").Addr)
		l := ratelimit.New(New(client, WithTimeout(time.Minute)), ratelimit.WithLogger(slog.New(slog.DiscardHandler)))
		if err := l.Check(rule); err != nil {
			t.Fatal(err)
		}
		err := l.Ping(t.Context())
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("without %s: %v, want %q", command, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "older") {
			t.Errorf("without %s: %v", command, err)
		}
	}
}

// Ping tries exactly the commands that rules of all kinds need.
func TestPingTriesAll(t *testing.T) {
	var tried []string
	for _, try := range tries("") {
		tried = append(tried, try[0].(string))
	}
	slices.Sort(tried)
	needed := commandsOf(rulesOfAllKinds())
	slices.Sort(needed)
	if !slices.Equal(tried, needed) {
		t.Errorf("tried are %q; needed are %q", tried, needed)
	}
}

func TestPingOfACluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3)
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs()})
	t.Cleanup(func() { _ = client.Close() })
	s := New(client, WithTimeout(20*time.Second)).(*store)
	if err := s.Ping(t.Context(), "p", rulesOfAllKinds()); err != nil {
		t.Error(err)
	}
	for _, server := range cluster {
		if keys := server.Do("KEYS *"); keys != "" {
			t.Errorf("it left %q", keys)
		}
	}
	cluster[1].Do("ACL SETUSER default -setrange")
	requirePing(t, s, cluster[1].Addr+": the user may not run SETRANGE")
	cluster[1].Do("ACL SETUSER default +setrange")
	cluster[2].Stop()
	requirePing(t, s, "cannot be reached")
}

// Each shard of a ring is tried, and the one that fails is named. The user of a cluster is named, too.
func TestPingOfARing(t *testing.T) {
	t.Parallel()
	shards := []*redistest.Server{redistest.Start(t), redistest.Start(t)}
	client := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": shards[0].Addr, "b": shards[1].Addr}})
	t.Cleanup(func() { _ = client.Close() })
	s := New(client, WithTimeout(20*time.Second)).(*store)
	if err := s.Ping(t.Context(), "p", rulesOfAllKinds()); err != nil {
		t.Error(err)
	}
	for _, shard := range shards {
		if keys := shard.Do("KEYS *"); keys != "" {
			t.Errorf("it left %q", keys)
		}
		shard.Do("ACL SETUSER default -setrange")
		requirePing(t, s, shard.Addr+": the user may not run SETRANGE")
		shard.Do("ACL SETUSER default +setrange")
	}
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{shards[0].Addr}, Username: "ann", Password: "x"})
	t.Cleanup(func() { _ = cluster.Close() })
	requirePing(t, New(cluster, WithTimeout(20*time.Second)).(*store), `does not know the user "ann", or the password is wrong`)
}

// Ping, or the first call, tells the operator once about a server that removes counts, whoever has loaded the function.
func TestEvictionIsTold(t *testing.T) {
	t.Parallel()
	for name, use := range map[string]func(*store) error{
		"ping": func(s *store) error { return s.Ping(t.Context(), "p", rulesOfAllKinds()) },
		"call": func(s *store) error {
			_, err := s.node(t.Context(), "k")
			return err
		},
	} {
		for policy, want := range map[string]int{"allkeys-lru": 1, "volatile-ttl": 1, "noeviction": 0} {
			server := redistest.Start(t, "--maxmemory", "100mb", "--maxmemory-policy", policy)
			s, notices := as(t, server.Addr, "", ""), make(chan string, 10)
			s.Notify(func(notice string, cause error) { notices <- notice + ": " + cause.Error() })
			for range 2 {
				if err := use(s); err != nil {
					t.Fatal(err)
				}
			}
			if want == 0 && name == "call" {
				continue // there is no way to know when it has ended
			}
			for range want {
				if notice := <-notices; !strings.Contains(notice, policy) || !strings.Contains(notice, "removes counts") {
					t.Errorf("%s, %s: got %q", name, policy, notice)
				}
			}
			if len(notices) > 0 {
				t.Errorf("%s, %s: got also %q", name, policy, <-notices)
			}
		}
	}
}
