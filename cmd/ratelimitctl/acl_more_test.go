package main

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/redisinfo"
	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
)

// limiterOf returns a limiter of a user, with that user's name as its prefix, and its log.
func limiterOf(client *redis.Client, options ...redisstore.Option) (*ratelimit.Limiter, *redistest.Log) {
	logged := new(redistest.Log)
	options = append(options, redisstore.WithTimeout(20*time.Second))
	return ratelimit.New(redisstore.New(client, options...), ratelimit.WithPrefix(client.Options().Username),
		ratelimit.WithLogger(slog.New(slog.NewTextHandler(logged, nil)))), logged
}

// aclFor is aclOf for a prefix on which nothing is in use.
func aclFor(t *testing.T, server *redistest.Server, prefix string) (permissions, string) {
	return aclOf(t, server.Addr, "-prefix", prefix, "acl", "-all")
}

// decideUntil makes calls until is returns true.
func decideUntil(t *testing.T, l *ratelimit.Limiter, is func() bool) {
	t.Helper()
	redistest.Eventually(t, "the calls have done it", func() bool {
		if _, err := l.Allow(t.Context(), ratelimit.Request{Rule: ratelimit.Rule{Name: "r", Limit: 1_000_000, Per: time.Hour}}); err != nil {
			t.Fatal(err)
		}
		return is()
	})
}

// Ping checks the permissions for the rules that any limiter uses, and for the rules of Check.
func TestPingGoesByRules(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	fixed := ratelimit.Rule{Name: "fixed", Limit: 5, Per: time.Hour, Algorithm: ratelimit.FixedWindow}
	sliding := ratelimit.Rule{Name: "sliding", Limit: 5, Per: time.Hour}
	register(t, server, "one", fixed)
	_, setUser := aclOf(t, server.Addr, "-prefix", "one", "acl")
	client := permit(t, server, setUser, "one", "", "")
	l, _ := limiterOf(client)
	if err := cmp.Or(l.Check(fixed), l.Ping(t.Context())); err != nil {
		t.Error(err)
	}
	expecting, _ := limiterOf(client)
	if err := expecting.Check(sliding); err != nil {
		t.Error(err)
	}
	const want = "may not run LINDEX, LLEN, LPOP, LRANGE, LREM, LSET, "
	if err := expecting.Ping(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("after Check: %v", err)
	}
	register(t, server, "one", sliding)
	if err := l.Ping(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("after another limiter used the rule: %v", err)
	}
}

// With the permissions that acl prints for faster decisions, the server runs functions. Without any one of them, calls are decided without
// functions, which is logged.
func TestACLForSpeed(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	printed, _ := aclFor(t, server, "x")
	for i, command := range append([]string{""}, printed.Faster...) {
		name := "speed" + string(rune('a'+i))
		_, setUser := aclFor(t, server, name)
		l, logged := limiterOf(permit(t, server, setUser, name, permitted(printed.Faster), command))
		server.Do("FUNCTION FLUSH")
		server.Do("CONFIG RESETSTAT")
		decideUntil(t, l, func() bool {
			return command == "" && ran(server, "fcall") || command != "" && strings.Contains(logged.String(), "functions are not available")
		})
	}
}

// ran reports whether the server has run a command without an error.
func ran(server *redistest.Server, command string) bool {
	var calls, failed, rejected int
	var usec, each float64
	text := redisinfo.Fields(server.Do("INFO commandstats"))["cmdstat_"+command]
	n, _ := fmt.Sscanf(text, "calls=%d,usec=%f,usec_per_call=%f,rejected_calls=%d,failed_calls=%d", &calls, &usec, &each, &rejected, &failed)
	return n == 5 && calls > failed
}

// A limiter logs the warning about eviction only with the permission that acl prints for it.
func TestACLForWarnings(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru")
	for name, permits := range map[string]bool{"warned": true, "unwarned": false} {
		printed, setUser := aclFor(t, server, name)
		more := ""
		if permits {
			more = permitted(printed.Warning)
		}
		l, logged := limiterOf(permit(t, server, setUser, name, more, ""))
		if err := l.Ping(t.Context()); err != nil || strings.Contains(logged.String(), "removes counts") != permits {
			t.Errorf("%s: error %v, log %s", name, err, logged)
		}
	}
}

