package redisstore

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	"github.com/ratelimit-go/ratelimit/internal/stats"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
)

// published returns the only report of a prefix, or nothing.
func published(t *testing.T, server *redistest.Server, prefix string) (r stats.Report, there bool) {
	t.Helper()
	process := server.Do("ZRANGE " + stats.List(prefix) + " 0 -1")
	text := server.Do("GET " + stats.Key(prefix, process))
	if text == "" {
		return r, false
	}
	r, err := stats.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return r, true
}

// Statistics include calls that a block or a limit of 0 refuses, although they reach no server.
func TestStatsOfBlocks(t *testing.T) {
	server := redistest.Start(t)
	synctest.Test(t, func(t *testing.T) {
		client := redis.NewClient(&redis.Options{Addr: server.Addr, DisableIdentity: true})
		defer client.Close()
		defer time.Sleep(time.Minute) // on the virtual clock, as above
		l := ratelimit.New(New(client, WithStats(), WithTimeout(time.Minute)), ratelimit.WithPrefix("p"))
		login := ratelimit.Request{Rule: ratelimit.Rule{Name: "login", Limit: 3, Per: time.Hour}, Key: "eve"}
		closed := ratelimit.Request{Rule: ratelimit.Rule{Name: "closed", Limit: 0, Per: time.Hour}, Key: "eve"}
		if err := l.Block(t.Context(), time.Hour, login); err != nil {
			t.Fatal(err)
		}
		own, open := closed, ratelimit.Request{Rule: ratelimit.Rule{Name: "open", Limit: 3, Per: time.Hour}, Key: "eve"}
		own.Rule.Name, own.Rule.Scope = "own", ratelimit.ScopeInstance // the store does not decide this rule, but its refusal refuses the whole call
		for _, requests := range [][]ratelimit.Request{{login}, {closed, login}, {closed}, {own, open}} {
			if _, err := l.Allow(t.Context(), requests...); err != nil {
				t.Fatal(err)
			}
			if _, err := l.Peek(t.Context(), requests...); err != nil {
				t.Fatal(err)
			}
		}
		pass(stats.Every)
		r, _ := published(t, server, "p")
		for _, rule := range r.Rules {
			want := stats.Counts{Calls: 2, Refused: 2}
			if rule.Name == "open" {
				want = stats.Counts{Calls: 1}
			}
			if rule.Counts != want || len(rule.Subjects) != 1 || rule.Subjects[0].Name != "eve" {
				t.Errorf("got %+v, want %+v", rule, want)
			}
		}
		if len(r.Rules) != 3 {
			t.Errorf("got %+v", r)
		}
	})
}

// A call that asks again at a later time counts when it has its answer. One that fails has none.
func TestStatsOfCallsWithoutAnswer(t *testing.T) {
	client := redis.NewClient(&redis.Options{})
	s := New(client, WithStats()).(*store)
	_ = client.Close()
	call := of(minute, 1, "a")
	if _, err := s.Decide(t.Context(), clone(&call)); err == nil {
		t.Error("a closed client decides")
	}
	call.Claims[0].Wait = second
	s.stats.note(&call, &engine.Verdict{Now: 1, At: 2})
	if s.stats.rules != nil {
		t.Errorf("got %+v", s.stats.rules)
	}
}

// A process publishes statistics while it decides. They include calls that a remembered refusal answers, but no peeks. An idle process publishes
// nothing.
func TestStats(t *testing.T) {
	server := redistest.Start(t)
	synctest.Test(t, func(t *testing.T) {
		client := redis.NewClient(&redis.Options{Addr: server.Addr, DisableIdentity: true})
		defer client.Close()
		defer time.Sleep(time.Minute) // on the virtual clock: until the store's background work has ended
		l := ratelimit.New(New(client, WithStats(), WithTimeout(time.Minute)), ratelimit.WithPrefix("p"), ratelimit.WithSubjectHash(make([]byte, 32)))
		login := ratelimit.Rule{Name: "login", Limit: 3, Per: time.Hour}
		shadow := ratelimit.Rule{Name: "shadow", Limit: 1, Per: time.Hour, Mode: ratelimit.ModeShadow}
		for i := range 10 {
			requests := []ratelimit.Request{{Rule: login, Key: "ann"}}
			if i < 3 {
				requests = append(requests, ratelimit.Request{Rule: shadow})
			}
			if _, err := l.Allow(t.Context(), requests...); err != nil {
				t.Fatal(err)
			}
			if _, err := l.Peek(t.Context(), requests...); err != nil {
				t.Fatal(err)
			}
		}
		if _, there := published(t, server, "p"); there {
			t.Error("it was published at once")
		}
		pass(stats.Every)
		r, _ := published(t, server, "p")
		if got := fmt.Sprintf("%.0f", r.Seconds); got != "5" || len(r.Rules) != 2 {
			t.Fatalf("got %+v", r)
		}
		for _, rule := range r.Rules {
			want := stats.Counts{Calls: 10, Refused: 7}
			if rule.Name == "shadow" {
				want = stats.Counts{Calls: 3, Shadow: 2}
			}
			if rule.Tag != "1h" || rule.Counts != want || len(rule.Subjects) != 1 || rule.Subjects[0].Counts != want {
				t.Errorf("got %+v, want %+v", rule, want)
			}
			if strings.Contains(fmt.Sprint(rule), "ann") {
				t.Errorf("a subject is not hashed: %+v", rule)
			}
		}
		pass(stats.Every)
		if r, there := published(t, server, "p"); there {
			t.Errorf("an idle process tells %+v", r)
		}
		if _, err := l.Allow(t.Context(), ratelimit.Request{Rule: login, Key: "bob"}); err != nil {
			t.Fatal(err)
		}
		pass(stats.Every)
		if r, _ := published(t, server, "p"); len(r.Rules) != 1 || r.Rules[0].Calls != 1 {
			t.Errorf("got %+v", r)
		}
		pass(stats.Every)
	})
}

// pass lets time pass on the clock of a synctest bubble.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// The size of a report is bounded, however many rules and subjects callers make.
func TestStatsAreBounded(t *testing.T) {
	server := redistest.Start(t)
	s := as(t, server.Addr, "", "")
	WithStats()(s)
	s.stats.rules, s.stats.began = map[uint64]*counted{}, time.Now() // only the test publishes
	l := ratelimit.New(s, ratelimit.WithPrefix("p"))
	for i := range 3 * stats.MaxRules {
		rule := ratelimit.Rule{Name: fmt.Sprint("r", i%(2*stats.MaxRules)), Limit: 1, Per: time.Hour}
		if _, err := l.Allow(t.Context(), ratelimit.Request{Rule: rule, Key: strings.Repeat("x", 1000)}); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Allow(t.Context(), ratelimit.Request{Rule: ratelimit.Rule{Name: "r0", Limit: 1, Per: time.Hour}, Key: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
	}
	s.stats.publish(nil)
	r, _ := published(t, server, "p")
	if len(r.Rules) != stats.MaxRules {
		t.Errorf("told are %d rules", len(r.Rules))
	}
	for _, rule := range r.Rules {
		if len(rule.Subjects) > stats.MaxSubjects || rule.Name == "r0" && len(rule.Subjects) != stats.MaxSubjects {
			t.Errorf("told are %d subjects of %s", len(rule.Subjects), rule.Name)
		}
	}
	if ttl := server.Do("TTL " + stats.Key("p", s.stats.process)); ttl == "-1" || ttl > "30" {
		t.Errorf("a report expires in %s s", ttl)
	}
}
