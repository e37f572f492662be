package behaviour_test

import (
	"context"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
)

var (
	memorySteps = flag.Int("model.memory", 20_000, "random steps to compare between the model and the in-process store")
	redisSteps  = flag.Int("model.redis", 10_000, "random steps to compare between the model and Redis; a tenth of that on a cluster")
)

const (
	sequence = 50 // steps of one random sequence
	abreast  = 20 // sequences on Redis that share each sleep, with keys of their own
)

func TestModelAndMemoryAgree(t *testing.T) {
	setRapid(t, "rapid.checks", strconv.Itoa(1+*memorySteps/sequence))
	rapid.Check(t, func(t *rapid.T) {
		rapid.SyncTest(t, func(t *rapid.T) { // where time passes at once
			time.Sleep(micros(rapid.Int64Range(0, 366*24*time.Hour.Microseconds()).Draw(t, "start")))
			w := newWalk(t, memstore.New(memstore.WithClock(time.Now)), memoryPlans)
			w.settled = synctest.Wait
			defer w.abandon()
			for range sequence {
				w.let(w.drawPause())
				w.step()
			}
			w.finish()
		})
	})
}

func TestModelAndRedisAgree(t *testing.T) {
	server := redistest.Start(t)
	agreeInRealTime(t, redisstore.New(connect(t, server.Addr)), redisPlans, *redisSteps, 0)
	requireExpiries(t, server)
}

func TestModelAndClusterAgree(t *testing.T) {
	servers := redistest.StartCluster(t, 3)
	agreeInRealTime(t, redisstore.New(connectCluster(t, servers)), clusterPlans, *redisSteps/10, time.Minute)
	for _, server := range servers {
		requireExpiries(t, server)
	}
}

// agreeInRealTime compares a store with the model, times only so far.
func agreeInRealTime(t *testing.T, store ratelimit.Store, plans *rapid.Generator[ratelimit.Rule], steps int, about time.Duration) {
	setRapid(t, "rapid.checks", strconv.Itoa(1+steps/sequence/abreast))
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
			walks[i] = newWalk(t, store, plans)
			walks[i].apart(about)
			defer walks[i].abandon()
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
		for _, w := range walks {
			w.finish()
		}
	})
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
	t       *rapid.T
	limiter *ratelimit.Limiter
	store   *witness
	settled func()        // where time obeys: waits until all calls sleep or are over
	about   time.Duration // how far times may be apart
	model   *model
	rules   []ratelimit.Rule
	suffix  string        // of all keys
	retry   time.Duration // what the last refusal said
	taken   []taken
	begun   []*running
	waiting []*running // those that sleep
	over    bool       // something happened at an instant that is not known exactly: nothing can be compared any more
	log     []string
	story   *string // where there is one, it keeps the first failure
}

// apart allows for some time between what the store and the model do. No two rules may then have turns in common.
func (w *walk) apart(about time.Duration) {
	w.about = about
	for i := range w.rules {
		if r := &w.rules[i]; about > 0 && r.Cron == "" {
			r.Per += time.Duration(i) * (3*time.Hour + 1234567*time.Millisecond)
		}
	}
}

// taken is a decision that was allowed, on both sides, and how to give it back.
type taken struct {
	number int
	at     int64
	wanted func(ratelimit.Rule) bool
	back   func() error
}

// hooks is what the limiter told its functions about a call.
type hooks struct {
	shadows  []ratelimit.Violation
	triggers []ratelimit.Trigger
}

type hooksKey struct{}

// withHooks returns a context for a call, and where it puts what it tells.
func withHooks() (context.Context, *hooks) {
	told := new(hooks)
	return context.WithValue(context.Background(), hooksKey{}, told), told
}

func toldOf(ctx context.Context) *hooks { return ctx.Value(hooksKey{}).(*hooks) }

func newWalk(t *rapid.T, store ratelimit.Store, plans *rapid.Generator[ratelimit.Rule]) *walk {
	rules := rapid.SliceOfN(plans, 1, 5).Draw(t, "rules")
	known := map[identity]bool{}
	for i := range rules {
		// Few names: what one name and different windows have in common must not mix.
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
	w := &walk{t: t, store: &witness{Store: store, seen: make(chan seen, 10)}, model: newModel(), rules: rules}
	w.limiter = ratelimit.New(w.store,
		onShadow(func(ctx context.Context, refused []ratelimit.Outcome) {
			for _, o := range refused {
				toldOf(ctx).shadows = append(toldOf(ctx).shadows, ratelimit.Violation{
					Rule: o.Rule, Window: o.Window, Key: o.Key, Limit: o.Limit, Remaining: o.Remaining, RetryAfter: o.RetryAfter, Never: o.Never,
				})
			}
		}),
		ratelimit.WithTrigger(func(ctx context.Context, hit ratelimit.Trigger) {
			hit.Method = ""
			toldOf(ctx).triggers = append(toldOf(ctx).triggers, hit)
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
	if w.over {
		return
	}
	switch what := rapid.IntRange(0, 19).Draw(w.t, "what"); {
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
	case what < 17:
		w.cancel()
	case what < 18:
		w.reset()
	default:
		w.changeLimit()
	}
}

// giveBack returns the last decision or any earlier one, sometimes one that was returned before.
func (w *walk) giveBack() {
	if len(w.taken) == 0 {
		return
	}
	last := len(w.taken) - 1
	d := w.taken[rapid.OneOf(rapid.Just(last), rapid.IntRange(0, last)).Draw(w.t, "returned")]
	from := time.Now().UnixMicro()
	w.note("Return at %d of the decision at %d", from, d.at)
	if err := d.back(); err != nil {
		w.fail("Return: %v", err)
	}
	w.returned(from, d.number, d.wanted)
}

// returned tells the model of a return that began at an instant and is over now.
func (w *walk) returned(from int64, decision int, wanted func(ratelimit.Rule) bool) {
	now := time.Now().UnixMicro()
	w.over = w.over || now > from && w.model.turning(from, now, decision)
	w.model.giveBack(from, decision, wanted)
}

// reset forgets the earlier decisions: what is to be given back after a reset has its own scenario.
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
