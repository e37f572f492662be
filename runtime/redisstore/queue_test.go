package redisstore

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/redistest"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/internal/breaker"
)

var combinable = []*engine.Rule{
	{Name: "sliding", Tag: "1h", Kind: engine.SlidingWindow, Per: 3600 * second},
	{Name: "fixed", Tag: "1h", Kind: engine.FixedWindow, Per: 3600 * second},
	{Name: "bucket", Tag: "1d", Kind: engine.TokenBucket, Per: 24 * 3600 * second}, // a permit comes back after minutes
	{Name: "counter", Tag: "1h", Kind: engine.SlidingCounter, Per: 3600 * second, Slices: 6},
}

var (
	blocking = &engine.Rule{Name: "blocking", Tag: "1h", Kind: engine.FixedWindow, Per: 3600 * second, Block: 60 * second}
	prepaid  = &engine.Rule{Name: "prepaid", Tag: "1h", Kind: engine.Prepaid, Per: 3600 * second}
)

// together decides calls in one batch, and returns their errors.
func together(t rapid.TB, s *store, calls []*engine.Call) []*request {
	n, err := s.node(context.Background(), "")
	if err != nil {
		t.Fatal(err)
	}
	b := &batch{ctx: context.Background(), until: time.Now().Add(time.Minute)}
	for _, call := range calls {
		b.requests = append(b.requests, &request{call: call})
	}
	n.mu.Lock()
	n.sending++
	n.mu.Unlock()
	n.sendBatch(b)
	return b.requests
}

// Calls in one run get the same answers as calls one after the other. Of equal calls the first to arrive are admitted, and the others ask again.
func TestRunLikeOneByOne(t *testing.T) {
	t.Parallel()
	s, server := open(t)
	rapid.Check(t, func(t *rapid.T) {
		server.Do("FLUSHDB")
		m, rules := make(model), rapid.Permutation(combinable).Draw(t, "rules")[:rapid.IntRange(1, 4).Draw(t, "n")]
		var calls, want []*engine.Call
		for range rapid.IntRange(1, 20).Draw(t, "calls") {
			call := of(rules[0], 5, rapid.SampledFrom([]string{"a", "b"}).Draw(t, "subject"))
			for _, r := range rules[1:] {
				call.Claims = append(call.Claims, of(r, 5, "c").Claims...)
			}
			call.Report = rapid.Bool().Draw(t, "report")
			call.Claims[0].Cost = rapid.SampledFrom([]int64{1, 1, 1, 2}).Draw(t, "cost")
			drawWhatIsNotJoined(t, &call)
			calls, want = append(calls, &call), append(want, call.Clone())
		}
		decided := together(t, s, calls)
		for _, p := range join(asked(want)) { // in the order in which the script decides
			for _, r := range p.requests {
				checkAnswer(t, m, decided[indexOf(want, r.call)], r.call)
			}
		}
	})
}

// drawWhatIsNotJoined makes a call, now and then, one that the script decides by itself.
func drawWhatIsNotJoined(t *rapid.T, call *engine.Call) {
	c := &call.Claims[0]
	switch rapid.IntRange(0, 24).Draw(t, "kind of call") {
	case 0:
		call.Peek = true
	case 1:
		call.Refused = true
	case 2:
		c.Mode = engine.Shadow
	case 3:
		c.Mode = engine.Trigger
	case 4:
		call.UpTo = true
		for i := range call.Claims {
			call.Claims[i].Cost = 2
		}
	case 5:
		*c = of(blocking, 2, c.Subject).Claims[0]
	case 6:
		*c = of(prepaid, 2, c.Subject).Claims[0]
	case 7:
		if c.Rule.Kind.Accepts("wait") && len(call.Claims) == 1 {
			c.Wait = 1800 * second
		}
	}
}

func asked(calls []*engine.Call) (requests []*request) {
	for _, call := range calls {
		requests = append(requests, &request{call: call})
	}
	return requests
}

