package redisstore

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/engine"
)

const maxSending = 2 // batches that are sent to one server at the same time: if one connection hangs, the other one still works

// queue holds the requests on their way to one server. A caller sends its request at once, in its own goroutine, if no other request waits and
// fewer than maxSending batches are being sent. The requests that arrive meanwhile form the next batch. So a single caller waits for nobody, and
// a crowd shares round trips: the more callers there are, the larger the batches. Callers who wake together often call again together. So after
// a batch of several requests a goroutine sends the next request, and others can join it.
//
// For example, a round trip takes 1 ms, and a batch is on its way on each of the two connections since 0 ms. Caller A comes at 0.2 ms and opens
// the next batch. Callers B and C come at 0.5 ms and 0.9 ms and join it. At 1 ms a reply arrives, and the batch goes: one run decides all three.
// If A and C ask the same, the run has one call for both, which asks for "up to 2 of this", and then the call of B. If only one permit is left,
// A has it, and C asks again. If the context of B ends, B returns at once. If the batch has not gone by then, it goes without B. Otherwise the
// charge of B is given back after the reply.
type queue struct {
	mu       sync.Mutex
	sending  int      // batches that are being sent, or that a goroutine is about to send
	waiting  []*batch // oldest first
	starting int      // how many of these, the first ones, goroutines are about to send
	crowd    bool     // the batch that was answered last had several requests
}

// request is a call on its way to its server, to be decided or adjusted.
type request struct {
	call   *engine.Call
	adjust bool
	asked  bool      // another caller has just asked the same: the request may wait for the answer to that caller before it is sent
	solo   bool      // it is not joined with equal requests
	until  time.Time // when the time of the whole decision ends; if zero, that time begins when the request enters the queue

	now     int64 // the server's time as it was estimated when the request was sent
	verdict engine.Verdict
	err     error
	gone    bool // the caller no longer waits for the answer
}

// batch holds requests that are sent together.
type batch struct {
	ctx      context.Context // of the caller of the first request
	until    time.Time       // when the time of the batch ends; a request that joins it later has what is left
	requests []*request
	weight   int64           // see weight.go
	states   map[uint64]bool // hashes of the large states that the requests read
	done     chan struct{}   // closed when all requests are answered; nil if the caller sends the batch itself

	mu       sync.Mutex // held while the calls of the requests are read or written
	answered bool
}

// do sends a request to its server and waits for the reply, at most until the request's time ends. A caller who sends its request itself waits
// for the reply even if ctx ends. Other callers wait at most until ctx ends. A caller whose deadline is before the end of the request's time
// leaves the sending to a goroutine. The charge of a request whose caller has gone is given back later.
func (n *node) do(ctx context.Context, r *request) error {
	startsTime := r.until.IsZero() // the time of the decision begins now
	if startsTime {
		r.until = time.Now().Add(n.store.servers.Timeout)
	}
	deadline, ok := ctx.Deadline()
	b, alone := n.batchFor(ctx, r, !ok || deadline.After(r.until))
	if alone {
		n.sendBatch(b)
		return n.finish(ctx, b, r)
	}
	if !startsTime { // the time of the batch may end later
		late, cancel := context.WithDeadlineCause(ctx, r.until, n.store.servers.Late(n.store.servers.Timeout))
		defer cancel()
		ctx = late
	}
	select {
	case <-b.done:
	case <-ctx.Done():
	}
	return n.finish(ctx, b, r)
}

// batchFor puts a request into a batch. If alone, the batch is only for this request, and the caller has to send it. That needs four things: a
// batch may be sent and no request waits; the last batch was no crowd; the caller outlasts the request's time; and the call has no Back.
// Otherwise a goroutine sends the batch.
func (n *node) batchFor(ctx context.Context, r *request, outlasts bool) (b *batch, alone bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	most := maxSending
	if r.asked { // another caller has just asked the same, and its reply may answer this one
		most = 1
	}
	free := n.sending < most && len(n.waiting) == 0
	if free && outlasts && !n.crowd && r.call.Back == nil {
		n.sending++
		return &batch{ctx: ctx, until: r.until, requests: []*request{r}}, true
	}
	b = n.enqueue(ctx, r)
	if free || !r.asked { // otherwise the request waits for the batch that is being sent: see end
		n.start()
	}
	return b, false
}

