package behaviour_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

var (
	memorySteps = flag.Int("model.memory", 20_000, "random steps to compare between the model and the in-process store")
	redisSteps  = flag.Int("model.redis", 10_000, "random steps to compare between the model and Redis")
)

const (
	sequence = 50 // steps of one random sequence
	abreast  = 20 // sequences on Redis that share each sleep, with keys of their own
)

func TestModelAndMemoryAgree(t *testing.T) {
	setRapid(t, "rapid.checks", strconv.Itoa(1+*memorySteps/sequence))
	rapid.Check(t, func(t *rapid.T) {
		c := newClock()
		c.pass(micros(rapid.Int64Range(0, 366*24*time.Hour.Microseconds()).Draw(t, "start")))
		w := newWalk(t, inMemory(c), memoryPlans)
		for range sequence {
			w.let(w.drawPause())
			w.step()
			if w.at > c.now().UnixMicro() {
				t.Fatalf("a decision at %d, after the clock's %d", w.at, c.now().UnixMicro())
			}
		}
	})
}

func TestModelAndRedisAgree(t *testing.T) {
	server := redistest.Start(t)
	s := onServer(t, server)
	setRapid(t, "rapid.checks", strconv.Itoa(1+*redisSteps/sequence/abreast))
	setRapid(t, "rapid.shrinktime", "5s") // real time does not repeat itself
	run, story := 0, ""
	defer func() {
		if t.Failed() {
			t.Log("the first failure, which need not repeat itself:\n" + story)
		}
	}()
	rapid.Check(t, func(t *rapid.T) {
		run++
		walks := make([]*walk, abreast)
		for i := range walks {
			walks[i] = newWalk(t, s, redisPlans)
			walks[i].story = &story
			walks[i].suffix = fmt.Sprintf(" %d.%d", run, i)
		}
		for range sequence {
			sleeper := walks[rapid.IntRange(0, abreast-1).Draw(t, "sleeper")]
			sleeper.let(sleeper.drawSleep())
			for _, w := range walks {
				w.step()
			}
		}
	})
	requireExpiries(t, server)
}

func setRapid(t *testing.T, name, value string) {
	old := flag.Lookup(name).Value.String()
	for n, v := range map[string]string{name: value, "rapid.nofailfile": "true"} {
		if err := flag.Set(n, v); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = flag.Set(name, old) })
}

// A walk takes random steps with a limiter and the model side by side.
type walk struct {
	*subject
	t      *rapid.T
	model  *model
	rules  []ratelimit.Rule
	suffix string        // of all keys
	retry  time.Duration // what the last refusal said
	at     int64         // when the last decision was made
	taken  []taken
	log    []string
	story  *string // where there is one, it keeps the first failure
}

// taken is a decision that was allowed, on both sides.
type taken struct {
	decision ratelimit.Decision
	number   int
}

func newWalk(t *rapid.T, s *subject, plans *rapid.Generator[ratelimit.Rule]) *walk {
	rules := rapid.SliceOfN(plans, 1, 5).Draw(t, "rules")
	known := map[identity]bool{}
	for i := range rules {
		// Few names: what one name and different windows have in common must not mix.
		rules[i].Name = fmt.Sprint("rule", i%2)
		if id := identify(ratelimit.Request{Rule: rules[i]}); known[id] {
			rules[i].Name = fmt.Sprint("other", i)
		} else {
			known[id] = true
		}
	}
	return &walk{subject: s, t: t, model: newModel(), rules: rules}
}

// let lets time pass.
func (w *walk) let(pause time.Duration) {
	w.note("pass %v", pause)
	w.pass(pause)
}

// step does one thing.
func (w *walk) step() {
	switch what := rapid.IntRange(0, 19).Draw(w.t, "what"); {
	case what < 12:
		w.decide("Allow")
	case what < 15:
		w.decide("Peek")
	case what < 17:
		w.giveBack()
	case what < 18:
		w.reset()
	default:
		w.changeLimit()
	}
}

