package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/backend"
	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/redistest"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/lua"
)

var minute = &engine.Rule{Name: "minute", Tag: "1m", Kind: engine.FixedWindow, Per: 60 * second}

// of returns a call with one claim for each subject, all under one rule.
func of(rule *engine.Rule, limit int64, subjects ...string) engine.Call {
	call := engine.Call{Prefix: "p"}
	for _, subject := range subjects {
		call.Claims = append(call.Claims, engine.Claim{Ask: engine.Ask{Rule: rule, Subject: subject, Cost: 1, Limit: limit, Burst: limit}})
	}
	return call
}

// requireAdmits checks how many of n calls are admitted.
func requireAdmits(t testing.TB, s backend.Store, call func() engine.Call, n, want int) {
	t.Helper()
	admitted := 0
	for range n {
		c := call()
		v, err := s.Decide(context.Background(), &c)
		if err != nil {
			t.Fatal(err)
		}
		if v.Admitted {
			admitted++
		}
	}
	if admitted != want {
		t.Fatalf("%d of %d calls were admitted, want %d", admitted, n, want)
	}
}

// commands counts the calls of a command.
func commands(server *redistest.Server, name string) string {
	for _, line := range strings.Split(server.Do("INFO commandstats"), "\r\n") {
		if rest, ok := strings.CutPrefix(line, "cmdstat_"+name+":calls="); ok {
			count, _, _ := strings.Cut(rest, ",")
			return count
		}
	}
	return "0"
}

// A server that does not know the function still decides the call, and the function is loaded once.
func TestFunctionIsLoadedInTheBackground(t *testing.T) {
	t.Parallel()
	s, server := open(t)
	loaded := func() bool { return strings.Contains(server.Do("FUNCTION LIST"), lua.Function) }
	for range 3 {
		requireAdmits(t, s, func() engine.Call { return of(minute, 1, "a") }, 2, 1)
		redistest.Eventually(t, "the function", loaded)
		server.Do("CONFIG RESETSTAT")
		requireAdmits(t, s, func() engine.Call { return of(minute, 1, "b") }, 2, 1)
		if got := commands(server, "fcall"); got != "2" {
			t.Fatalf("%s functions were called for 2 decisions", got)
		}
		server.Do("FUNCTION FLUSH")
		server.Do("FLUSHDB")
	}
}

func TestScriptIsSentWhereItIsNotKnown(t *testing.T) {
	t.Parallel()
	s, server := open(t, WithoutFunctions())
	for range 3 {
		server.Do("CONFIG RESETSTAT")
		requireAdmits(t, s, func() engine.Call { return of(minute, 2, "a") }, 5, 2)
		if got := commands(server, "eval"); got != "1" {
			t.Fatalf("the text was sent %s times", got)
		}
		server.Do("SCRIPT FLUSH")
		server.Do("FLUSHDB")
	}
	if got := commands(server, "fcall"); got != "0" {
		t.Errorf("%s functions were called", got)
	}
}

// For a user who may not call or load functions, calls are decided by EVALSHA, and the operator gets one notice.
func TestUserWithoutFunctions(t *testing.T) {
	t.Parallel()
	for _, forbidden := range []string{"-fcall", "-function"} {
		t.Run(forbidden, func(t *testing.T) {
			server := redistest.Start(t)
			server.Do("ACL SETUSER app on >secret ~* +@all " + forbidden)
			client := redis.NewClient(&redis.Options{Addr: server.Addr, Username: "app", Password: "secret"})
			defer client.Close()
			s := New(client, WithTimeout(20*time.Second)).(*store)
			notices := make(chan string, 10)
			s.Notify(func(notice string, cause error) { notices <- notice + ": " + cause.Error() })
			requireAdmits(t, s, func() engine.Call { return of(minute, 1, "a") }, 2, 1)
			if notice := <-notices; !strings.Contains(notice, "EVALSHA") || !strings.Contains(notice, "NOPERM") {
				t.Errorf("the notice is %q", notice)
			}
			server.Do("CONFIG RESETSTAT")
			requireAdmits(t, s, func() engine.Call { return of(minute, 5, "b") }, 5, 5)
			if got := commands(server, "evalsha"); got != "5" {
				t.Errorf("%s scripts were called for 5 decisions", got)
			}
			if len(notices) > 0 {
				t.Errorf("another notice: %q", <-notices)
			}
		})
	}
}