// enqueue adds a request to the last batch that waits, or to a new one if the last has no room for it. If the call has a Back, that adjustment
// comes before it in the same batch, because batches may overtake one another. The queue must be locked.
func (n *node) enqueue(ctx context.Context, r *request) *batch {
	requests := []*request{r}
	if back := r.call.Back; back != nil {
		requests, r.call.Back = []*request{{call: back, adjust: true}, r}, nil
	}
	var b *batch
	if last := len(n.waiting) - 1; last >= 0 {
		b = n.waiting[last]
	}
	if b == nil || !b.fits(requests) {
		b = &batch{ctx: ctx, until: time.Now().Add(n.store.servers.Timeout), done: make(chan struct{})}
		n.waiting = append(n.waiting, b)
	}
	b.add(requests)
	return b
}

// start starts to send the next batch if there is one and not too many are being sent. The queue must be locked.
func (n *node) start() {
	if len(n.waiting) > n.starting && n.sending < maxSending {
		n.sending++
		n.starting++
		go n.sendNext()
	}
}

// sendNext sends the next batch, after callers who are ready to run have joined it.
func (n *node) sendNext() {
	runtime.Gosched()
	n.mu.Lock()
	b := n.waiting[0]
	n.waiting = slices.Delete(n.waiting, 0, 1)
	n.starting--
	n.mu.Unlock()
	n.sendBatch(b)
}

// sendBatch sends a batch, answers its requests, and starts the next batch. If a hook of the client panics, the requests of a batch in the
// background fail. On the caller's own goroutine the panic goes on.
func (n *node) sendBatch(b *batch) {
	defer n.end(b)
	runs := n.runsOf(b)
	sentAt := n.store.answers.moment()
	if b.done == nil {
		n.sendRuns(b.ctx, b.until, runs)
	} else if err := n.store.servers.Guard(func() { n.sendRuns(b.ctx, b.until, runs) }); err != nil {
		for _, run := range runs {
			run.err = err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, run := range runs {
		run.answer(n.store, sentAt)
	}
	b.answered = true
	for _, r := range b.requests {
		if r.gone {
			n.undo(r)
		}
	}
}

// end starts the next batch, and wakes the callers who wait for this one.
func (n *node) end(b *batch) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.sending--
	n.crowd = len(b.requests) > 1
	n.start()
	if b.done != nil {
		close(b.done)
	}
}

// finish returns the error of an answered request. If ctx has ended, it makes sure that the charge of the request is given back. An adjustment
// goes on without its caller.
func (n *node) finish(ctx context.Context, b *batch, r *request) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.answered && (r.adjust || r.err != nil || ctx.Err() == nil) {
		return r.err
	}
	callersCall := r.call
	r.call = callersCall.Clone() // the batch goes on with a copy: the caller may reuse its call
	if r.adjust {
		return context.Cause(ctx)
	}
	r.gone = !b.answered
	if b.answered {
		n.undo(r)
	}
	for i := range callersCall.Claims {
		callersCall.Claims[i].Clear() // so that the caller does not give back what the batch gives back
	}
	return context.Cause(ctx)
}

// undo gives back the charge of an answered request whose caller no longer waits.
func (n *node) undo(r *request) {
	if r.err != nil || !r.verdict.Admitted || r.call.Peek {
		return
	}
	r.call.Undo()
	n.adjustLater(r.call)
}

// adjustLater puts an adjustment into the queue. No caller waits for it.
func (n *node) adjustLater(call *engine.Call) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.enqueue(context.Background(), &request{call: call, adjust: true})
	n.start()
}

// recalled answers a request from a remembered refusal, if there is one.
func (r *request) recalled(a *answers) (known bool) {
	if r.adjust {
		return false
	}
	if f := a.find(r.call); f != nil {
		r.verdict, known, _ = a.recall(r.call, f)
	}
	if known {
		r.err = nil
	}
	return known
}
