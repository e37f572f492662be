package memory

import (
	"errors"
	"fmt"
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/engine"
)

// heap returns how many bytes are in use.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // a pool is only emptied by the second collection
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// ruleOf returns a rule of a kind with windows of per microseconds.
func ruleOf(kind engine.Kind, per int64) *engine.Rule {
	r := &engine.Rule{Name: "docs.Store.Get", Tag: "1m", Kind: kind, Per: per}
	switch kind {
	case engine.Calendar, engine.DistinctCalendar:
		r.Per, r.Schedule = 0, engine.NewSchedule(everySecond, true, time.UTC)
	case engine.SlidingCounter:
		r.Slices = 10
	case engine.Warmup:
		r.Warmup = 100
	}
	return r
}

const hour = 3600 * 1_000_000

func subject(i int) string { return fmt.Sprintf("user:%08d", i) }

// TestEstimate compares the bytes that the store counts with those of the heap. Of a bucket or a window it counts more: see Cell.Size.
func TestEstimate(t *testing.T) {
	for _, c := range []struct {
		name    string
		kind    engine.Kind
		charges int
		costs   int64
		text    string // the beginning of each subject
	}{
		{"buckets", engine.TokenBucket, 1, 1, ""},
		{"long subjects", engine.TokenBucket, 1, 1, "a subject of one hundred and twenty bytes, as they are at most before what was too long is cut and hashed: ...."},
		{"prepaid", engine.Prepaid, 1, 1, ""},
		{"warm-ups", engine.Warmup, 1, 1, ""},
		{"fixed windows", engine.FixedWindow, 1, 1, ""},
		{"calendar windows", engine.Calendar, 1, 1, ""},
		{"sliding windows of one permit", engine.SlidingWindow, 1, 1, ""},
		{"sliding windows of 100 permits", engine.SlidingWindow, 1, 100, ""},
		{"sliding windows that grew", engine.SlidingWindow, 37, 1, ""},
		{"sliding counters", engine.SlidingCounter, 1, 1, ""},
		{"one member", engine.Distinct, 1, 1, ""},
		{"eight members", engine.Distinct, 8, 1, ""},
		{"thirty members", engine.DistinctCalendar, 30, 1, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			keys := 30_000 / min(c.charges, 5)
			before := heap()
			s := New((&hand{now: hour}).time, int64(keys), 1<<40)
			call := callOf("", 1000, ruleOf(c.kind, hour))
			call.Claims[0].Cost = c.costs
			for i := range keys {
				call.Claims[0].Subject = c.text + subject(i)
				for j := range c.charges {
					call.Claims[0].Member = fmt.Sprint("member ", j)
					if v, err := s.Decide(t.Context(), call); err != nil || !v.Admitted && c.kind != engine.Warmup && c.kind != engine.Prepaid {
						t.Fatal(i, j, v, err)
					}
				}
			}
			got, want := s.bound.bytes.Load(), heap()-before
			t.Logf("%d bytes a key counted, %d taken", got/int64(keys), want/int64(keys))
			isPlain := c.kind == engine.TokenBucket || c.kind == engine.Prepaid || c.kind == engine.FixedWindow || c.kind == engine.Calendar
			if 4*got > 5*want && !isPlain && bits.UintSize == 64 || 4*want > 5*got { // with 32 bits, pointers take less
				t.Errorf("%d bytes are counted of %d that are taken", got, want)
			}
			requireWhole(t, s)
		})
	}
}