// A call whose reply is lost is charged at most once, and fails.
func TestLostReply(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := redistest.StartProxy(t, server.Addr)
	s := New(connect(t, proxy.Addr), WithTimeout(20*time.Second)).(*store)
	requireAdmits(t, s, func() engine.Call { return of(minute, 9, "warm") }, 1, 1)
	proxy.WaitInfo()
	n, err := s.node(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	redistest.Eventually(t, "the function, and all that is asked meanwhile", func() bool {
		return strings.Contains(server.Do("FUNCTION LIST"), lua.Function) && !n.loading.Load()
	})
	asked, lost := int64(0), 0
	for ; lost < 10; asked++ {
		requireAdmits(t, s, func() engine.Call { return of(minute, 99, "warm") }, 1, 1) // makes a connection
		proxy.Replies.Store(0)
		call := of(minute, 999, "a")
		_, err := s.Decide(context.Background(), &call)
		proxy.Replies.Store(-1)
		switch {
		case err == nil && asked == 99:
			t.Fatal("the proxy lets replies pass")
		case err == nil: // another connection, which the client had begun to make, lost its reply
		case untaken(err):
			t.Fatalf("%v counts as nothing done", err)
		default:
			lost++
		}
	}
	if left := rooms(t, s, of(minute, 1000, "a")); left[0] != 1000-asked {
		t.Errorf("%d calls left %d permits of 1000", asked, left[0])
	}
}

// The timeout bounds a decision on a silent server, whatever the client's type and options are.
func TestTimeout(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr, ReadTimeout: time.Hour, PoolTimeout: time.Hour, PoolSize: 1})
	defer client.Close()
	server.Pause()
	defer server.Resume()
	for name, c := range map[string]redis.UniversalClient{"a client": client, "another type": struct{ redis.UniversalClient }{client}} {
		s := New(c, WithTimeout(50*time.Millisecond))
		for range 5 {
			call := of(minute, 9, "a")
			if v, err := s.Decide(context.Background(), &call); err == nil {
				t.Fatalf("%s: got %+v", name, v)
			}
		}
	}
}

// A server without functions decides by EVALSHA, and the operator is told once.
func TestServerWithoutFunctions(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--rename-command", "FCALL", "unused")
	s, told := New(connect(t, server.Addr), asking...).(*store), make(chan string, 10)
	s.Notify(func(notice string, _ error) { told <- notice })
	for range 3 {
		requireAdmits(t, s, func() engine.Call { return of(minute, 2, "a") }, 3, 2)
		server.Do("FLUSHALL")
	}
	if len(told) != 1 || !strings.Contains(<-told, "functions are not available") || commands(server, "evalsha") == "0" {
		t.Errorf("%d notices are left; %s decisions by EVALSHA", len(told), commands(server, "evalsha"))
	}
}

// A server that is full or read-only when the function is to be loaded has functions all the same, and calls use them later. Nobody is told that it
// has none: decisions fail with the true reason.
func TestFunctionOfAFullServer(t *testing.T) {
	t.Parallel()
	tries := func(server *redistest.Server) string {
		_, after, _ := strings.Cut(server.Do("INFO commandstats"), "function|load:")
		text, _, _ := strings.Cut(after, "\r\n")
		return text
	}
	for name, c := range map[string]struct{ begin, end, reason string }{
		"full":      {"CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0", "memory is full"},
		"read-only": {"REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE", "read-only"},
	} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t)
			s := New(connect(t, server.Addr), asking...).(*store)
			s.Notify(func(notice string, cause error) { t.Errorf("%s: %v", notice, cause) })
			server.Do(c.begin)
			for range 3 {
				before := tries(server)
				redistest.Eventually(t, "a try to load the function", func() bool { // the store may still await the reply to the last one
					call := of(minute, 5, "a")
					if v, err := s.Decide(t.Context(), &call); err == nil || !strings.Contains(err.Error(), c.reason) {
						t.Errorf("got %+v, %v", v, err)
					}
					return tries(server) != before
				})
			}
			server.Do(c.end)
			redistest.Eventually(t, "a function that is called", func() bool {
				before := commands(server, "eval")
				requireAdmits(t, s, func() engine.Call { return of(minute, 1e6, "a") }, 1, 1)
				return commands(server, "eval") == before
			})
		})
	}
}

