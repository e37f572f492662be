package lua

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/ratelimit-go/ratelimit/internal/engine"
)

// twin decides calls of one subject by the script and by the engine, and compares the answers.
type twin struct {
	*virtual
	cell  engine.Cell
	moved int // the most elements that a command of the last call moved or compared
	ran   int // how many commands the last call ran
}

func newTwin(v *virtual, rule *engine.Rule) *twin {
	return &twin{virtual: v, cell: engine.NewCell(rule)}
}

type fatal interface {
	Helper()
	Fatalf(string, ...any)
}

func (w *twin) decide(t fatal, call *engine.Call) engine.Verdict {
	t.Helper()
	want := *call
	want.Claims = append([]engine.Claim(nil), call.Claims...)
	wanted := want.Decide([]*engine.Cell{&w.cell}, w.now)
	var got engine.Verdict
	var err error
	w.watch(func() { got, err = w.virtual.decide(call) })
	g, e := call.Claims[0], want.Claims[0]
	if err != nil || got != wanted || g.Fired != e.Fired || g.Refused && g.Earliest != e.Earliest {
		t.Fatalf("the script says %+v, %+v, error %v; the engine %+v, %+v", got, g, err, wanted, e)
	}
	if (call.Report || call.Peek) && (g.Room != e.Room || g.Full != e.Full || g.More != e.More) {
		t.Fatalf("the script has room for %d, more at %d, and is full at %d; the engine %d, %d and %d", g.Room, g.More, g.Full, e.Room, e.More, e.Full)
	}
	call.Claims[0] = e // the script does not say whether a member is known
	return got
}

// change adds delta to the charge of a call.
func (w *twin) change(call *engine.Call, delta int64) {
	call.Claims[0].Delta = delta
	w.watch(func() { w.virtual.adjust(call) })
	call.Claims[0].Delta = delta
	call.Adjust([]*engine.Cell{&w.cell}, w.now)
}

// peek compares what the script and the engine have left.
func (w *twin) peek(t fatal, claim engine.Claim) int64 {
	t.Helper()
	call := &engine.Call{Prefix: "p", Peek: true, Claims: []engine.Claim{claim}}
	w.decide(t, call)
	return call.Claims[0].Room
}

// loggingClock also makes the script write its commands to a list: the name, the number of arguments after the key, and the first of them.
const loggingClock = `
local function clock()
  function call(name, key, ...)
    local n = select('#', ...)
    redis.call('RPUSH', 'log', name .. ' ' .. n .. ' ' .. table.concat({ ... }, ' ', 1, math.min(n, 2)))
    return redis.call(name, key, ...)
  end
  return tonumber(redis.call('GET', 'clock'))
end`

// watch notes the commands that the script runs meanwhile.
func (w *twin) watch(do func()) {
	ctx := w.t.Context()
	before := w.client.LRange(ctx, stateKey, 0, -1).Val() // nothing if the state is a set
	w.client.Del(ctx, "log")
	do()
	commands := w.client.LRange(ctx, "log", 0, -1).Val()
	w.ran, w.moved = len(commands), 0
	for _, command := range commands {
		w.moved = max(w.moved, moved(command, before))
	}
}

// moved returns how many elements of a list, or numbers of a string, a command returns, adds or compares. LTRIM removes whole nodes of a list, so it does not count.
func moved(command string, list []string) int {
	words := strings.SplitN(command, " ", 4)
	number := func(i int) int {
		n, _ := strconv.Atoi(words[i])
		return n
	}
	switch words[0] {
	case "LPOP":
		return max(1, number(2))
	case "GETRANGE":
		last, _ := strconv.Atoi(words[3])
		return (last - number(2)) / 8
	case "LREM":
		compared, left := 0, max(number(2), -number(2))
		for i := range list {
			if number(2) < 0 {
				i = len(list) - 1 - i
			}
			if compared++; list[i] == words[3] {
				left--
			}
			if left == 0 {
				break
			}
		}
		return compared
	}
	return number(1)
}