func indexOf(calls []*engine.Call, call *engine.Call) int {
	for i, c := range calls {
		if c == call {
			return i
		}
	}
	return -1
}

func checkAnswer(t *rapid.T, m model, got *request, want *engine.Call) {
	if got.err == errAgain {
		peek := want.Clone()
		peek.Peek = true
		if v := peek.Decide(m.cells(peek), start(t, m)); v.Admitted {
			t.Fatalf("%+v asks again, but would be admitted", want)
		}
		return
	}
	if got.err != nil {
		t.Fatal(got.err)
	}
	m["now"] = &engine.Cell{Rare: &engine.Rare{Until: got.verdict.Now}}
	if w := want.Decide(m.cells(want), got.verdict.Now); got.verdict != w {
		t.Fatalf("got %+v, want %+v of %+v", got.verdict, w, want)
	}
	for i, c := range want.Claims {
		g := got.call.Claims[i]
		if g.Charged != c.Charged || g.At != c.At || g.Refused != c.Refused || want.Report && (g.Room != c.Room || g.Full < c.Full) {
			t.Fatalf("got %+v, want %+v", g, c)
		}
	}
}

func start(t *rapid.T, m model) int64 {
	if m["now"] == nil {
		t.Fatal("nobody was admitted before")
	}
	return m["now"].Rare.Until
}

// Only plain calls that are equal and take one permit of each rule are decided as one.
func TestWhatIsJoined(t *testing.T) {
	three := func() (requests []*request) {
		for range 3 {
			call := of(minute, 5, "a", "b")
			requests = append(requests, &request{call: &call})
		}
		return requests
	}
	if n := len(join(three())); n != 1 {
		t.Errorf("three equal calls are sent as %d", n)
	}
	for name, change := range map[string]func(r *request, call *engine.Call){
		"an adjustment": func(r *request, _ *engine.Call) { r.adjust = true },
		"solo":          func(r *request, _ *engine.Call) { r.solo = true },
		"peek":          func(_ *request, call *engine.Call) { call.Peek = true },
		"up to":         func(_ *request, call *engine.Call) { call.UpTo = true },
		"refused":       func(_ *request, call *engine.Call) { call.Refused = true },
		"lease":         func(_ *request, call *engine.Call) { call.Lease = 1 },
		"cost":          func(_ *request, call *engine.Call) { call.Claims[1].Cost = 2 },
		"wait":          func(_ *request, call *engine.Call) { call.Claims[1].Wait = 1 },
		"shadow":        func(_ *request, call *engine.Call) { call.Claims[1].Mode = engine.Shadow },
		"trigger":       func(_ *request, call *engine.Call) { call.Claims[1].Mode = engine.Trigger },
		"block":         func(_ *request, call *engine.Call) { call.Claims[1].Rule = blocking },
		"prepaid":       func(_ *request, call *engine.Call) { call.Claims[1].Rule = prepaid },
	} {
		requests := three()
		for _, r := range requests {
			change(r, r.call)
		}
		if n := len(join(requests)); n != 3 {
			t.Errorf("%s: three calls are sent as %d", name, n)
		}
	}
	for name, change := range map[string]func(*engine.Call){
		"subject": func(call *engine.Call) { call.Claims[1].Subject = "c" },
		"limit":   func(call *engine.Call) { call.Claims[0].Limit = 6 },
		"report":  func(call *engine.Call) { call.Report = true },
		"prefix":  func(call *engine.Call) { call.Prefix = "q" },
	} {
		requests := three()
		if change(requests[1].call); len(join(requests)) != 2 {
			t.Errorf("another %s: three calls are sent as %d", name, len(join(requests)))
		}
	}
}

