package redisstore

import (
	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/lua"
)

// run holds the calls that one execution of the script decides. On a cluster, all are in one slot.
type run struct {
	lua.Run
	calls []runCall
	reply any
	err   error
}

// runCall is a call in a run: that of one request, or one that stands for several equal requests.
type runCall struct {
	call     *engine.Call
	requests []*request
}

// pack puts the requests into as few runs as possible: one, or one for each slot if subjects may be on different servers.
func (n *node) pack(requests []*request) []*run {
	var runs []*run
	now, split := n.now(), n.store.Split.Load()
	bySubject := make(map[string]*run)
	for _, j := range join(requests) {
		subject := ""
		if split {
			subject = j.call.Claims[0].Subject
		}
		r := bySubject[subject]
		if r == nil {
			r = new(run)
			bySubject[subject], runs = r, append(runs, r)
		}
		r.add(j, now)
	}
	return runs
}

func (r *run) add(j runCall, now int64) {
	if j.requests[0].adjust {
		r.AddAdjustment(j.call, now)
	} else {
		r.AddDecision(j.call, now)
	}
	r.calls = append(r.calls, j)
}

// unpack answers the requests of a run.
func (r *run) unpack() {
	replies, err := []any{r.reply}, r.err
	if len(r.calls) > 1 && err == nil {
		var ok bool
		if replies, ok = r.reply.([]any); !ok || len(replies) != len(r.calls) {
			err = lua.ErrReply
		}
	}
	for i := range r.calls {
		if j := &r.calls[i]; err != nil {
			j.fail(err)
		} else {
			j.read(replies[i])
		}
	}
}

// read reads the script's reply into the requests of a call.
func (j *runCall) read(reply any) {
	switch r := j.requests[0]; {
	case r.adjust:
		r.verdict, r.err = lua.ReadAdjustment(reply, r.call)
	case len(j.requests) == 1:
		r.verdict, r.err = lua.ReadDecision(reply, r.call)
	default:
		v, err := lua.ReadDecision(reply, j.call)
		if err != nil {
			j.fail(err)
			return
		}
		j.share(v)
	}
}

func (j *runCall) fail(err error) {
	for _, r := range j.requests {
		r.err = err
	}
}

// note notes which calls of a run were refused, which charges were changed, and whether states were damaged.
func (r *run) note(s *store, sentAt moment) {
	for _, j := range r.calls {
		first := j.requests[0]
		s.refusals.hear(first, sentAt)
		if first.err == nil && first.verdict.Damaged {
			s.TellDamage()
		}
	}
}