// Whatever is asked of a large sliding window that was full, no command moves more than a thousand permits.
func TestBoundsOfALargeWindow(t *testing.T) {
	t.Parallel()
	const many = 30_000
	v := newVirtualBy(t, loggingClock)
	for name, ask := range map[string]func(*engine.Call){
		"a call at a lower limit": func(call *engine.Call) { call.Claims[0].Limit = 10 },
		"a waiting call at a lower limit": func(call *engine.Call) {
			call.Claims[0].Limit, call.Claims[0].Wait = 10, second
		},
		"a report": func(call *engine.Call) { call.Report = true },
		"a peek":   func(call *engine.Call) { call.Peek = true },
		"up to":    func(call *engine.Call) { call.UpTo, call.Claims[0].Cost = true, 500 },
		"a lease":  func(call *engine.Call) { call.Lease, call.Ahead = second, 100 },
		"a high cost": func(call *engine.Call) {
			call.Claims[0].Cost = 10_000
		},
		"a trigger":    func(call *engine.Call) { call.Claims[0].Mode = engine.Trigger },
		"a settlement": nil,
	} {
		v.client.FlushDB(t.Context())
		v.set(start)
		filling := oneClaim(engine.SlidingWindow)
		filling.Claims[0].Limit, filling.Claims[0].Cost = many, many
		w := newTwin(v, filling.Claims[0].Rule)
		w.decide(t, filling)
		call := oneClaim(engine.SlidingWindow)
		call.Claims[0].Limit = many
		if ask == nil {
			v.set(start + 30*second)
			call.Claims[0].Limit, call.Claims[0].At = 10, start
			w.change(call, 5)
		} else {
			v.set(start + 61*second)
			ask(call)
			w.decide(t, call)
		}
		if w.moved > 1010 || w.ran > 100 {
			t.Errorf("%s: %d commands run, and one of them moves %d permits", name, w.ran, w.moved)
		}
		v.set(v.now + 31*second)
		w.peek(t, call.Claims[0])
	}
}

// A refund gives back as many permits as the call took, wherever they are, and compares no more than about ten thousand permits.
func TestBoundsOfARefund(t *testing.T) {
	t.Parallel()
	v := newVirtualBy(t, loggingClock)
	claim := oneClaim(engine.SlidingWindow).Claims[0]
	claim.Limit = 50_000
	w := newTwin(v, claim.Rule)
	take := func(n int64) *engine.Call {
		call := &engine.Call{Prefix: "p", Claims: []engine.Claim{claim}}
		call.Claims[0].Cost = n
		w.decide(t, call)
		v.set(v.now + second)
		return call
	}
	first := take(1)
	take(10_000)
	second := take(2)
	take(9_999)
	middle := take(10_000)
	take(10_000)
	last := take(3)
	take(1000)
	for i, call := range []*engine.Call{first, second, last, middle} {
		n, before := call.Claims[0].Charged, w.peek(t, claim)
		w.change(call, -n)
		if w.moved > 10_000+int(n) {
			t.Errorf("refund %d compares %d permits", i+1, w.moved)
		}
		if after := w.peek(t, claim); after != before+n {
			t.Errorf("refund %d of %d permits changes the room from %d to %d", i+1, n, before, after)
		}
	}
	for cost := int64(1); cost <= claim.Limit; cost += 2500 { // the engine and the script agree on when each permit leaves
		claim.Cost = cost
		w.peek(t, claim)
	}
}

// A refund of more permits than a command may compare runs few commands, and compares none of them, however many permits are later.
func TestBoundsOfALargeRefund(t *testing.T) {
	t.Parallel()
	v := newVirtualBy(t, loggingClock)
	for _, later := range []int64{0, 3, 64, 65, 12_000} {
		v.client.FlushDB(t.Context())
		claim := oneClaim(engine.SlidingWindow).Claims[0]
		claim.Limit = 50_000
		w := newTwin(v, claim.Rule)
		var calls []*engine.Call
		for _, n := range []int64{7, 30_000, later} {
			v.set(v.now + second)
			call := &engine.Call{Prefix: "p", Claims: []engine.Claim{claim}}
			if call.Claims[0].Cost = n; n > 0 {
				w.decide(t, call)
			}
			calls = append(calls, call)
		}
		w.change(calls[1], -30_000)
		if w.moved > 1000 || w.ran > 150 {
			t.Errorf("before %d later permits, a refund runs %d commands, and one of them compares %d permits", later, w.ran, w.moved)
		}
		for claim.Cost = 1; claim.Cost <= claim.Limit; claim.Cost += 999 {
			if room := w.peek(t, claim); room != 50_000-7-later {
				t.Fatalf("before %d later permits, %d are left after the refund", later, room)
			}
		}
	}
}

