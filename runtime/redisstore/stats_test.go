package redisstore

import (
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// reportsOf returns the reports of all processes.
func reportsOf(t *testing.T, f *fleet.Fleet) ([]fleet.Report, error) {
	processes, err := f.Processes(t.Context())
	if err != nil {
		return nil, err
	}
	return f.Reports(t.Context(), processes)
}

// published returns the only report of a prefix, when there is one that is wanted.
func published(t *testing.T, client redis.UniversalClient, wanted func(fleet.Report) bool) fleet.Report {
	t.Helper()
	f := New(client).Fleet("p")
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		reports, err := reportsOf(t, f)
		if err != nil {
			t.Fatal(err)
		}
		if len(reports) == 1 && wanted(reports[0]) {
			return reports[0]
		}
		if time.Now().After(deadline) {
			t.Fatalf("published are %+v", reports)
		}
	}
}

// sums adds up the history.
func sums(t *testing.T, client redis.UniversalClient) map[string]fleet.Counts {
	t.Helper()
	history, err := New(client).Fleet("p").History(t.Context(), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]fleet.Counts{}
	for _, slot := range history {
		for _, r := range slot.Rules {
			c := all[r.Name]
			c.Add(r.Counts)
			all[r.Name] = c
		}
	}
	return all
}

// Statistics include the calls that a block or a limit of 0 refuses, although they reach no server, but no peeks, no calls that fail, and no
// rules of instance scope. Subjects have the form of keys.
func TestStats(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr, DisableIdentity: true})
	defer client.Close()
	l := ratelimit.New(New(client, WithStats(), WithTimeout(time.Minute)), ratelimit.WithPrefix("p"), ratelimit.WithSubjectHash(make([]byte, 32)))
	defer runtime.KeepAlive(l) // it reports as long as it is in use
	login := ratelimit.Request{Rule: ratelimit.Rule{Name: "login", Limit: 3, Per: time.Hour}, Key: "eve"}
	ann := ratelimit.Request{Rule: login.Rule, Key: "ann"}
	closed := ratelimit.Request{Rule: ratelimit.Rule{Name: "closed", Limit: 0, Per: time.Hour}, Key: "eve"}
	own, open := closed, ratelimit.Request{Rule: ratelimit.Rule{Name: "open", Limit: 3, Per: time.Hour}, Key: "eve"}
	own.Rule.Name, own.Rule.Scope = "own", ratelimit.ScopeInstance
	shadow := ratelimit.Request{Rule: ratelimit.Rule{Name: "shadow", Limit: 1, Per: time.Hour, Mode: ratelimit.ModeShadow}}
	guess := ratelimit.Request{Rule: ratelimit.Rule{Name: "guess", Limit: 1, Per: time.Hour, Block: time.Hour}, Key: "eve"}
	if err := l.Block(t.Context(), time.Hour, login); err != nil {
		t.Fatal(err)
	}
	for _, requests := range [][]ratelimit.Request{{login}, {closed, login}, {closed}, {own, open}, {shadow}, {shadow}, {shadow}, {ann}, {ann}, {ann}, {ann}, {guess}, {guess}, {guess}} {
		if _, err := l.Allow(t.Context(), requests...); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Peek(t.Context(), requests...); err != nil {
			t.Fatal(err)
		}
		tooMuch := ann
		tooMuch.Cost = 5
		if _, err := l.Allow(t.Context(), tooMuch); err == nil {
			t.Fatal("a call passes that costs too much")
		}
	}
	want := map[string]fleet.Counts{
		"login": {Calls: 6, Refused: 3, Blocked: 2}, "closed": {Calls: 2, Refused: 2}, "open": {Calls: 1}, "shadow": {Calls: 3, Shadow: 2},
		"guess": {Calls: 3, Refused: 2, Blocked: 1},
	}
	r := published(t, client, func(r fleet.Report) bool { return len(r.Rules) == len(want) })
	for _, rule := range r.Rules {
		if rule.Counts != want[rule.Name] || rule.Tag != "1h" || len(rule.Subjects) == 0 {
			t.Errorf("got %+v, want %+v", rule, want[rule.Name])
		}
		if strings.Contains(fmt.Sprint(rule), "eve") || strings.Contains(fmt.Sprint(rule), "ann") {
			t.Errorf("a subject is not hashed: %+v", rule)
		}
	}
	for name, c := range want { // the history does not tell blocks apart
		c.Blocked = 0
		want[name] = c
	}
	redistest.Eventually(t, "the history has the same counts", func() bool { return fmt.Sprint(sums(t, client)) == fmt.Sprint(want) })
	for _, key := range client.Keys(t.Context(), "p.seen:*").Val() {
		if client.TTL(t.Context(), key).Val() < 0 {
			t.Errorf("%s does not expire", key)
		}
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) { // the process is idle now
		if reports, err := reportsOf(t, New(client).Fleet("p")); err != nil || len(reports) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("an idle process goes on publishing")
		}
	}
}

// The size of a report is bounded, however many rules and subjects callers make.
func TestStatsAreBounded(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr, DisableIdentity: true})
	defer client.Close()
	l := ratelimit.New(New(client, WithStats(), WithTimeout(time.Minute)), ratelimit.WithPrefix("p"))
	defer runtime.KeepAlive(l) // it reports as long as it is in use
	call := func(name, key string) {
		rule := ratelimit.Rule{Name: name, Limit: 1, Per: time.Hour}
		if _, err := l.Allow(t.Context(), ratelimit.Request{Rule: rule, Key: key}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 * fleet.MaxReportRules {
		call("r0", fmt.Sprint(i))
		call(fmt.Sprint("r", i%(2*fleet.MaxReportRules)), strings.Repeat("x", 1000))
	}
	r := published(t, client, func(r fleet.Report) bool { return len(r.Rules) == fleet.MaxReportRules })
	for _, rule := range r.Rules {
		if len(rule.Subjects) > fleet.MaxSubjects || rule.Name == "r0" && len(rule.Subjects) != fleet.MaxSubjects {
			t.Errorf("told are %d subjects of %s", len(rule.Subjects), rule.Name)
		}
	}
}

// Statistics also count the calls that the store failed to decide, whatever the policy made of them.
func TestStatsOfFailures(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr, DisableIdentity: true})
	defer client.Close()
	l := ratelimit.New(New(client, WithStats(), WithTimeout(20*time.Second)), ratelimit.WithPrefix("p"), ratelimit.WithLogger(slog.New(slog.DiscardHandler)))
	defer runtime.KeepAlive(l) // it reports as long as it is in use
	rule := ratelimit.Rule{Name: "login", Limit: 3, Per: time.Hour, OnError: ratelimit.FailOpen}
	if _, err := l.Allow(t.Context(), ratelimit.Request{Rule: rule}); err != nil {
		t.Fatal(err)
	}
	server.Stop()
	for _, policy := range []ratelimit.FailurePolicy{ratelimit.FailOpen, ratelimit.FailClosed, ratelimit.FailLocal} {
		rule.OnError = policy
		if _, err := l.Allow(t.Context(), ratelimit.Request{Rule: rule}); (err != nil) != (policy == ratelimit.FailClosed) {
			t.Fatalf("%v: %v", policy, err)
		}
	}
	server.Restart()
	var sum fleet.Counts
	for deadline := time.Now().Add(20 * time.Second); sum.Failed < 3 && time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		sum = sums(t, client)["login"]
	}
	if sum.Failed != 3 || sum.Refused != 0 {
		t.Errorf("got %+v", sum)
	}
}
