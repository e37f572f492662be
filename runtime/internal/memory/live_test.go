package memory

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/ratelimit-go/ratelimit/runtime/internal/decide"
)

// What has expired makes room also if it was in the new subject's own shard, where the call itself drops it.
func TestFullStoreDropsWhatHasExpiredInOneShard(t *testing.T) {
	clock := &hand{}
	s := New(clock.time, 1)
	rule := newRule(decide.Fixed, "r", 100)
	old := ask("old", 1, rule)
	expect(t, s, old, true)
	fresh := ask("", 1, rule)
	for i := 0; s.place(fresh).shard != s.place(old).shard; i++ {
		fresh.Claims[0].Subject = fmt.Sprint(i)
	}
	clock.now = 100
	expect(t, s, fresh, true)
	expectCount(t, s, 1)
}

// Whatever is done, the parts of the store fit together, and no live count is forgotten: a fixed window admits what a plain
// map of windows does.
func TestStoreKeepsWhatIsLive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		clock := &hand{}
		most := rapid.Int64Range(1, 12).Draw(t, "most")
		s := New(clock.time, most)
		rules := []*decide.Rule{newRule(decide.Fixed, "short", 5), newRule(decide.Fixed, "long", 50)}
		windows := make(map[string]window)
		const limit = 2
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				if problem := broken(s); problem != "" {
					t.Fatal(problem)
				}
			},
			"later": func(t *rapid.T) { clock.now += rapid.Int64Range(1, 20).Draw(t, "by") },
			"call": func(t *rapid.T) {
				rule, subject := draw(t, rules)
				name := fmt.Sprint(rule.Per, subject)
				w := windows[name]
				if w.stop <= clock.now {
					w = window{stop: clock.now + rule.Per}
				}
				v, err := s.Decide(ctx, ask(subject, limit, rule))
				switch {
				case err != nil:
					if n := live(windows, clock.now); w.used > 0 || n < most {
						t.Fatalf("%s: error %v with %d live windows of %d", name, err, n, most)
					}
				case v.Admitted != (w.used < limit):
					t.Fatalf("%s: admitted is %t after %d of %d", name, v.Admitted, w.used, limit)
				case v.Admitted:
					w.used++
					windows[name] = w
				}
			},
			"reset": func(t *rapid.T) {
				rule, subject := draw(t, rules)
				if _, err := s.Reset(ctx, ask(subject, limit, rule)); err != nil {
					t.Fatal(err)
				}
				delete(windows, fmt.Sprint(rule.Per, subject))
			},
		})
	})
}

type window struct{ stop, used int64 }

func live(windows map[string]window, now int64) (n int64) {
	for _, w := range windows {
		if w.stop > now {
			n++
		}
	}
	return n
}

func draw(t *rapid.T, rules []*decide.Rule) (*decide.Rule, string) {
	subject := fmt.Sprint(rapid.IntRange(0, 15).Draw(t, "subject"))
	return rapid.SampledFrom(rules).Draw(t, "rule"), subject
}

// What was given back in full makes room at once.
func TestReturnedStateMakesRoom(t *testing.T) {
	clock := &hand{now: 1}
	s := New(clock.time, 1)
	for _, kind := range []decide.Kind{decide.Log, decide.Bucket} {
		rule := newRule(kind, "r", 100)
		call := ask("a", 1, rule)
		expect(t, s, call, true)
		if err := s.Return(ctx, call); err != nil {
			t.Fatal(err)
		}
		expectCount(t, s, 0)
	}
}