// A user who may not use some keys still calls the function for others, and there is no notice about functions.
func TestUserWithoutKeys(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	server.Do("ACL SETUSER ann on >x ~p:*{a}* +@all")
	s := as(t, server.Addr, "ann", "x")
	s.Notify(func(notice string, cause error) { t.Errorf("%s: %v", notice, cause) })
	for range 2 {
		call := of(minute, 5, "b")
		if _, err := s.Decide(t.Context(), &call); err == nil || !untaken(err) {
			t.Errorf("a key that the user may not use: %v", err)
		}
		requireAdmits(t, s, func() engine.Call { return of(minute, 1000, "a") }, 1, 1)
	}
	redistest.Eventually(t, "a function that is called", func() bool {
		requireAdmits(t, s, func() engine.Call { return of(minute, 1e6, "a") }, 1, 1)
		return !strings.Contains(server.Do("INFO commandstats"), "cmdstat_evalsha") && commands(server, "fcall") != "0"
	})
}

// While the slot of a call moves to another server, the call is decided where its keys are: it waits until all of them are at one place.
func TestSlotThatMoves(t *testing.T) {
	t.Parallel()
	masters := redistest.StartCluster(t, 3)
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: masters.Addrs(), ReadTimeout: time.Minute})
	defer client.Close()
	for name, c := range map[string]redis.UniversalClient{"shown": client, "hidden": hidden{client}} {
		s := New(c, asking...).(*store)
		slot, err := strconv.Atoi(masters[0].Do("CLUSTER KEYSLOT " + name))
		if err != nil {
			t.Fatal(err)
		}
		owner := slot * len(masters) / 16384
		from, to := masters[owner], masters[(owner+1)%len(masters)]
		set := func(m *redistest.Server, state string) { m.Do(fmt.Sprint("CLUSTER SETSLOT ", slot, " ", state)) }
		set(to, "IMPORTING "+from.Do("CLUSTER MYID"))
		set(from, "MIGRATING "+to.Do("CLUSTER MYID"))
		decide := func(call engine.Call) <-chan error {
			result := make(chan error, 1)
			go func() {
				_, err := s.Decide(context.Background(), &call)
				result <- err
			}()
			return result
		}
		if err := <-decide(of(minute, 5, name)); err != nil { // no key is there, so the other server decides
			t.Errorf("%s: a new subject: %v", name, err)
		}
		if keys := to.Do("KEYS *" + name + "*"); keys == "" {
			t.Errorf("%s: the server to which the slot moves has no key", name)
		}
		from.Do("CONFIG RESETSTAT")
		to.Do("CONFIG RESETSTAT")
		both := of(minute, 5, name)
		both.Claims = append(both.Claims, of(combinable[0], 5, name).Claims...)
		result := decide(both) // one of its keys is there
		redistest.Eventually(t, "a server that has one key of two", func() bool {
			return strings.Contains(from.Do("INFO errorstats")+to.Do("INFO errorstats"), "TRYAGAIN:count=")
		})
		set(to, "NODE "+to.Do("CLUSTER MYID"))
		set(from, "NODE "+to.Do("CLUSTER MYID"))
		if err := <-result; err != nil {
			t.Errorf("%s: a call under two rules: %v", name, err)
		}
		if left := rooms(t, s, both); left[0] != 3 || left[1] != 4 {
			t.Errorf("%s: %v permits of 5 are left", name, left)
		}
	}
}