// However many wait for a server, a batch has a bound on its weight. No more batches are made than that takes, and all requests keep their order.
func TestBatchesAreBounded(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	n, err := s.node(context.Background(), "a")
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		n.waiting = nil
		costs := rapid.SampledFrom([][]int64{{1}, {1, 1, 1, 1, 1, 1, 1, 1, 200, 10_000}}).Draw(t, "costs")
		rules := rapid.SampledFrom([][]*engine.Rule{combinable, combinable[1:], {running}, append(combinable, running)}).Draw(t, "rules")
		var all []*request
		for range rapid.IntRange(1, 1000).Draw(t, "requests") {
			call := of(rapid.SampledFrom(rules).Draw(t, "rule"), 1000, rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "subject"))
			call.Claims[0].Cost = rapid.SampledFrom(costs).Draw(t, "cost")
			r := &request{call: &call, adjust: rapid.Bool().Draw(t, "adjusts")}
			if r.adjust {
				call.Claims[0].Delta = rapid.SampledFrom([]int64{-5, 5}).Draw(t, "delta")
			}
			all = append(all, r)
			n.enqueue(context.Background(), r)
		}
		var got []*request
		for i, b := range n.waiting {
			if i > 0 && n.waiting[i-1].fits(b.requests[:1]) {
				t.Fatalf("a batch that weighs %d has room for more", n.waiting[i-1].weight)
			}
			if weight := new(batch).weighEach(b.requests); b.weight != weight || weight > maxWeight && len(b.requests) > 1 {
				t.Fatalf("a batch of %d requests weighs %d, and says %d", len(b.requests), weight, b.weight)
			}
			got = append(got, b.requests...)
		}
		if !slices.Equal(got, all) {
			t.Fatal("the requests are not those that came, in their order")
		}
	})
	n.waiting = nil
}

// weighEach returns the weight of a batch after some requests were added.
func (b *batch) weighEach(requests []*request) int64 {
	for i := range requests {
		b.add(requests[i : i+1])
	}
	return b.weight
}

// The weights are those that weight.go gives as examples.
func TestWeights(t *testing.T) {
	plain, running := of(combinable[0], 10_000, "a"), of(running, 1000, "a")
	refund, other, two := of(combinable[0], 10_000, "a"), of(running.Claims[0].Rule, 1000, "b"), of(combinable[0], 10_000, "a", "b")
	refund.Claims[0].Delta = -1
	waits, reports := of(combinable[0], 100, "a"), of(combinable[0], 100, "a")
	reports.Report = true
	waits.Claims[0].Wait = second
	for name, c := range map[string]struct {
		requests []*request
		most     int
	}{
		"plain":                         {asked([]*engine.Call{&plain}), 100},
		"two rules":                     {asked([]*engine.Call{&two}), 50},
		"with a report":                 {asked([]*engine.Call{&reports}), 50},
		"waiting":                       {asked([]*engine.Call{&waits}), 14},
		"refunds":                       {[]*request{{call: &refund, adjust: true}}, 3},
		"running, of one key":           {asked([]*engine.Call{&running}), 8},
		"pairs of running, of two keys": {asked([]*engine.Call{&running, &other}), 1},
	} {
		b, fit := new(batch), 0
		for ; b.fits(c.requests); fit++ {
			b.add(c.requests)
		}
		if fit != c.most {
			t.Errorf("%s: %d fit in a batch, want %d", name, fit, c.most)
		}
	}
}

