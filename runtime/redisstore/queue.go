package redisstore

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
)

const (
	maxSending  = 2   // batches that are sent to one server at the same time: if one connection hangs, the other one still works
	maxRequests = 256 // requests of one batch, so also the most calls of one run
	maxPermits  = 512 // permits that sliding windows write for one batch; a call that takes more shares a batch only with earlier calls that write none
)

// queue holds the requests on their way to one server. A caller sends its request at once, in its own goroutine, if no other request waits and
// fewer than maxSending batches are being sent. The requests that arrive meanwhile form the next batch. So a single caller waits for nobody, and
// a crowd shares round trips: the more callers there are, the larger the batches. The callers of a batch wake together, and often call again.
// So the first caller after a batch of several does not send its request alone: a goroutine sends it together with those of the others.
//
// For example, a round trip takes 1 ms, and a batch is on its way on each of the two connections since 0 ms. Caller A comes at 0.2 ms and opens
// the next batch. Callers B and C come at 0.5 ms and 0.9 ms and join it. At 1 ms a reply arrives, and the batch goes: all three are decided by
// one run, in the order A, B, C. Equal calls become one, so a run of A and C may ask for "up to 2 of this". If only one permit is left, A has it,
// and C asks again. If the context of B ends, B returns at once, and its charge is given back after the reply.
type queue struct {
	mu       sync.Mutex
	sending  int      // batches that are being sent
	waiting  []*batch // oldest first
	starting int      // how many of these a goroutine is about to send
	crowd    bool     // the batch that was answered last had several requests
}

// batch holds requests that are sent together.
type batch struct {
	ctx      context.Context // of the caller of the first request
	until    time.Time       // when its time ends
	requests []*request
	permits  int64
	done     chan struct{} // closed when all requests are answered; nil if the caller sends the batch itself

	mu       sync.Mutex // held while the calls of the requests are read or written
	answered bool
}

// do sends a request to its server and waits for the reply, at most until the request's time ends. A caller may send its request itself. A caller
// whose deadline is sooner leaves the sending to a goroutine, and waits at most until ctx ends. The charge of a request whose caller has gone is
// given back later.
func (n *node) do(ctx context.Context, r *request) error {
	ownTime := r.until.IsZero() // it does not share the time of an earlier request
	if ownTime {
		r.until = time.Now().Add(n.store.Timeout)
	}
	deadline, ok := ctx.Deadline()
	b, own := n.batchFor(ctx, r, !ok || deadline.After(r.until))
	if own {
		n.sendBatch(b)
		return n.finish(ctx, b, r)
	}
	if !ownTime { // the time of the batch may end later
		late, cancel := context.WithDeadlineCause(ctx, r.until, n.store.Late(n.store.Timeout))
		defer cancel()
		ctx = late
	}
	select {
	case <-b.done:
	case <-ctx.Done():
	}
	return n.finish(ctx, b, r)
}

// batchFor puts a request into a batch. If the caller can stay and seems to be the only one, the request has a batch of its own, and the caller has
// to send it.
func (n *node) batchFor(ctx context.Context, r *request, canStay bool) (b *batch, own bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	most := maxSending
	if r.call.Asked { // another caller has just asked the same, and its reply may answer this one
		most = 1
	}
	free := n.sending < most && len(n.waiting) == 0
	if free && canStay && !n.crowd && r.call.Back == nil {
		n.sending++
		return &batch{ctx: ctx, until: r.until, requests: []*request{r}}, true
	}
	b = n.enqueue(ctx, r)
	if free || !r.call.Asked {
		n.start()
	}
	return b, false
}

// enqueue adds a request to the last batch, or to a new one if the last has no room for it. What the call gives back first comes before it, in
// the same batch, because batches may overtake one another. The queue must be locked.
func (n *node) enqueue(ctx context.Context, r *request) *batch {
	permits, requests := r.permits(), []*request{r}
	if back := r.call.Back; back != nil {
		requests, r.call.Back = []*request{{call: back, adjust: true}, r}, nil
	}
	var b *batch
	if last := len(n.waiting) - 1; last >= 0 {
		b = n.waiting[last]
	}
	if b == nil || len(b.requests)+len(requests) > maxRequests || b.permits > 0 && b.permits+permits > maxPermits {
		b = &batch{ctx: ctx, until: time.Now().Add(n.store.Timeout), done: make(chan struct{})}
		n.waiting = append(n.waiting, b)
	}
	b.requests = append(b.requests, requests...)
	b.permits += permits
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

// sendNext sends the next batch, after callers who are ready to run have joined it: the callers of a batch wake together, and often call again.
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
	sentAt := n.store.refusals.moment()
	if b.done == nil {
		n.sendRuns(b.ctx, b.until, runs)
	} else if err := n.store.Guard(func() { n.sendRuns(b.ctx, b.until, runs) }); err != nil {
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
	n.adjust(r.call)
}

// adjust sends an adjustment in the next batch. Nobody waits for it.
func (n *node) adjust(call *engine.Call) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.enqueue(context.Background(), &request{call: call, adjust: true})
	n.start()
}

// errAgain says that a request must be sent again, because other calls took its permits. After maxAsks tries it is the error of the call.
var errAgain = fmt.Errorf("gave up after %d tries: other calls took the permits each time", maxAsks)
