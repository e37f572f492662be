package engine

import (
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var leaseSchedules = flag.Int("lease.schedules", 20_000, "how many random schedules of leases are checked")

// holder is a process that takes permits ahead, with its last lease.
type holder struct {
	call Call
	left int64
	stop int64
}

// spent is an admitted call, and when it ran.
type spent struct {
	call   Call // has the charge that a refund gives back
	of     *holder
	at     int64
	cost   int64
	killed bool // its process was killed, so nobody refunds the call
}

// group is several processes that make calls under the same rules, on one store.
type group struct {
	t       *rapid.T
	rules   []*Rule
	limits  []int64
	cells   []*Cell
	holders []*holder
	spent   []*spent
	windows []map[int64]int64 // for each rule, the start of each window by its end
	lease   int64
	now     int64
}

func drawFleet(t *rapid.T) *group {
	f := &group{t: t, now: 1_000_000 * second, lease: rapid.SampledFrom([]int64{1, 10, 100, 500}).Draw(t, "lease")}
	for range rapid.IntRange(1, 2).Draw(t, "rules") {
		r := &Rule{Kind: rapid.SampledFrom([]Kind{SlidingWindow, FixedWindow, Calendar, TokenBucket}).Draw(t, "kind"), Per: 1000, Lease: f.lease}
		if r.Kind == Calendar {
			r.Schedule = NewSchedule(func(at time.Time) time.Time { return at.Truncate(time.Second).Add(time.Second) }, true, time.UTC)
		}
		cell := NewCell(r)
		f.rules, f.cells, f.windows = append(f.rules, r), append(f.cells, &cell), append(f.windows, map[int64]int64{})
		f.limits = append(f.limits, rapid.SampledFrom([]int64{1, 2, 3, 5, 10, 40}).Draw(t, "limit"))
	}
	for range 3 {
		f.holders = append(f.holders, new(holder))
	}
	return f
}

func (f *group) newCall(cost, wait int64) Call {
	var call Call
	for i, r := range f.rules {
		cost = min(cost, f.limits[i])
		call.Claims = append(call.Claims, Claim{Ask: Ask{Rule: r, Cost: cost, Limit: f.limits[i], Burst: f.limits[i], Wait: wait}})
	}
	for i := range call.Claims {
		call.Claims[i].Cost = cost
	}
	return call
}

// step makes one process do something.
func (f *group) step() {
	f.now += rapid.SampledFrom([]int64{0, 0, 1, 3, 10, 60, 300, 1200}).Draw(f.t, "later")
	h := f.holders[rapid.SampledFrom([]int{0, 1, 2}).Draw(f.t, "process")]
	cost := rapid.SampledFrom([]int64{1, 1, 1, 3}).Draw(f.t, "cost")
	switch rapid.SampledFrom([]string{"kill", "refund", "refund", "ask", "wait", "give back", "hand", "hand", "hand", "hand", "hand"}).Draw(f.t, "what") {
	case "kill":
		f.kill(h)
	case "refund":
		f.refund()
	case "ask":
		f.ask(cost, 0)
	case "wait":
		f.ask(cost, 3000)
	case "give back":
		f.giveBack(h)
	case "hand":
		f.hand(h, cost)
	}
}

func (f *group) kill(h *holder) {
	for _, s := range f.spent {
		s.killed = s.killed || s.of == h
	}
	*h = holder{}
}

// hand admits a call of a process from its lease, or from the next one.
func (f *group) hand(h *holder, cost int64) {
	call := f.newCall(cost, 0)
	cost = call.Claims[0].Cost
	if h.left >= cost && f.now < h.stop {
		h.left -= cost
		f.spend(&spent{call: h.call, of: h, at: f.now, cost: cost})
		return
	}
	f.giveBack(h)
	call.Lease, call.Ahead = f.lease, rapid.SampledFrom([]int64{1, 3, 10, 30}).Draw(f.t, "ahead")
	if v := f.decide(&call); v.Admitted {
		*h = holder{call, v.Taken - cost, v.At}
		f.spend(&spent{call: call, of: h, at: f.now, cost: cost})
	}
}

// giveBack gives back the unused permits of a lease.
func (f *group) giveBack(h *holder) {
	f.adjust(h.call, -h.left)
	h.left = 0
}

func (f *group) adjust(call Call, delta int64) {
	if delta == 0 {
		return
	}
	call.Claims = slices.Clone(call.Claims)
	for i := range call.Claims {
		call.Claims[i].Delta = delta
	}
	call.Adjust(f.cells, f.now)
}

// ask admits a call without a lease.
func (f *group) ask(cost, wait int64) {
	call := f.newCall(cost, wait)
	if v := f.decide(&call); v.Admitted {
		f.spend(&spent{call: call, at: v.At, cost: call.Claims[0].Cost})
	}
}

func (f *group) decide(call *Call) Verdict {
	v := call.Decide(f.cells, f.now)
	for i, cell := range f.cells {
		if w, ok := cell.State(f.rules[i]).(*windows); ok {
			for j := range w.len() {
				if x := w.at(j); x.start <= f.now && f.now < x.stop { // a future window may be closed again
					f.windows[i][x.stop] = x.start
				}
			}
		}
	}
	return v
}

func (f *group) spend(s *spent) { f.spent = append(f.spent, s) }

// refund gives back the permits of a call or a part of them: to the lease while it lasts, and to the store afterwards.
func (f *group) refund() {
	if len(f.spent) == 0 {
		return
	}
	i := len(f.spent) - 1 - rapid.IntRange(0, min(20, len(f.spent)-1)).Draw(f.t, "spent")
	s := f.spent[i]
	if s.killed {
		return
	}
	n := rapid.Int64Range(1, s.cost).Draw(f.t, "permits")
	if s.of != nil && f.now < s.of.stop && s.of.call.Claims[0].At == s.call.Claims[0].At {
		s.of.left += n
	} else {
		f.adjust(s.call, -n)
	}
	if s.cost -= n; s.cost == 0 || s.of == nil { // a call without a lease is dropped even if a part of its cost stays charged
		f.spent = slices.Delete(f.spent, i, i+1)
	}
}

// Whatever processes do with their leases, and whenever they are killed, no window has more permits than the limit, and no span of a bucket
// has more than its burst and what it gains in that span.
func TestLeasesNeverExceedTheLimit(t *testing.T) {
	checks := flag.Lookup("rapid.checks").Value
	usual := checks.String()
	defer checks.Set(usual)
	checks.Set(fmt.Sprint(*leaseSchedules))
	rapid.Check(t, func(t *rapid.T) {
		f := drawFleet(t)
		for range 60 {
			f.step()
		}
		slices.SortStableFunc(f.spent, func(a, b *spent) int { return int(a.at - b.at) })
		for i := range f.rules {
			f.require(i)
		}
	})
}

func (f *group) require(i int) {
	limit := f.limits[i]
	for stop, start := range f.windows[i] {
		if used := f.used(start, stop-1); used > limit {
			f.t.Fatalf("%d of %d permits in the window from %d to %d", used, limit, start, stop)
		}
	}
	if len(f.windows[i]) > 0 {
		return
	}
	for from, first := range f.spent {
		total := int64(0)
		for _, last := range f.spent[from:] {
			total += last.cost
			span := last.at - first.at
			most := limit + (span+1)*limit/f.rules[i].Per // the times of places are rounded up
			if f.rules[i].Kind == SlidingWindow {
				if most = limit; span >= f.rules[i].Per {
					break
				}
			}
			if total > most {
				f.t.Fatalf("%d of %d permits from %d to %d by a rule of kind %d", total, most, first.at, last.at, f.rules[i].Kind)
			}
		}
	}
}

func (f *group) used(from, to int64) (n int64) {
	for _, s := range f.spent {
		if from <= s.at && s.at <= to {
			n += s.cost
		}
	}
	return n
}

// A lease is recorded before its calls run. If a call that waits gives its place up in between, a refund of a leased call still gives back no
// permit that the bucket did not gain.
func TestPlaceGivenUpBeforeALeasedCallRuns(t *testing.T) {
	s := newSubject(t, Rule{Kind: TokenBucket, Per: 1000, Lease: 500})
	ask := func(cost, wait, lease int64) (Call, Verdict) {
		call := Call{Lease: lease, Claims: []Claim{{Ask: Ask{Rule: &s.rule, Cost: cost, Limit: 2, Burst: 2, Wait: wait}}}}
		return call, call.Decide([]*Cell{&s.cell}, s.now)
	}
	refunded, _ := ask(1, 0, 0)
	leased, _ := ask(1, 0, 500)
	waits, _ := ask(1, 3000, 0)
	s.giveBack(waits)
	s.giveBack(refunded)
	_, early := ask(2, 3000, 0)
	s.now += 1200
	s.giveBack(leased)
	if _, late := ask(2, 0, 0); late.Admitted && late.At < early.At+1000 {
		t.Errorf("4 permits in %d us by 2 in 1000 us with a burst of 2", late.At-early.At)
	}
}
