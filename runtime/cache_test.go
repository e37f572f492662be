package ratelimit

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/decide"
	"github.com/ratelimit-go/ratelimit/internal/memory"
)

// A limiter decides any number of different rules, but keeps a bounded number of them.
func TestRulesOfRequestsAreBounded(t *testing.T) {
	l := New(memory.New(nil, memory.MaxKeys, memory.MaxBytes))
	for i := range decide.MaxRequests + 1000 {
		for _, want := range []bool{true, false} {
			d, err := l.Allow(t.Context(), Request{Rule: Rule{Name: fmt.Sprint("r", i), Limit: 1, Per: time.Hour}})
			if err != nil || d.Allowed != want {
				t.Fatalf("rule %d: got %+v, error %v; want %v", i, d, err, want)
			}
		}
	}
	if n := l.machine().Requests(); n != decide.MaxRequests {
		t.Errorf("%d rules are kept, want %d", n, decide.MaxRequests)
	}
}

// Ever new rules that differ in their message alone have one hash. The limiter keeps few of them, and they take the place of no others.
func TestEverNewRulesLeaveOthers(t *testing.T) {
	l := New(memory.New(nil, memory.MaxKeys, memory.MaxBytes))
	var others [100]*decide.Method
	for i := range others {
		others[i], _ = l.prepare(&Rule{Name: fmt.Sprint("r", i), Limit: 1, Per: time.Hour})
	}
	for i := range 2 * decide.MaxRequests {
		rule := Rule{Name: "new", Limit: 1, Per: time.Hour, Message: fmt.Sprint(i)}
		if p, err := l.prepare(&rule); err != nil || *ruleOf(p.Rule()) != rule {
			t.Fatalf("got %+v for %+v, error %v", p, rule, err)
		}
	}
	for i, want := range others {
		if got, err := l.prepare(&Rule{Name: fmt.Sprint("r", i), Limit: 1, Per: time.Hour}); got != want {
			t.Fatalf("rule %d was forgotten; error %v", i, err)
		}
	}
	if n := l.machine().Requests(); n > len(others)+decide.MaxAlike {
		t.Errorf("%d rules are kept", n)
	}
}

// Rules that differ in one field alone, as for the languages or time zones of subjects, are prepared once.
func TestRulesThatAreAlikeAreFound(t *testing.T) {
	l := New(memory.New(nil, memory.MaxKeys, memory.MaxBytes))
	zones := []string{"Asia/Shanghai", "Europe/Berlin", "Africa/Cairo"}
	for turn, last := 0, map[Rule]*decide.Method{}; turn < 2; turn++ {
		for i := range 90 {
			for _, rule := range []Rule{
				{Name: "r", Limit: 1, Per: time.Hour, Message: fmt.Sprint("language ", i%decide.MaxAlike)},
				{Name: "r", Limit: 1, Cron: fmt.Sprintf("0 %d 0 * * *", i%30), TZ: zones[i/30]},
			} {
				m, err := l.prepare(&rule)
				if err != nil || turn > 0 && last[rule] != m {
					t.Fatalf("%+v is prepared again, error %v", rule, err)
				}
				last[rule] = m
			}
		}
	}
}

// Rules that are used in turns are prepared once, also 30,000 of them. A tenth more than the limiter keeps are mostly found as well.
func TestRulesInTurnsAreFound(t *testing.T) {
	for _, n := range []int{1000, 30_000, decide.MaxRequests + decide.MaxRequests/10} {
		l := New(memory.New(nil, memory.MaxKeys, memory.MaxBytes))
		last, found := make([]*decide.Method, n), 0
		for turn := range 3 {
			for i := range n {
				rule := Rule{Name: fmt.Sprint("r", i), Limit: 1, Per: time.Hour}
				p, err := l.prepare(&rule)
				if err != nil || *ruleOf(p.Rule()) != rule {
					t.Fatalf("got %+v for %+v, error %v", p, rule, err)
				}
				if turn == 2 && p == last[i] {
					found++
				}
				last[i] = p
			}
		}
		if kept := l.machine().Requests(); found < n*2/3 || n <= decide.MaxRequests && found != n || kept > decide.MaxRequests {
			t.Errorf("of %d rules %d are found, and %d are kept", n, found, kept)
		}
	}
}

// BenchmarkRulesInTurns decides under many rules in turns, as a program does whose customers have rules of their own. It also shows the
// memory that the limiter keeps for a rule.
func BenchmarkRulesInTurns(b *testing.B) {
	for _, n := range []int{1, 1000, 10_000, 30_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			requests := make([]Request, n)
			for i := range requests {
				requests[i] = Request{Rule: Rule{Name: fmt.Sprint("r", i), Limit: 1_000_000, Per: time.Hour, Algorithm: FixedWindow}, Key: "k"}
			}
			before := heap()
			l := New(memory.New(nil, memory.MaxKeys, memory.MaxBytes))
			decide := func(i int) {
				if d, err := l.Allow(b.Context(), requests[i%n]); err != nil || !d.Allowed {
					b.Fatalf("%+v, error %v", d, err)
				}
			}
			for i := range n {
				decide(i)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				decide(i)
			}
			b.ReportMetric(float64(heap()-before)/float64(n), "B/rule")
			runtime.KeepAlive(l)
		})
	}
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
