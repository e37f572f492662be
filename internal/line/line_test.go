package line

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"unsafe"

	"pgregory.net/rapid"
)

// A line outlives the call that began it, and the memory of that call's key, which the program may use again.
func TestLineOutlivesTheTextOfItsKey(t *testing.T) {
	l := New()
	text := []byte("ann")
	reused := Count{Name: "rule", Subject: unsafe.String(&text[0], len(text))}
	ann := Count{Name: "rule", Subject: "ann"}
	var first, second, third Waiter
	l.Put(&first, HeldByPause, reused, 0)
	l.Put(&second, HeldByPause, ann, 0)
	l.Put(&third, HeldByPause, reused, 0)
	l.Leave(&first)
	l.Leave(&third)
	copy(text, "bob")
	if l.FirstHeld(ann) != &second || l.FirstHeld(Count{Name: "rule", Subject: "bob"}) != nil {
		t.Error("the call that is held is in the line of another key")
	}
	if l.Leave(&second); len(l.lines) > 0 {
		t.Errorf("%d lines are left", len(l.lines))
	}
}

// counts are those of two limiters, and one that both have.
var counts = []Count{{Owner: 1, Name: "r"}, {Owner: 2, Name: "r"}, {Owner: 0, Name: "r", Releases: true}}

// said is what calls have told the lines.
type said struct {
	state              State
	count              Count // zero if the call is in no line
	first, time, order int64
	due                bool
}

type model map[*Waiter]*said

// line returns the calls of a line in their order.
func (m model) line(count Count) (calls []*Waiter) {
	for w, s := range m {
		if s.count == count {
			calls = append(calls, w)
		}
	}
	slices.SortFunc(calls, func(a, b *Waiter) int {
		if m[a].first != m[b].first {
			return int(min(1, max(-1, m[a].first-m[b].first)))
		}
		return int(m[a].order - m[b].order)
	})
	return calls
}

func (m model) isHeld(w *Waiter) bool {
	return m[w].state == HeldByPause || m[w].state == HeldByRunning
}

// held returns the first call that is held in each line.
func (m model) held() map[Count]*Waiter {
	held := map[Count]*Waiter{}
	for _, count := range counts {
		for _, w := range slices.Backward(m.line(count)) {
			if m.isHeld(w) {
				held[count] = w
			}
		}
	}
	return held
}

// isBehind reports whether a call before w in its line has an earlier time.
func (m model) isBehind(w *Waiter) bool {
	for _, other := range m.line(m[w].count) {
		if other == w {
			break
		}
		if !m.isHeld(other) && m[other].time <= m[w].time {
			return true
		}
	}
	return false
}

// Calls come, are held, get places and leave at random. A line is in the order of the times with which its calls came into it, and then of their
// coming. Each line has one first call that is held. Each change wakes the calls to which it matters, and of others only those whose time has come.
func TestLines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, m, all := New(), model{}, []*Waiter{}
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			var w *Waiter
			if i := rapid.IntRange(0, 5).Draw(t, "call"); i < len(all) {
				w = all[i]
			} else {
				w = new(Waiter)
				l.Arrive(w)
				w.Rules = rapid.SliceOfDistinct(rapid.SampledFrom(counts[:2]), func(c Count) any { return c.Owner }).Draw(t, "rules")
				m[w] = &said{order: int64(len(all))}
				all = append(all, w)
			}
			before, s := m.held(), m[w]
			must, wasBehind := map[*Waiter]bool{}, map[*Waiter]bool{}
			for _, other := range all {
				other.woken, wasBehind[other] = false, m[other].due && m.isBehind(other)
			}
			switch what := rapid.SampledFrom([]string{"put", "put", "put", "due", "due", "leave", "wake", "wake first"}).Draw(t, "what"); what {
			case "put":
				state, count := State(rapid.IntRange(0, 3).Draw(t, "state")), rapid.SampledFrom(counts[:2]).Draw(t, "count")
				if state == HeldByRunning {
					count = counts[2]
				}
				time := rapid.Int64Range(1, 4).Draw(t, "time")
				l.Put(w, state, count, time)
				if s.state = state; m.isHeld(w) {
					time = math.MaxInt64
				}
				if s.count != count {
					s.first = time
				}
				s.count, s.time, s.due = count, time, false
			case "due":
				if s.count != (Count{}) && s.state == Placed {
					s.due = true
					if got, want := l.IsBehind(w), m.isBehind(w); got != want {
						t.Fatalf("a call is behind others: %t, want %t", got, want)
					}
				}
			case "leave":
				l.Leave(w)
				s.count, s.due = Count{}, false
			case "wake":
				count := rapid.SampledFrom(counts[:2]).Draw(t, "count")
				l.Wake(count)
				for other := range m {
					must[other] = m[other].count != (Count{}) && slices.Contains(other.Rules, count)
				}
			case "wake first":
				count := rapid.SampledFrom(counts).Draw(t, "count")
				l.WakeFirst(count)
				must[before[count]] = true
			}
			after := m.held()
			for _, count := range counts {
				line := m.line(count)
				if !slices.Equal(l.lines[count], line) || l.FirstHeld(count) != after[count] {
					t.Fatalf("the line of %v is not in order", count)
				}
				for _, other := range line {
					isFirst, begins := other == after[count] && other != before[count], before[count] == nil && after[count] != nil
					must[other] = must[other] || other != w && (isFirst || begins || wasBehind[other] && !m.isBehind(other))
					if other.woken != must[other] && !m[other].due || must[other] && !other.woken {
						t.Fatalf("a call was woken: %t, want %t", other.woken, must[other])
					}
				}
			}
		}
		for _, w := range all {
			if l.Leave(w); w.Count != (Count{}) {
				t.Fatal("a call that has left is in a line")
			}
		}
		if len(l.lines) > 0 {
			t.Fatalf("%d lines are left", len(l.lines))
		}
	})
}