// A lone caller sends its request itself. The first caller after a batch of several leaves that to a goroutine, so that the others join it.
func TestCrowdsSendTogether(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	n, err := s.node(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	for _, callers := range []int{1, 2, 1, 3} {
		calls := make([]*engine.Call, callers)
		for i := range calls {
			call := of(combinable[0], 1e6, fmt.Sprint(i))
			calls[i] = &call
		}
		together(t, s, calls)
		r := &request{call: calls[0], until: time.Now().Add(time.Minute)}
		b, alone := n.batchFor(t.Context(), r, true)
		if alone != (callers == 1) {
			t.Errorf("after a batch of %d, the next caller sends its request itself: %t", callers, alone)
		}
		if alone {
			n.sendBatch(b)
		} else {
			<-b.done
		}
		if r.err != nil || !r.verdict.Admitted {
			t.Errorf("the verdict is %+v, the error %v", r.verdict, r.err)
		}
	}
}

// A key of a foreign type fails only one of the calls in a batch.
func TestForeignKeyHarmsOneCall(t *testing.T) {
	t.Parallel()
	s, server := open(t)
	server.Do("RPUSH p:minute:{17}:1m x")
	for range 2 {
		var calls []*engine.Call
		for i := range maxWeight {
			call := of(minute, 2, fmt.Sprint(i))
			calls = append(calls, &call)
		}
		for i, r := range together(t, s, calls) {
			if failed := r.err != nil; failed != (i == 17) || !failed && !r.verdict.Admitted {
				t.Errorf("call %d: %+v, %v", i, r.verdict, r.err)
			}
		}
	}
}

// crowd makes calls from several goroutines at the same time, and returns how many were admitted and how many failed.
func crowd(s *store, callers, calls int, call func() (context.Context, *engine.Call)) (admitted, failed int64) {
	var yes, no atomic.Int64
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for range calls {
				ctx, c := call()
				switch v, err := s.Decide(ctx, c); {
				case err != nil:
					no.Add(1)
				case v.Admitted:
					yes.Add(1)
				}
			}
		})
	}
	all.Wait()
	return yes.Load(), no.Load()
}

// However many callers there are, exactly the limit is admitted.
func TestCrowd(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(testing.TB) *store{
		"server": func(t testing.TB) *store { s, _ := open(t); return s }, "cluster": openCluster, "ring": openRing,
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			for _, r := range combinable {
				var n atomic.Int64
				admitted, failed := crowd(s, 64, 50, func() (context.Context, *engine.Call) {
					call := of(r, 333, fmt.Sprint(n.Add(1)%4))
					call.Report = rand.N(2) == 0
					return context.Background(), &call
				})
				if admitted != 4*333 && r.Kind != engine.Calendar && 64*50/4 >= 333 {
					t.Errorf("%s: %d of %d were admitted, %d failed", r.Name, admitted, 4*333, failed)
				}
			}
		})
	}
}

// lasting are rules whose permits do not come back within a test.
var lasting = []*engine.Rule{combinable[0], combinable[1], combinable[3]}

// A caller whose context ends leaves at once, and is charged nothing.
func TestContextsThatEnd(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	ended := func() (context.Context, *engine.Call) {
		call := of(lasting[rand.N(len(lasting))], 1e6, "a")
		if rand.N(3) == 0 {
			return context.Background(), &call
		}
		ctx, cancel := context.WithCancel(context.Background())
		if rand.N(2) == 0 {
			ctx, cancel = context.WithTimeout(ctx, rand.N(2*time.Millisecond)) // too short for the caller to send its request itself
		}
		time.AfterFunc(rand.N(2*time.Millisecond), cancel)
		return ctx, &call
	}
	admitted, failed := crowd(s, 64, 100, ended)
	n, _ := s.node(context.Background(), "a")
	redistest.Eventually(t, "what is on the way", func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		return n.sending == 0 && len(n.waiting) == 0
	})
	used := int64(0)
	for _, r := range lasting {
		used += 1e6 - rooms(t, s, of(r, 1e6, "a"))[0]
	}
	if used != admitted || failed == 0 {
		t.Errorf("%d permits are used, %d calls were admitted, %d failed", used, admitted, failed)
	}
}

