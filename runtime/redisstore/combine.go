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
// meanwhile form the next batch, and one of them sends that for all.
type queue struct {
	mu      sync.Mutex
	sending int      // batches
	waiting []*batch // oldest first
}

// batch is requests that are sent together.
type batch struct {
	requests []*request
	permits  int64
	since    time.Time     // the arrival of its first request
	leaders  int           // callers who can send it
	started  bool          // guarded by the queue's mu, like all above
	lead     chan struct{} // makes the caller who receives from it send the batch
	done     chan struct{} // closed when all requests are answered

	mu       sync.Mutex // held while the calls of the requests are read or written
	answered bool
}

// do brings a request to its server. If ctx ends meanwhile, it returns at once, and what the request is charged is undone. A caller
// who is just sending stays until the reply or the time-out; so it does not send itself if its deadline is before that.
func (n *node) do(ctx context.Context, r *request) error {
	deadline, ok := ctx.Deadline()
	leads := !ok || time.Until(deadline) > n.store.timeout
	n.mu.Lock()
	if r.back != nil {
		n.enqueue(&request{call: r.back, adjust: true}, false)
		r.back = nil
	}
	most := maxSending
	if r.asked {
		most = 1
	}
	free := n.sending < most && len(n.waiting) == 0
	if free && leads {
		n.sending++
		n.mu.Unlock()
		n.sendBatch(ctx, &batch{requests: []*request{r}, since: time.Now()})
		return n.finish(ctx, r)
	}
	b := n.enqueue(r, leads)
	if free || !r.asked {
		n.start()
	}
	n.mu.Unlock()
	var lead chan struct{}
	if leads {
		lead = b.lead
	}
	select {
	case <-b.done:
	case <-lead:
		n.sendBatch(ctx, b)
	case <-ctx.Done():
		return n.leave(ctx, b, r, leads)
	}
	return n.finish(ctx, r)
}

// enqueue adds a request to the last batch that has room for it. The queue is locked.
func (n *node) enqueue(r *request, leads bool) *batch {
	permits := r.permits()
	var b *batch
	if last := len(n.waiting) - 1; last >= 0 {
		b = n.waiting[last]
	}
	if b == nil || len(b.requests) == maxCalls || b.permits > 0 && b.permits+permits > maxPermits {
		b = &batch{since: time.Now(), lead: make(chan struct{}, 1), done: make(chan struct{})}
		n.waiting = append(n.waiting, b)
	}
	b.requests = append(b.requests, r)
	b.permits += permits
	if leads {
		b.leaders++
	}
	return b
}

// start sends the next batch if there is one and not too many are on the way. The queue is locked.
func (n *node) start() {
	if len(n.waiting) == 0 || n.sending == maxSending {
		return
	}
	b := n.waiting[0]
	n.waiting = slices.Delete(n.waiting, 0, 1)
	n.sending++
	b.started = true
	if b.leaders > 0 {
		b.lead <- struct{}{}
	} else {
		go n.sendBatch(context.Background(), b)
	}
}

// sendBatch sends a batch, answers its requests, and starts the next batch.
func (n *node) sendBatch(ctx context.Context, b *batch) {
	m := n.store.refusals
	b.mu.Lock()
	runs := n.pack(slices.DeleteFunc(slices.Clone(b.requests), func(r *request) bool { return b.done != nil && r.recalled(m) }))
	b.mu.Unlock()
	sent, changes := clock(), m.changes.Load()
	n.sendRuns(ctx, b.since.Add(n.store.timeout), runs)
	b.mu.Lock()
	for _, r := range runs {
		r.unpack()
		r.note(n.store, sent, changes)
	}
	b.answered = true
	b.mu.Unlock()

	for _, r := range b.requests {
		if r.left {
			n.undo(r)
		}
	}
	n.mu.Lock()
	n.sending--
	n.start()
	n.mu.Unlock()
	if b.done != nil {
		close(b.done)
	}
}

// finish returns the error of a request that was answered. It is the end of ctx if that came first.
func (n *node) finish(ctx context.Context, r *request) error {
	if r.err != nil || r.adjust || ctx.Err() == nil {
		return r.err
	}
	r.call = clone(r.call)
	n.undo(r)
	return ctx.Err()
}

// leave takes a caller whose context ended out of a batch.
func (n *node) leave(ctx context.Context, b *batch, r *request, leads bool) error {
	n.mu.Lock()
	if !b.started {
		b.requests = slices.DeleteFunc(b.requests, func(other *request) bool { return other == r })
		b.permits -= r.permits()
		if leads {
			b.leaders--
		}
		if len(b.requests) == 0 {
			n.waiting = slices.DeleteFunc(n.waiting, func(other *batch) bool { return other == b })
		}
		n.mu.Unlock()
		return ctx.Err()
	}
	n.mu.Unlock()
	select {
	case <-b.lead: // nobody else may be there to take it
		go n.sendBatch(context.WithoutCancel(ctx), b)
	default:
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	r.call = clone(r.call) // the caller may use its own again
	if b.answered {
		n.undo(r)
	} else {
		r.left = true
	}
	return ctx.Err()
}

// undo gives back what an answered request was charged whose caller does not wait for it any more.
func (n *node) undo(r *request) {
	if r.err != nil || r.adjust || !r.verdict.Admitted || r.call.Peek {
		return
	}
	r.call.Rollback = true
	for i := range r.call.Claims {
		r.call.Claims[i].Delta = -r.call.Claims[i].Charged
	}
	n.mu.Lock()
	n.enqueue(&request{call: r.call, adjust: true}, false)
	n.start()
	n.mu.Unlock()
}

func clone(call *engine.Call) *engine.Call {
	own := *call
	own.Claims = slices.Clone(call.Claims)
	return &own
}

// errAgain is the error of a request that is to be sent again, since others took what it could have had.
var errAgain = errors.New("other calls took the permits first, again and again")
