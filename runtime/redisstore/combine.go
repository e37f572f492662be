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
	maxFlying  = 2   // runs on the way to one server: the other one goes on if a connection hangs
	maxCalls   = 256 // of one run
	maxPermits = 512 // that sliding windows write for one run; a call that takes more goes alone
)

// lane is the way to one server. A caller who finds it free sends at once, in its own goroutine. Those who come meanwhile form the
// next run, and one of them sends that for all.
type lane struct {
	mu      sync.Mutex
	flying  int
	waiting []*run // oldest first
}

// run is requests that are sent together.
type run struct {
	requests []*request
	permits  int64
	since    time.Time     // the arrival of its first request
	leaders  int           // callers who can send it
	started  bool          // guarded by the lane's mu, like all above
	lead     chan struct{} // makes the caller who receives from it send the run
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
		n.join(&request{call: r.back, adjust: true}, false)
		r.back = nil
	}
	free := n.flying < maxFlying && len(n.waiting) == 0
	if free && leads {
		n.flying++
		n.mu.Unlock()
		n.fly(ctx, &run{requests: []*request{r}, since: time.Now()})
		return n.landed(ctx, r)
	}
	q := n.join(r, leads)
	n.start()
	n.mu.Unlock()
	var lead chan struct{}
	if leads {
		lead = q.lead
	}
	select {
	case <-q.done:
	case <-lead:
		n.fly(ctx, q)
	case <-ctx.Done():
		return n.leave(ctx, q, r, leads)
	}
	return n.landed(ctx, r)
}

// join adds a request to the last run that has room for it. The lane is locked.
func (n *node) join(r *request, leads bool) *run {
	permits := r.permits()
	var q *run
	if last := len(n.waiting) - 1; last >= 0 {
		q = n.waiting[last]
	}
	if q == nil || len(q.requests) == maxCalls || q.permits > 0 && q.permits+permits > maxPermits {
		q = &run{since: time.Now(), lead: make(chan struct{}, 1), done: make(chan struct{})}
		n.waiting = append(n.waiting, q)
	}
	q.requests = append(q.requests, r)
	q.permits += permits
	if leads {
		q.leaders++
	}
	return q
}

// start sends the next run as soon as there is one and the lane is free. The lane is locked.
func (n *node) start() {
	if len(n.waiting) == 0 || n.flying == maxFlying {
		return
	}
	q := n.waiting[0]
	n.waiting = slices.Delete(n.waiting, 0, 1)
	n.flying++
	q.started = true
	if q.leaders > 0 {
		q.lead <- struct{}{}
	} else {
		go n.fly(context.Background(), q)
	}
}

// fly sends a run, gives the lane to the next one, and answers the requests.
func (n *node) fly(ctx context.Context, q *run) {
	m := n.store.refusals
	q.mu.Lock()
	f := n.pack(slices.DeleteFunc(slices.Clone(q.requests), func(r *request) bool { return q.done != nil && r.recalled(m) }))
	q.mu.Unlock()
	sent, changes := time.Now(), m.changes.Load()
	n.send(ctx, q.since.Add(n.store.timeout), f.parts)
	q.mu.Lock()
	n.unpack(f)
	f.note(m, sent, changes)
	q.answered = true
	q.mu.Unlock()

	for _, r := range q.requests {
		if r.left {
			n.undo(r)
		}
	}
	n.mu.Lock()
	n.flying--
	n.start()
	n.mu.Unlock()
	if q.done != nil {
		close(q.done)
	}
}

// landed returns the error of a request that was answered. It is the end of ctx if that came first.
func (n *node) landed(ctx context.Context, r *request) error {
	if r.err != nil || r.adjust || ctx.Err() == nil {
		return r.err
	}
	r.call = clone(r.call)
	n.undo(r)
	return ctx.Err()
}

// leave takes a caller out of a run whose context ended.
func (n *node) leave(ctx context.Context, q *run, r *request, leads bool) error {
	n.mu.Lock()
	if !q.started {
		q.requests = slices.DeleteFunc(q.requests, func(other *request) bool { return other == r })
		q.permits -= r.permits()
		if leads {
			q.leaders--
		}
		if len(q.requests) == 0 {
			n.waiting = slices.DeleteFunc(n.waiting, func(other *run) bool { return other == q })
		}
		n.mu.Unlock()
		return ctx.Err()
	}
	n.mu.Unlock()
	select {
	case <-q.lead: // nobody else may be there to take it
		go n.fly(context.WithoutCancel(ctx), q)
	default:
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	r.call = clone(r.call) // the caller may use its own again
	if q.answered {
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
	n.join(&request{call: r.call, adjust: true}, false)
	n.start()
	n.mu.Unlock()
}

func clone(call *engine.Call) *engine.Call {
	own := *call
	own.Claims = slices.Clone(call.Claims)
	return &own
}

// errAgain is the error of a request that is to be sent again, since others took what it could have had.
var errAgain = errors.New("other calls are faster, again and again")