// A program with what acl prints is seen by tools, and follows settings, without being denied anything. It cannot change settings.
func TestACLToBeSeen(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--acllog-max-len", "1000")
	admin := newFleet(t, server.Addr).client
	operator := ratelimit.New(redisstore.New(admin, redisstore.WithTimeout(time.Minute)), ratelimit.WithPrefix("seen"))
	_, setUser := aclFor(t, server, "seen")
	l, _ := limiterOf(permit(t, server, setUser, "seen", "", ""))
	decideUntil(t, l, func() bool {
		rules, err := operator.Rules(t.Context())
		return err == nil && len(rules) == 1 && rules[0].Limits[1_000_000] == 1
	})
	if err := operator.Overrides().Set(t.Context(), "r", ratelimit.Override{Limit: new(int64(7))}); err != nil {
		t.Fatal(err)
	}
	decideUntil(t, l, func() bool {
		rule, err := l.RuleFor(ratelimit.Request{Rule: ratelimit.Rule{Name: "r", Limit: 1_000_000, Per: time.Hour}})
		return err == nil && rule.Limit == 7
	})
	entries, err := admin.ACLLog(t.Context(), 1000).Result()
	if err != nil || slices.ContainsFunc(entries, func(e *redis.ACLLogEntry) bool {
		return e.Username == "seen" && e.Object != "fcall" && e.Object != "function|load" && e.Object != "info"
	}) {
		t.Errorf("denied are %+v, %v", entries, err)
	}
	if err := l.Overrides().Set(t.Context(), "r", ratelimit.Override{Limit: new(int64(9))}); err == nil {
		t.Error("a program changes settings without the permission")
	}
	_, setUser = aclOf(t, server.Addr, "-prefix", "seen", "acl", "-operator")
	o, _ := limiterOf(permit(t, server, setUser, "seen", "", ""))
	actor := ratelimit.WithActor(t.Context(), "kim", "")
	if err := errors.Join(o.Overrides().Set(actor, "r", ratelimit.Override{Limit: new(int64(9))}), o.Overrides().Clear(actor, "r", "")); err != nil {
		t.Error(err)
	}
}

// denied reports whether the server has denied a user a command.
func denied(t *testing.T, admin *redis.Client, user, command string) bool {
	t.Helper()
	entries, err := admin.ACLLog(t.Context(), 1000).Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Username == user && strings.EqualFold(e.Object, command) {
			return true
		}
	}
	return false
}

// After a process has published statistics, or with -all, acl prints the permissions for that. With what acl -all prints nothing is denied, and
// each of them is used.
func TestACLForStatistics(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--acllog-max-len", "1000")
	admin := newFleet(t, server.Addr).client
	if p, _ := aclOf(t, server.Addr, "-prefix", "idle", "acl"); p.Statistics != nil {
		t.Errorf("nothing is in use, but it prints %q", p.Statistics)
	}
	published := func(name string) bool {
		f := redisstore.New(admin).Fleet(name)
		processes, _ := f.Processes(t.Context()) // without any there are no reports
		reports, err := f.Reports(t.Context(), processes)
		return err == nil && len(reports) > 0
	}
	all, _ := limiterOf(permit(t, server, "ACL SETUSER ratelimit on >x ~counts* +@all", "counts", "", ""), redisstore.WithStats())
	decideUntil(t, all, func() bool { return published("counts") })
	printed, setUser := aclFor(t, server, "unused")
	if len(printed.Statistics) == 0 {
		t.Fatal("it prints nothing for statistics")
	}
	if text, _ := ctl(t, server.Addr, "-prefix", "counts", "acl"); !strings.Contains(text, "WithStats(), which is in use, also:") {
		t.Errorf("got %s", text)
	}
	var group sync.WaitGroup
	for _, command := range append([]string{""}, printed.Statistics...) {
		name := "counts" + strings.ToLower(command)
		client := permit(t, server, setUser, name+"x", " ~"+name+":* ~"+name+".seen:* %R~"+name+".fleet:*", command)
		l := ratelimit.New(redisstore.New(client, redisstore.WithStats(), redisstore.WithTimeout(20*time.Second)), ratelimit.WithPrefix(name))
		group.Go(func() {
			redistest.Eventually(t, "statistics, or a refusal of "+command, func() bool {
				_, _ = l.Allow(t.Context(), ratelimit.Request{Rule: ratelimit.Rule{Name: "r", Limit: 5, Per: time.Hour, Distinct: "{m}"}, Member: "m"})
				return command == "" && published(name) || command != "" && denied(t, admin, name+"x", command)
			})
		})
	}
	group.Wait()
	for _, command := range printed.Statistics {
		if denied(t, admin, "countsx", command) {
			t.Errorf("with what acl prints, %s is denied", command)
		}
	}
}
