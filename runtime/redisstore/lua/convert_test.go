package lua

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/engine"
)

// answer is the answer to a call: when it was decided, and when it is admitted, or 0.
type answer struct{ now, at int64 }

// load is several clients that call all the time while the clock advances.
type load struct {
	*virtual
	usages   []usage
	subjects []string

	mu   sync.Mutex
	told map[*engine.Rule]map[string][]answer // by subject
}

// States from before layouts are converted while several clients call all the time. In total, as many calls are admitted as by the engine, which
// starts from the same state and decides the same calls.
func TestConversionUnderLoad(t *testing.T) {
	t.Parallel()
	l := &load{virtual: newVirtual(t), usages: usages(t, kindsWithoutLayout), told: make(map[*engine.Rule]map[string][]answer)}
	for i := range 20 {
		l.subjects = append(l.subjects, fmt.Sprint("s", i))
	}
	restore(l.virtual, l.subjects...)
	l.set(later)
	var clients sync.WaitGroup
	for i := range 6 {
		clients.Go(func() { l.call(i, 1500) })
	}
	clients.Wait()
	for _, u := range l.usages {
		for _, subject := range l.subjects {
			l.compare(&u, subject)
		}
	}
	for key, state := range l.strings() {
		if (len(state)%8 != 1 || state[0] == 0 || state[0] > newestLayout) && !strings.Contains(key, ":free:") && !strings.HasPrefix(key, "p:blocked:") {
			t.Errorf("%s is not converted: %q", key, state)
		}
	}
}

// call makes calls on its own connection, up to five in a run.
func (l *load) call(client, runs int) {
	own := redis.NewClient(l.client.Options())
	defer own.Close()
	v := &virtual{t: l.t, client: own, sha: l.sha, now: later}
	for i := range runs {
		var calls []*engine.Call
		for j := range 1 + rand.N(5) {
			u := &l.usages[rand.N(len(l.usages))]
			call := u.call(0)
			call.Claims[0].Subject, call.Claims[0].Member = l.subjects[rand.N(len(l.subjects))], fmt.Sprint(client, "-", i, "-", j)
			calls = append(calls, call)
		}
		for len(calls) > 0 && !l.t.Failed() {
			calls = l.decide(v, calls)
		}
		if i%5 == 0 {
			own.IncrBy(l.t.Context(), "clock", rand.N[int64](second))
		}
	}
}

// decide decides calls in one run. It returns those that have to be sent again, with other calendar windows.
func (l *load) decide(v *virtual, calls []*engine.Call) (again []*engine.Call) {
	run := new(Run)
	for _, call := range calls {
		run.AddDecision(call, v.now)
	}
	reply, err := v.run(run)
	replies, many := reply.([]any)
	if !many {
		replies = []any{reply}
	}
	if err != nil || len(replies) != len(calls) {
		l.t.Errorf("%d replies to %d calls, error %v", len(replies), len(calls), err)
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, call := range calls {
		w, err := ReadDecision(replies[i], call)
		if windows, ok := err.(WindowsAt); ok {
			v.now, again = int64(windows), append(again, call)
			continue
		}
		if err != nil || w.Damaged {
			l.t.Errorf("%+v, error %v, of %+v", w, err, call.Claims[0])
		}
		if err == nil && call.AskAgain(w) { // the call must wait for a window that was not sent
			v.now, again = w.Now, append(again, call)
			continue
		}
		c := &call.Claims[0]
		if l.told[c.Rule] == nil {
			l.told[c.Rule] = make(map[string][]answer)
		}
		l.told[c.Rule][c.Subject] = append(l.told[c.Rule][c.Subject], answer{w.Now, w.At})
	}
	return again
}

// compare decides the calls of one subject with the engine, in the order of their times, and requires the same
// answers. All these calls are equal.
func (l *load) compare(u *usage, subject string) {
	cells, now := []*engine.Cell{new(engine.Cell)}, int64(0)
	*cells[0] = engine.NewCell(u.claim.Rule)
	u.play(func(at int64) { now = at }, func(call *engine.Call) { call.Decide(cells, now) }, func(call *engine.Call) { call.Adjust(cells, now) })
	cells[0].DropFreePlaces() // free places had another key
	told := l.told[u.claim.Rule][subject]
	slices.SortFunc(told, func(a, b answer) int { return cmp.Compare(a.now, b.now) })
	got, want := make(map[answer]int), make(map[answer]int)
	for i, a := range told {
		got[a]++
		w := u.call(i).Decide(cells, a.now)
		if !w.Admitted {
			w.At = 0
		}
		want[answer{a.now, w.At}]++
	}
	if !maps.Equal(got, want) {
		l.t.Errorf("%s of %s: got %v, want %v", u.name, subject, got, want)
	}
	if len(told) < 10 {
		l.t.Errorf("%s of %s: %d calls only", u.name, subject, len(told))
	}
}

// strings returns the states that are Redis strings.
func (v *virtual) strings() map[string]string {
	states := make(map[string]string)
	for key := range v.dump() {
		if v.client.Type(v.t.Context(), key).Val() == "string" {
			states[key] = v.client.Get(v.t.Context(), key).Val()
		}
	}
	return states
}