// A bucket takes at most 110 bytes, including the text of its subject, however many buckets there are.
func TestBucketBytes(t *testing.T) {
	for _, keys := range []int{50_000, 150_000} {
		subjects := make([]string, keys)
		for i := range subjects {
			subjects[i] = subject(i)
		}
		before := heap()
		s := New(nil, 1e9, 1<<40)
		call := callOf("", 1, ruleOf(engine.TokenBucket, hour))
		for i := range subjects {
			call.Claims[0].Subject = subjects[i]
			if v, err := s.Decide(t.Context(), call); err != nil || !v.Admitted {
				t.Fatal(v, err)
			}
		}
		each := (heap() - before) / int64(keys)
		runtime.KeepAlive(subjects)
		runtime.KeepAlive(s)
		t.Logf("%d keys: %d bytes a key", keys, each)
		if each > 110 {
			t.Errorf("%d keys take %d bytes each", keys, each)
		}
	}
}

// A store at its bound on bytes refuses new subjects, but no known ones, whatever memory a rule needs at its first call.
func TestMaxBytes(t *testing.T) {
	for _, kind := range engine.Kinds() {
		t.Run(fmt.Sprint(kind), func(t *testing.T) {
			const most = 2 << 20
			clock := &hand{now: hour}
			before := heap()
			s := New(clock.time, 1e9, most)
			r := ruleOf(kind, hour)
			if kind == engine.SlidingCounter {
				r.Slices = 10_000
			}
			call := callOf("", 1, r)
			call.Claims[0].Member = "m"
			if kind == engine.Prepaid || kind == engine.Warmup {
				call.Claims[0].Burst = 0
			}
			kept := 0
			for ; ; kept++ {
				call.Claims[0].Subject = subject(kept)
				if _, err := s.Decide(t.Context(), call); err != nil {
					if !errors.Is(err, ErrFull) {
						t.Fatal(err)
					}
					break
				}
			}
			if kind == engine.SlidingCounter && kept != most/(80_000+300) {
				t.Errorf("%d sliding counters of 10,000 slices are kept; expected %d", kept, most/80_300)
			}
			if taken := heap() - before; 4*taken > 5*most || 2*taken < most && bits.UintSize == 64 {
				t.Errorf("%d bytes are taken of %d", taken, most)
			}
			for i := range kept {
				call.Claims[0].Subject, call.Claims[0].Member = subject(i), "other"
				if v, err := s.Decide(t.Context(), call); err != nil || v.Admitted {
					t.Fatalf("subject %d was forgotten: %+v, error %v", i, v, err)
				}
			}
			requireWhole(t, s)
			runtime.KeepAlive(s)
		})
	}
}

// A store at its bound on bytes admits known subjects at once, even if they could wait. It keeps no windows for calls that have to wait.
func TestMaxBytesOfWindowsOfWaitingCalls(t *testing.T) {
	for _, kind := range []engine.Kind{engine.FixedWindow, engine.Calendar} {
		const most = 10_000
		s := New((&hand{now: hour}).time, 1e9, most)
		call := callOf("", 3, ruleOf(kind, hour))
		call.Claims[0].Wait = 2 * hour
		kept := 0
		for err := error(nil); err == nil; kept++ {
			call.Claims[0].Subject = subject(kept)
			_, err = s.Decide(t.Context(), call)
		}
		for i := range kept - 1 {
			call.Claims[0].Subject = subject(i)
			expect(t, s, call, true)
			expect(t, s, call, true)
			_, _ = s.Decide(t.Context(), call) // the first may find room for its window
		}
		if got := s.bound.bytes.Load(); got > most {
			t.Errorf("%s: %d bytes are taken of %d", kind, got, most)
		}
		requireWhole(t, s)
	}
}

// The bound on bytes also applies to what settlements add.
func TestMaxBytesOfSettlements(t *testing.T) {
	const most = 1 << 20
	s := New((&hand{now: hour}).time, 1e9, most)
	var err error
	for i := 0; err == nil && i < 100; i++ {
		call := callOf(subject(i), 1e9, ruleOf(engine.SlidingWindow, hour))
		expect(t, s, call, true)
		call.Claims[0].Delta = 5000
		if err = s.Adjust(t.Context(), call); err != nil && call.Claims[0].Delta != 5000 {
			t.Errorf("a settlement failed, and left %d permits to charge", call.Claims[0].Delta)
		}
	}
	if got := s.bound.bytes.Load(); !errors.Is(err, ErrFull) || got > most || got < most/2 {
		t.Errorf("%d bytes are taken of %d, error %v", got, most, err)
	}
	requireWhole(t, s)
}