// If connections break in the middle of runs, each call is charged at most once.
func TestKilledConnections(t *testing.T) {
	t.Parallel()
	s, server := open(t)
	stop := keepKilling(server)
	admitted, failed := crowd(s, 100, 200, func() (context.Context, *engine.Call) {
		call := of(combinable[1], 1e6, "a")
		call.Claims[0].Cost = 1 + rand.N(int64(2)) // only calls of cost 1 are joined
		if call.Claims[0].Cost == 2 {
			call = of(combinable[0], 1e6, "a")
		}
		return context.Background(), &call
	})
	stop()
	used := int64(0)
	redistest.Eventually(t, "the server", func() bool {
		call := of(combinable[1], 1e6, "a")
		_, err := s.Decide(context.Background(), &call)
		if err == nil {
			used--
		}
		return err == nil
	})
	for _, r := range combinable[:2] {
		used += 1e6 - rooms(t, s, of(r, 1e6, "a"))[0]
	}
	if used < admitted || used > admitted+failed || failed == 0 {
		t.Errorf("%d permits are used, %d calls were admitted, %d failed", used, admitted, failed)
	}
}

// keepKilling breaks the connections of a server repeatedly, until stop is called.
func keepKilling(server *redistest.Server) (stop func()) {
	done := make(chan struct{})
	var killer sync.WaitGroup
	killer.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(2 * time.Millisecond):
				kill(server)
			}
		}
	})
	return func() {
		close(done)
		killer.Wait()
	}
}

func kill(server *redistest.Server) { server.Do("CLIENT KILL TYPE normal SKIPME yes") }

// A decision that was sent but not answered in time may have been charged. Its error must not say otherwise.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := New(connect(t, server.Addr), WithTimeout(time.Second)).(*store) // enough to send a request on a busy machine
	redistest.Eventually(t, "a decision", func() bool {
		call := of(minute, 9, "a")
		_, err := s.Decide(context.Background(), &call)
		return err == nil
	})
	server.Pause()
	defer server.Resume()
	call := of(minute, 9, "a")
	_, err := s.Decide(context.Background(), &call)
	if err == nil || untaken(err) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

// A batch whose callers have all left is not sent, and is no sign that the server was reached.
func TestBatchOfNobody(t *testing.T) {
	t.Parallel()
	s, server := open(t)
	n, err := s.node(context.Background(), "a")
	if err != nil {
		t.Fatal(err)
	}
	server.Stop()
	spared := false
	for range 10 {
		call := of(minute, 1, "a")
		_, err := s.Decide(context.Background(), &call)
		spared = spared || errors.As(err, new(breaker.Unsent))
		n.sending++
		n.sendBatch(&batch{ctx: context.Background(), until: time.Now().Add(time.Minute), requests: []*request{{call: &call, gone: true}}})
	}
	if !spared {
		t.Error("the server is asked again and again")
	}
}

// However large the cost of a call is that takes what there is, and that of a settlement, its request weighs no more than one that takes all
// permits of its rules.
func TestWeightOfManyPermits(t *testing.T) {
	call := of(combinable[0], 1000, "a", "b")
	call.UpTo = true
	for i := range call.Claims {
		call.Claims[i].Cost, call.Claims[i].Delta = math.MaxInt64, math.MaxInt64
	}
	for _, adjust := range []bool{false, true} {
		if got := new(batch).weigh([]*request{{call: &call, adjust: adjust}}); got != 2*(otherWeight+20) {
			t.Errorf("a request weighs %d, want %d; it adjusts: %t", got, 2*(otherWeight+20), adjust)
		}
	}
}

// What a call gives back first is in the same batch, before it, also if another batch had room for it.
func TestBackIsInTheSameBatch(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	n, err := s.node(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	earlier, call, back := of(combinable[0], 1e6, "a"), of(combinable[0], 1e6, "a"), of(combinable[0], 1e6, "a")
	call.Ahead, call.Back, back.Claims[0].Delta = 10_000, &back, -1
	n.mu.Lock()
	n.enqueue(t.Context(), &request{call: &earlier})
	n.sending = maxSending
	n.mu.Unlock()
	r := &request{call: &call}
	b, alone := n.batchFor(t.Context(), r, true)
	if alone || len(b.requests) != 2 || b.requests[0].call != &back || b.requests[1] != r {
		t.Errorf("the batch has %d requests", len(b.requests))
	}
	n.waiting, n.sending = nil, 0
}