func (w *walk) decide(call string) {
	requests := w.drawRequests()
	ask, ctx := w.limiter.Peek, context.Background()
	if call == "Allow" {
		ask = w.limiter.Allow
	}
	got, err := ask(ctx, requests...)
	if _, never := errors.AsType[*ratelimit.NeverAdmissibleError](err); err != nil && !never {
		w.fail("%s %s: %v", call, describe(requests), err)
	}
	now := got.At.UnixMicro()
	if err != nil {
		now = w.at // the model's answer does not depend on it
	}
	want, number := w.model.peek(now, requests), 0
	if call == "Allow" {
		want, number = w.model.allow(now, requests)
	}
	w.note("%s %s at %d: allowed %v, retry after %v, error %v", call, describe(requests), now, got.Allowed, got.RetryAfter, err)
	w.compare(got, err, want)
	w.remember(got, err, number)
}

func (w *walk) compare(got ratelimit.Decision, err error, want outcome) {
	if want.never != (err != nil) {
		w.fail("want an error: %v; got %v", want.never, err)
	}
	if got.Allowed != want.allowed() || got.RetryAfter != micros(want.retryAfter) {
		w.fail("want allowed %v, retry after %v", want.allowed(), micros(want.retryAfter))
	}
	if !slices.EqualFunc(got.Violations, want.violations, sameViolation) {
		w.fail("violations: got %swant %s", spell(got.Violations), spell(want.violations))
	}
}

func sameViolation(a, b ratelimit.Violation) bool {
	return a.Rule == b.Rule && a.Key == b.Key && a.Limit == b.Limit && a.Remaining == b.Remaining && a.RetryAfter == b.RetryAfter
}

func spell(violations []ratelimit.Violation) string {
	var b strings.Builder
	for _, v := range violations {
		fmt.Fprintf(&b, "%s of %q: limit %d, remaining %d, retry after %v\n", v.Rule, v.Key, v.Limit, v.Remaining, v.RetryAfter)
	}
	return b.String()
}

func (w *walk) remember(got ratelimit.Decision, err error, number int) {
	if err != nil {
		return
	}
	w.at, w.retry = got.At.UnixMicro(), got.RetryAfter
	if number > 0 {
		w.taken = append(w.taken, taken{got, number})
	}
}

// giveBack returns the last decision or any earlier one, sometimes one that was returned before.
func (w *walk) giveBack() {
	if len(w.taken) == 0 {
		return
	}
	last := len(w.taken) - 1
	d := w.taken[rapid.OneOf(rapid.Just(last), rapid.IntRange(0, last)).Draw(w.t, "returned")]
	w.note("Return of the decision at %d", d.decision.At.UnixMicro())
	if err := d.decision.Return(context.Background()); err != nil {
		w.fail("Return: %v", err)
	}
	w.model.giveBack(d.number)
}

// reset forgets the earlier decisions: what is to be given back after a reset has its own scenario.
func (w *walk) reset() {
	requests := w.drawRequests()
	w.note("Reset %s", describe(requests))
	if err := w.limiter.Reset(context.Background(), requests...); err != nil {
		w.fail("Reset: %v", err)
	}
	w.model.reset(requests)
	w.taken = nil
}

func (w *walk) changeLimit() {
	r := &w.rules[rapid.IntRange(0, len(w.rules)-1).Draw(w.t, "changed")]
	r.Limit = limits.Draw(w.t, "limit")
	w.note("limit of %s %s is %d", r.Name, lawOf(*r).window(), r.Limit)
}

func (w *walk) note(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf(format, args...))
}

func (w *walk) fail(format string, args ...any) {
	w.t.Helper()
	w.note(format, args...)
	told := strings.Join(w.log, "\n")
	if w.story != nil && *w.story == "" {
		*w.story = told
	}
	w.t.Fatal(told)
}