// The bound on bytes also applies to settlements that each add an entry to the count of one subject.
func TestMaxBytesOfSettlementsOfAmounts(t *testing.T) {
	const most = 4000
	clock := &hand{now: hour}
	s := New(clock.time, 1e9, most)
	call := callOf("a", 1e9, ruleOf(engine.Amounts, hour))
	expect(t, s, call, true)
	var err error
	for i := 0; err == nil && i < 2000; i++ {
		clock.now++
		call.Claims[0].Delta = 1
		err = s.Adjust(t.Context(), call)
	}
	if got := s.bound.bytes.Load(); !errors.Is(err, ErrFull) || got > most {
		t.Errorf("%d bytes are taken of %d, error %v", got, most, err)
	}
	requireWhole(t, s)
}

// The bound on bytes also applies to what the first count of each rule takes.
func TestMaxBytesOfRules(t *testing.T) {
	const most = 10_000
	s := New((&hand{now: hour}).time, 1e9, most)
	var err error
	for i := 0; err == nil && i < 100; i++ {
		rule := ruleOf(engine.TokenBucket, hour)
		rule.Name = fmt.Sprint(i)
		_, err = s.Decide(t.Context(), callOf("a", 1, rule))
	}
	if got := s.bound.bytes.Load(); !errors.Is(err, ErrFull) || got > most || got < most-1000 {
		t.Errorf("%d bytes are taken of %d, error %v", got, most, err)
	}
	requireWhole(t, s)
}

// The bound on bytes also applies to a state that grows after its first call.
func TestMaxBytesOfOneSubject(t *testing.T) {
	for _, kind := range []engine.Kind{engine.SlidingWindow, engine.Distinct} {
		const most = 1 << 20
		s := New((&hand{now: hour}).time, 1e9, most)
		call := callOf("a", 1e9, ruleOf(kind, hour))
		var err error
		n := 0
		for ; err == nil && n < most; n++ {
			call.Claims[0].Member = fmt.Sprint(n)
			_, err = s.Decide(t.Context(), call)
		}
		if !errors.Is(err, ErrFull) || s.bound.bytes.Load() > most || n < 5000 {
			t.Errorf("kind %d: after %d calls %d bytes, error %v", kind, n, s.bound.bytes.Load(), err)
		}
		peek := *call
		peek.Peek = true
		if v, err := s.Decide(t.Context(), &peek); err != nil || !v.Admitted || peek.Claims[0].Room != int64(1e9-n+1) {
			t.Errorf("kind %d: the peek after says %+v, %+v, error %v", kind, v, peek, err)
		}
		requireWhole(t, s)
	}
}