// A call that is woken while it is awake does not fall asleep, once.
func TestWokenWhileAwake(t *testing.T) {
	l, w := New(), new(Waiter)
	l.Put(w, HeldByRunning, counts[2], 0)
	l.WakeFirst(counts[2])
	for _, want := range []bool{true, false} {
		ended := false
		if woken := l.Sleep(t.Context(), w, func(nap context.Context) { ended = nap.Err() != nil }); woken != want || ended != want {
			t.Errorf("the sleep ends at once: %t, woken %t; want %t", ended, woken, want)
		}
	}
}

// Calls wait for permits without a clock, and some give up. Only the first of the line looks, and only when it is woken. No call sleeps on while
// there is a permit for it, and those that get one get it in the order of their coming.
func TestNobodySleepsOn(t *testing.T) {
	const calls = 100
	synctest.Test(t, func(t *testing.T) {
		for seed := range uint64(20) {
			random := rand.New(rand.NewPCG(seed, 1))
			var mu sync.Mutex
			var all sync.WaitGroup
			var got []int
			var leave [calls]context.CancelFunc
			l, permits, gone := New(), 0, map[int]bool{}
			take := func(ctx context.Context, w *Waiter, n int) bool {
				mu.Lock()
				defer mu.Unlock()
				if ctx.Err() != nil {
					return true
				}
				if l.FirstHeld(counts[2]) != w || permits == 0 {
					return false
				}
				permits--
				got = append(got, n)
				return true
			}
			for n := range calls {
				ctx, cancel := context.WithCancel(t.Context())
				leave[n] = cancel
				all.Go(func() {
					var w Waiter
					l.Arrive(&w)
					defer l.Leave(&w)
					for l.Put(&w, HeldByRunning, counts[2], 0); !take(ctx, &w, n); {
						l.Sleep(ctx, &w, func(nap context.Context) { <-nap.Done() })
					}
				})
				synctest.Wait() // so that they come in their order
			}
			for free := calls; free > 0; {
				mu.Lock()
				if n := random.IntN(calls); random.IntN(3) == 0 && !gone[n] && !slices.Contains(got, n) {
					gone[n] = true
					free--
					leave[n]()
				} else {
					n := min(1+random.IntN(3), free)
					free -= n
					permits += n
					l.WakeFirst(counts[2])
				}
				mu.Unlock()
				if random.IntN(2) == 0 {
					synctest.Wait()
				}
			}
			all.Wait() // for ever, if one sleeps on
			if !slices.IsSorted(got) {
				t.Errorf("calls got permits in the order %v", got)
			}
			for _, cancel := range leave {
				cancel()
			}
		}
	})
}
