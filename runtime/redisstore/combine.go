package redisstore

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
)

const (
	maxSending = 2   // batches on the way to one server: the other one goes on if a connection hangs
	maxCalls   = 256 // of one batch
	maxPermits = 512 // that sliding windows write for one batch; a call that takes more goes alone
)

// queue is the requests on their way to one server. A caller who finds it empty sends at once, in its own goroutine. Those who come
// meanwhile form the next batch.
type queue struct {
	mu      sync.Mutex
	sending int      // batches
	waiting []*batch // oldest first
}

// batch is requests that are sent together.
type batch struct {
	ctx      context.Context // of the caller of its first request
	since    time.Time       // the arrival of that request
	requests []*request
	permits  int64
	done     chan struct{} // closed when all requests are answered; nil if nobody waits for that

	mu       sync.Mutex // held while the calls of the requests are read or written
	answered bool
}

// do brings a request to its server. If ctx ends meanwhile, it returns at once, and what the request is charged is undone. A caller
// who sends by itself stays until the reply or the time-out, so it does not do that if its deadline is earlier.
func (n *node) do(ctx context.Context, r *request) error {
	deadline, ok := ctx.Deadline()
	canStay := !ok || time.Until(deadline) > n.store.Timeout
	n.mu.Lock()
	if r.back != nil {
		n.enqueue(ctx, &request{call: r.back, adjust: true})
		r.back = nil
	}
	most := maxSending
	if r.asked {
		most = 1
	}
	free := n.sending < most && len(n.waiting) == 0
	if free && canStay {
		n.sending++
		n.mu.Unlock()
		b := &batch{ctx: ctx, since: time.Now(), requests: []*request{r}}
		n.sendBatch(b)
		return n.finish(ctx, b, r)
	}
	b := n.enqueue(ctx, r)
	if free || !r.asked {
		n.start()
	}
	n.mu.Unlock()
	select {
	case <-b.done:
	case <-ctx.Done():
	}
	return n.finish(ctx, b, r)
}

// enqueue adds a request to the last batch if that has room for it, else to a new one. The queue is locked.
func (n *node) enqueue(ctx context.Context, r *request) *batch {
	permits := r.permits()
	var b *batch
	if last := len(n.waiting) - 1; last >= 0 {
		b = n.waiting[last]
	}
	if b == nil || len(b.requests) == maxCalls || b.permits > 0 && b.permits+permits > maxPermits {
		b = &batch{ctx: ctx, since: time.Now(), done: make(chan struct{})}
		n.waiting = append(n.waiting, b)
	}
	b.requests = append(b.requests, r)
	b.permits += permits
	return b
}

// start sends the next batch if there is one and not too many are on the way. The queue is locked.
func (n *node) start() {
	if len(n.waiting) > 0 && n.sending < maxSending {
		n.sending++
		go n.sendBatch(n.waiting[0])
		n.waiting = slices.Delete(n.waiting, 0, 1)
	}
}

// sendBatch sends a batch, answers its requests, and starts the next batch.
func (n *node) sendBatch(b *batch) {
	m := n.store.refusals
	b.mu.Lock()
	runs := n.pack(slices.DeleteFunc(slices.Clone(b.requests), func(r *request) bool { return r.left || b.done != nil && r.recalled(m) }))
	b.mu.Unlock()
	sent, changes := clock(), m.changes.Load()
	n.sendRuns(b.ctx, b.since.Add(n.store.Timeout), runs)
	b.mu.Lock()
	for _, r := range runs {
		r.unpack()
		r.note(n.store, sent, changes)
	}
	b.answered = true
	for _, r := range b.requests {
		if r.left {
			n.undo(r)
		}
	}
	b.mu.Unlock()

	n.mu.Lock()
	n.sending--
	n.start()
	n.mu.Unlock()
	if b.done != nil {
		close(b.done)
	}
}

// finish returns the error of an answered request. If ctx ended before, it takes the caller out of the batch.
func (n *node) finish(ctx context.Context, b *batch, r *request) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.answered && (r.err != nil || ctx.Err() == nil) {
		return r.err
	}
	r.call = clone(r.call) // the caller may use its own again
	if r.left = !b.answered; !r.left {
		n.undo(r)
	}
	return ctx.Err()
}

// undo gives back what an answered request was charged whose caller does not wait for it any more.
func (n *node) undo(r *request) {
	if r.err != nil || !r.verdict.Admitted || r.call.Peek {
		return
	}
	r.call.Rollback = true
	for i := range r.call.Claims {
		r.call.Claims[i].Delta = -r.call.Claims[i].Charged
	}
	n.adjust(r.call)
}

// adjust sends an adjustment in the next run. Nobody waits for it.
func (n *node) adjust(call *engine.Call) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.enqueue(context.Background(), &request{call: call, adjust: true})
	n.start()
}

func clone(call *engine.Call) *engine.Call {
	own := *call
	own.Claims = slices.Clone(call.Claims)
	return &own
}

// errAgain is the error of a request that is to be sent again, since others took what it could have had.
var errAgain = errors.New("other calls took the permits first, again and again")
