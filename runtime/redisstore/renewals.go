package redisstore

import (
	"context"
	"sync"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/engine"
)

// renewals are the permits of calls that run in this process: those of rules with Concurrency, which a generated wrapper gives back. They
// end after a while, so that those of a dead process come back. The beat of the fleet renews them. It also gives permits back as long as
// that has failed, and those of calls whose reply was lost, which may have been admitted.
//
// For example, per=1m. Caller A is admitted at 0 s, and its permits end at 60 s. At 20 s the beat renews them: they end at 80 s. Caller B
// asks at 21 s, and no reply comes. The next beat gives back what B may have taken. The beat after does so again, because the server may get B's
// call after the first.
type renewals struct {
	mu      sync.Mutex
	permits map[permit]*renewal
}

// permit identifies the permits that one call has of one rule.
type permit struct {
	prefix, name, tag, subject string
	id                         uint64
}

// renewal says what the beat does with the permits of a call.
type renewal struct {
	claim   engine.Claim
	since   time.Duration // when they were last written, or the call was over, by this process's clock
	backs   int           // how often they are to be given back; 0 while the call runs
	sending bool          // a renewal is on its way
}

const (
	backsOfLost   = 2   // how often permits are given back that a call without a reply may have taken
	renewAtOnce   = 100 // claims that are sent at the same time
	mostRenewed   = 60  // calls of one claim that renews their permits; beside 900 others that takes about 0.8 ms
	partsOfPeriod = 3   // permits are renewed when this part of their time has passed
)

func permitOf(prefix string, c *engine.Claim) permit {
	return permit{prefix, c.Rule.Name, c.Rule.Tag, c.Subject, c.ID}
}

// each calls do with each claim of a rule whose permits a call releases.
func (r *renewals) each(call *engine.Call, do func(p permit, c *engine.Claim)) {
	for i := range call.Claims {
		if c := &call.Claims[i]; c.Rule.Kind.Row().Releases {
			r.mu.Lock()
			do(permitOf(call.Prefix, c), c)
			r.mu.Unlock()
		}
	}
}

// noteDecision notes the permits that a decided call holds or may hold. sentAt is when the call was sent.
func (r *renewals) noteDecision(call *engine.Call, v engine.Verdict, err error, sentAt time.Duration) {
	lost := err != nil && !untaken(err)
	if call.Peek || err != nil && !lost {
		return
	}
	r.each(call, func(p permit, c *engine.Claim) {
		switch {
		case lost:
			r.permits[p] = &renewal{claim: *c, since: clock(), backs: backsOfLost}
		case v.Admitted && c.Renewed && c.Charged > 0:
			r.permits[p] = &renewal{claim: *c, since: sentAt}
		}
	})
}

// startGiveBack notes that calls are over whose permits are given back now.
func (r *renewals) startGiveBack(call *engine.Call) {
	r.each(call, func(p permit, c *engine.Claim) {
		h := r.permits[p]
		switch {
		case c.Delta >= 0:
		case h == nil:
			r.permits[p] = &renewal{claim: *c, since: clock(), backs: 1}
		case h.backs == 0:
			h.since, h.backs = clock(), 1
		}
	})
}

// endGiveBack notes that permits were given back. If a renewal is on its way, it notes nothing, because the renewal may write them again.
func (r *renewals) endGiveBack(call *engine.Call) {
	r.each(call, func(p permit, c *engine.Claim) {
		if h := r.permits[p]; h != nil && h.backs > 0 && !h.sending {
			if h.backs--; h.backs == 0 {
				delete(r.permits, p)
			}
		}
	})
}

// due returns the adjustments of a prefix that the beat has to send: those that renew permits, of all calls or of those whose time has come, and
// those that give permits back. For each key there are as few as possible: an adjustment has up to mostRenewed calls.
func (r *renewals) due(prefix string, all bool) (adjustments []*engine.Call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	type change struct {
		key   permit // without an ID
		delta int64
	}
	latest := make(map[change]*engine.Call)
	for p, h := range r.permits {
		life, passed, delta := time.Duration(h.claim.Rule.Per)*time.Microsecond, clock()-h.since, -h.claim.Cost
		switch {
		case p.prefix != prefix:
			continue
		case h.backs > 0 && passed > life+time.Second: // they have ended by themselves
			delete(r.permits, p)
			continue
		case h.backs > 0:
		case !all && passed < life/partsOfPeriod:
			continue
		default:
			delta, h.sending = h.claim.Cost, true
		}
		id := p.id
		p.id = 0
		call := latest[change{p, delta}]
		if call == nil || len(call.IDs) == mostRenewed {
			call = &engine.Call{Prefix: prefix, Claims: []engine.Claim{h.claim}}
			call.Claims[0].Delta = delta
			latest[change{p, delta}], adjustments = call, append(adjustments, call)
		}
		call.IDs = append(call.IDs, id)
	}
	return adjustments
}

// noteRenewal notes that the permits of calls were renewed or given back, or could not be. It returns the calls whose permits were renewed although
// they have ended meanwhile.
func (r *renewals) noteRenewal(call *engine.Call, renewed bool, sentAt time.Duration, err error) (over []uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := permitOf(call.Prefix, &call.Claims[0])
	for _, p.id = range call.IDs {
		h := r.permits[p]
		switch {
		case h == nil:
		case renewed && h.backs > 0:
			h.sending, over = false, append(over, p.id)
		case renewed:
			if h.sending = false; err == nil {
				h.since = sentAt
			}
		case err == nil:
			if h.backs--; h.backs == 0 {
				delete(r.permits, p)
			}
		}
	}
	return over
}

// renew renews the permits of a prefix that calls of this process hold, and gives back those that it could not give back before. If all is
// true, the store may have lost them.
func (s *store) renew(ctx context.Context, prefix string, all bool) {
	var sending sync.WaitGroup
	atOnce := make(chan struct{}, renewAtOnce)
	for _, call := range s.renewals.due(prefix, all) {
		atOnce <- struct{}{}
		sending.Go(func() {
			defer func() { <-atOnce }()
			_ = s.servers.Guard(func() { s.renewPermits(ctx, call) })
		})
	}
	sending.Wait()
}

// renewPermits renews the permits of calls or gives them back. If some of the calls are over meanwhile, it gives back what it has renewed.
func (s *store) renewPermits(ctx context.Context, call *engine.Call) {
	for delta := call.Claims[0].Delta; len(call.IDs) > 0; delta = -call.Claims[0].Cost {
		next := call.Clone() // its batch may go on without this one
		next.Claims[0].Delta = delta
		sentAt := clock()
		err := s.do(ctx, &request{call: next, adjust: true})
		call.IDs = s.renewals.noteRenewal(call, delta > 0, sentAt, err)
	}
}