// Blocks and raised limits do not make a full store take more than its bytes, and do not fail.
func TestMaxBytesOfWhatKnownSubjectsAdd(t *testing.T) {
	const most = 4 << 20
	raise := func(call *engine.Call) { call.Claims[0].Limit, call.Claims[0].Burst = 2, 2 }
	for name, c := range map[string]struct {
		kind   engine.Kind
		block  int64
		change func(*engine.Call)
	}{
		"blocked buckets":      {engine.TokenBucket, hour, func(*engine.Call) {}},
		"blocked windows":      {engine.FixedWindow, hour, func(*engine.Call) {}},
		"raised buckets":       {engine.TokenBucket, 0, raise},
		"raised prepaid":       {engine.Prepaid, 0, raise},
		"raised, then blocked": {engine.TokenBucket, hour, func(call *engine.Call) { raise(call); call.Claims[0].Cost = 2 }},
		"windows ahead":        {engine.FixedWindow, 0, func(call *engine.Call) { call.Claims[0].Wait = 2 * hour }},
	} {
		t.Run(name, func(t *testing.T) {
			before := heap()
			s := New((&hand{now: hour}).time, 1e9, most)
			rule := ruleOf(c.kind, hour)
			rule.Block = c.block
			kept := 0
			for err := error(nil); err == nil; kept++ {
				_, err = s.Decide(t.Context(), callOf(subject(kept), 1, rule))
			}
			for i := range kept - 1 {
				call := callOf(subject(i), 1, rule)
				c.change(call)
				if _, err := s.Decide(t.Context(), call); err != nil {
					t.Fatalf("known subject %d: error %v", i, err)
				}
			}
			got, taken := s.bound.bytes.Load(), heap()-before
			t.Logf("%d keys: %d bytes are counted, %d taken", kept, got, taken)
			if got > most || 4*taken > 5*most {
				t.Errorf("%d bytes are counted and %d taken of %d", got, taken, most)
			}
			requireWhole(t, s)
		})
	}
}

// A full store keeps no more free places: the places that are given up stay charged until their time is over.
func TestMaxBytesOfFreePlaces(t *testing.T) {
	for _, kind := range []engine.Kind{engine.TokenBucket, engine.SlidingWindow} {
		const most, waiting, kept = 12_000, 800, 64 // calls; free places, at least
		s := New((&hand{now: hour}).time, 1e9, most)
		calls := make([]*engine.Call, waiting)
		for i := range calls {
			calls[i] = callOf("a", 1, ruleOf(kind, 1000))
			calls[i].Claims[0].Wait = hour
			expect(t, s, calls[i], true)
		}
		for i := 0; i < waiting; i += 2 {
			calls[i].Undo()
			if err := s.Adjust(t.Context(), calls[i]); err != nil || calls[i].Claims[0].Delta != 0 {
				t.Fatalf("%s: call %d gives up: error %v, %+v", kind, i, err, calls[i].Claims[0])
			}
		}
		if got := s.bound.bytes.Load(); got > most+groupBytes {
			t.Errorf("%s: %d bytes are taken of %d", kind, got, most)
		}
		again := callOf("a", 1, ruleOf(kind, 1000))
		again.Claims[0].Wait = hour
		for range kept {
			if v := expect(t, s, again, true); v.At >= calls[waiting-1].Claims[0].At {
				t.Errorf("%s: a call waits until %d, although there are free places", kind, v.At)
			}
		}
		requireWhole(t, s)
	}
}

// Subjects that call only once do not fill the memory.
func TestOneShotSubjects(t *testing.T) {
	clock := &hand{now: hour}
	const live = 1000 // at a time
	s := New(clock.time, 1e6, 1<<30)
	call := callOf("", 1, ruleOf(engine.FixedWindow, live))
	most := int64(0)
	for i := range 100_000 {
		call.Claims[0].Subject = subject(i)
		if v, err := s.Decide(t.Context(), call); err != nil || !v.Admitted {
			t.Fatal(v, err)
		}
		most = max(most, s.bound.keys.Load())
		clock.now++
	}
	t.Logf("at most %d of %d live keys were kept", most, live)
	if most > 3*live/2 {
		t.Errorf("%d keys were kept at a time; expected about %d", most, live)
	}
	requireWhole(t, s)
}