// A charge removes at most a hundred members that have left the window, but never fewer than it adds. Those that stay do not count.
func TestBoundsOfMembers(t *testing.T) {
	t.Parallel()
	v := newVirtualBy(t, loggingClock)
	rapid.Check(t, func(r *rapid.T) {
		v.client.FlushDB(t.Context())
		v.set(start)
		rule := oneClaim(engine.Distinct).Claims[0].Rule
		w := newTwin(v, rule)
		ask := func(member int, limit int64) *engine.Call {
			call := oneClaim(engine.Distinct)
			call.Report = true
			call.Claims[0].Member, call.Claims[0].Limit = strconv.Itoa(member), limit
			return call
		}
		for i := range 150 {
			if i%40 == 0 {
				v.set(v.now + 7*second)
			}
			w.decide(r, ask(i, 1000))
		}
		for range 15 {
			v.set(v.now + rapid.SampledFrom([]int64{0, second, 20 * second, 61 * second}).Draw(r, "later"))
			before := v.client.ZCard(t.Context(), stateKey).Val()
			gone := v.client.ZCount(t.Context(), stateKey, "-inf", fmt.Sprint(v.now-rule.Per)).Val()
			call := ask(rapid.IntRange(0, 200).Draw(r, "member"), rapid.SampledFrom([]int64{5, 1000}).Draw(r, "limit"))
			admitted := w.decide(r, call).Admitted
			removed := before - v.client.ZCard(t.Context(), stateKey).Val()
			if removed > 100 || admitted && removed < 0 && gone > 0 {
				r.Fatalf("of %d members %d have left the window, and %d are removed", before, gone, removed)
			}
			if admitted && rapid.Bool().Draw(r, "gives back") {
				w.change(call, -1)
			}
			w.peek(r, call.Claims[0])
		}
	})
}

// A counter of ten thousand slices needs a few commands that read a block of slices each, after any pause, and however much is refused. It
// also reads states that have no sums yet.
func TestBoundsOfACounter(t *testing.T) {
	t.Parallel()
	v := newVirtualBy(t, loggingClock)
	rapid.Check(t, func(r *rapid.T) {
		v.client.FlushDB(t.Context())
		v.set(start)
		claim := oneClaim(engine.SlidingCounter).Claims[0]
		claim.Rule.Slices, claim.Limit = 10_000, 200
		w := newTwin(v, claim.Rule)
		for range 15 {
			v.set(v.now + rapid.SampledFrom([]int64{0, 6_000, 50_000, second, 20 * second, 55 * second, 61 * second}).Draw(r, "later"))
			if state := v.client.Get(t.Context(), stateKey).Val(); strings.HasPrefix(state, "\x02") && rapid.IntRange(0, 3).Draw(r, "without sums") == 0 {
				v.client.Set(t.Context(), stateKey, "\x01"+state[1:25]+state[25+8*101:], redis.KeepTTL)
			}
			call := &engine.Call{Prefix: "p", Report: rapid.Bool().Draw(r, "report"), Claims: []engine.Claim{claim}}
			call.Claims[0].Cost = rapid.SampledFrom([]int64{1, 5, 60, 200}).Draw(r, "cost")
			admitted := w.decide(r, call).Admitted
			if admitted && rapid.IntRange(0, 3).Draw(r, "gives back") == 0 {
				v.set(v.now + rapid.SampledFrom([]int64{0, second, 40 * second}).Draw(r, "after"))
				w.change(call, -call.Claims[0].Cost)
			}
			if w.moved > 104 || w.ran > 25 {
				r.Fatalf("%d commands run, and one of them reads %d numbers", w.ran, w.moved)
			}
			w.peek(r, claim)
			if bytes := v.client.MemoryUsage(t.Context(), stateKey).Val(); bytes > 90_000 { // 8 for each slice
				r.Fatalf("the state takes %d bytes", bytes)
			}
		}
	})
}
