package behaviour_test

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
)

var memorySteps = flag.Int("model.memory", 10_000, "random steps to compare between the model and the in-process store")

const sequence = 50 // steps of one random sequence

func TestModelAndMemoryAgree(t *testing.T) {
	t.Parallel()
	for i := range max(1, *memorySteps/(checks*sequence)) {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) { rapid.SyncTest(t, walkRandomly) }) // sleeping takes no time there
		})
	}
}

const checks = 100 // of rapid.Check

func walkRandomly(t *rapid.T) {
	time.Sleep(micros(rapid.Int64Range(0, 366*24*time.Hour.Microseconds()).Draw(t, "start")))
	w := newWalk(t, memstore.New(memstore.WithClock(time.Now)))
	defer w.abandon()
	for range sequence {
		w.let(w.drawPause())
		w.step()
	}
}

// A walk takes random steps with a limiter and the model side by side.
type walk struct {
	t       *rapid.T
	limiter *ratelimit.Limiter
	store   *witness
	model   *model
	rules   []ratelimit.Rule
	retry   time.Duration // RetryAfter of the last refusal
	taken   []*running    // calls that were allowed, and can be refunded
	begun   []*running
	waiting []*running // calls that sleep
	log     []string
}

func newWalk(t *rapid.T, store ratelimit.Store) *walk {
	rules := rapid.SliceOfN(anyRule, 1, 5).Draw(t, "rules")
	known := map[identity]bool{}
	for i := range rules {
		// There are few names, so that rules of one name with different windows occur. Their counts must not mix.
		rules[i].Name = fmt.Sprint("rule", i%2)
		if id := (ask{rule: rules[i]}).identity(); known[id] {
			rules[i].Name = fmt.Sprint("other", i)
		} else {
			known[id] = true
		}
		if err := rules[i].Validate(); err != nil {
			t.Fatal(err)
		}
	}
	w := &walk{t: t, store: &witness{Store: store, seen: make(chan seen, 10_000)}, model: newModel(), rules: rules}
	w.limiter = ratelimit.New(w.store,
		onShadow(func(ctx context.Context, refused []ratelimit.Outcome) {
			told := &runningOf(ctx).told
			for _, o := range refused {
				told.shadows = append(told.shadows, ratelimit.Violation{
					Rule: o.Rule, Window: o.Window, Key: o.Key, Limit: o.Limit, Remaining: o.Remaining, RetryAfter: o.RetryAfter, Never: o.Never,
					Running: o.Running,
				})
			}
		}),
		ratelimit.WithTrigger(func(ctx context.Context, hit ratelimit.Trigger) {
			hit.Method = ""
			told := &runningOf(ctx).told
			told.triggers = append(told.triggers, hit)
		}))
	return w
}

// let lets time pass.
func (w *walk) let(pause time.Duration) {
	w.note("pass %v", pause)
	time.Sleep(pause)
	w.collect()
}

// step does one thing.
func (w *walk) step() {
	switch what := rapid.IntRange(0, 20).Draw(w.t, "what"); {
	case what < 4:
		w.request("Allow")
	case what < 6:
		w.request("Peek")
	case what < 9:
		w.request("Wait")
	case what < 13:
		w.charge()
	case what < 15:
		w.giveBack()
	case what < 16:
		w.reset()
	case what < 19:
		w.request("Reserve")
	default:
		w.changeLimit()
	}
}

// giveBack refunds the last decision or an earlier one, sometimes one that was already refunded.
func (w *walk) giveBack() {
	if len(w.taken) == 0 {
		return
	}
	last := len(w.taken) - 1
	r := w.taken[rapid.OneOf(rapid.Just(last), rapid.IntRange(0, last)).Draw(w.t, "returned")]
	if time.Now().UnixMicro() < r.want.at {
		return // TestReserveDoesWhatWaitDoes gives places back that are to come
	}
	if time.Now().UnixMicro() == r.want.at && slices.ContainsFunc(r.asks, opensWindows) {
		w.let(time.Microsecond)
	}
	now := time.Now().UnixMicro()
	w.note("Return at %d of the decision at %d", now, r.want.at)
	if err := r.back(); err != nil {
		w.fail("Return: %v", err)
	}
	w.model.giveBack(now, r.number, r.wanted)
}

// opensWindows reports whether a call of the rule can open a window. A refund leaves a window open. A call that another rule refuses closes the
// window that it opened. In the microsecond in which a window began, a store cannot tell who opened it.
func opensWindows(q ask) bool { return q.rule.Algorithm == ratelimit.FixedWindow }

// reset resets all counts. It also drops the earlier decisions, because other tests check refunds after a reset.
func (w *walk) reset() {
	if len(w.waiting) > 0 {
		return
	}
	requests := requestsOf(w.drawAsks())
	w.note("Reset %s", describe(asksOf(requests, 0)))
	if _, err := w.limiter.Reset(context.Background(), requests...); err != nil {
		w.fail("Reset: %v", err)
	}
	w.model.reset(asksOf(requests, 0))
	w.taken = nil
}

func (w *walk) changeLimit() {
	r := &w.rules[rapid.IntRange(0, len(w.rules)-1).Draw(w.t, "changed")]
	if overruns(*r) {
		return
	}
	r.Limit = drawLimit(w.t, *r)
	w.note("limit of %s %s is %d", r.Name, lawOf(*r).window(), r.Limit)
}

func (w *walk) note(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf(format, args...))
}

func (w *walk) fail(format string, args ...any) {
	w.t.Helper()
	w.note(format, args...)
	w.t.Fatal(strings.Join(w.log, "\n"))
}