// Calls of one subject free the expired states of all others.
func TestExpiryFrees(t *testing.T) {
	clock := &hand{now: hour}
	before := heap()
	s := New(clock.time, 1e9, 1<<40)
	const keys = 50_000
	call := callOf("", 1e9, ruleOf(engine.TokenBucket, 1e12))
	for i := range keys {
		call.Claims[0].Subject = subject(i)
		if _, err := s.Decide(t.Context(), call); err != nil {
			t.Fatal(err)
		}
	}
	full := heap() - before
	clock.now += 1e12
	for range keys {
		if _, err := s.Decide(t.Context(), call); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.bound.keys.Load(); n != 1 {
		t.Errorf("%d keys are left; expected 1", n)
	}
	left := heap() - before
	t.Logf("%d bytes, then %d", full, left)
	if left > full/10 {
		t.Errorf("%d bytes of %d are left", left, full)
	}
	requireWhole(t, s)
}

// What a settlement adds replaces counts that do not matter any more, as what a call adds does.
func TestSettlementFrees(t *testing.T) {
	clock := &hand{now: hour}
	s := New(clock.time, 1000, 30_000)
	live := callOf("live", 1000, ruleOf(engine.SlidingWindow, hour))
	if v, err := s.Decide(t.Context(), live); err != nil || !v.Admitted {
		t.Fatalf("got %+v, error %v", v, err)
	}
	short := callOf("", 1, ruleOf(engine.FixedWindow, 1000))
	short.Claims[0].Rule.Name = "short"
	for i, err := 0, error(nil); err == nil; i++ {
		short.Claims[0].Subject = subject(i)
		_, err = s.Decide(t.Context(), short)
	}
	for _, full := range []bool{true, false} {
		live.Claims[0].Delta = 500
		if err := s.Adjust(t.Context(), live); errors.Is(err, ErrFull) != full || full != (live.Claims[0].Delta == 500) {
			t.Errorf("full: %t; got %v, %+v", full, err, live.Claims[0])
		}
		clock.now += 1000
	}
}

// A full store looks at no count for a new key while none can have expired. As soon as one has, it finds that.
func TestFullStoreSweepsNothingInVain(t *testing.T) {
	clock := &hand{now: hour}
	const keys = 5000
	s := New(clock.time, keys, 1<<40)
	call := callOf("", 1, ruleOf(engine.FixedWindow, hour))
	for i := range keys {
		clock.now++
		call.Claims[0].Subject = subject(i)
		expect(t, s, call, true)
	}
	looked := func() (n int) {
		for i := range s.shards {
			n += s.shards[i].cursor
		}
		return n
	}
	for i := range 2000 {
		call.Claims[0].Subject = subject(keys + i)
		expectFull(t, s, call)
	}
	if n := looked(); n > 0 {
		t.Errorf("2000 new keys made it look at %d counts", n)
	}
	clock.now = 2*hour + 1
	for want := s.bound.keys.Load() - 1; s.bound.keys.Load() > want; {
		s.makeRoom(s.clock.now())
	}
	expect(t, s, call, true)
	call.Claims[0].Subject = "another"
	expectFull(t, s, call)
	requireWhole(t, s)
}

// Of two callers who reserve what is left at the same time, one gets it.
func TestReserveTogether(t *testing.T) {
	for range 50_000 {
		b := bound{maxKeys: 1, maxBytes: 1}
		var got, arrived atomic.Int64
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				for arrived.Add(1); arrived.Load() < 2; runtime.Gosched() { // so that neither is done before the other begins
				}
				if b.reserve(1, 1) {
					got.Add(1)
				}
			})
		}
		if both.Wait(); got.Load() != 1 || b.keys.Load() != 1 || b.bytes.Load() != 1 {
			t.Fatalf("%d callers reserved a key; expected 1", got.Load())
		}
	}
}

// A call that does not fit fails no other call meanwhile.
func TestReserveFailsNobodyElse(t *testing.T) {
	b := &bound{maxKeys: 2, maxBytes: 2}
	b.count(1, 1)
	var others sync.WaitGroup
	stop := make(chan struct{})
	for _, n := range [][2]int64{{2, 0}, {0, 2}} {
		others.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					if b.reserve(n[0], n[1]) {
						t.Error("reserved more than there is")
					}
				}
			}
		})
	}
	for range 100_000 {
		if !b.reserve(1, 1) {
			t.Error("found no room for the last key")
			break
		}
		b.count(-1, -1)
	}
	close(stop)
	others.Wait()
}
