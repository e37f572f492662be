package redisstore

import (
	"time"

	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/lua"
)

// freight is the requests of a run as they are sent.
type freight struct {
	parts  []*part
	loaded [][]parcel // of each part
}

// parcel is what the script takes for one call: that of a request, or one that stands for several equal ones.
type parcel struct {
	call     *engine.Call
	requests []*request
}

// pack puts the requests into as few scripts as can take them: one, or one a slot where subjects may be on different servers.
func (n *node) pack(requests []*request) freight {
	var f freight
	now, split := n.now(), n.store.split.Load()
	slots := make(map[string]int)
	for _, p := range merge(requests) {
		i := 0
		if split {
			subject, ok := p.call.Claims[0].Subject, false
			if i, ok = slots[subject]; !ok {
				i = len(slots)
				slots[subject] = i
			}
		}
		if i == len(f.parts) {
			f.parts, f.loaded = append(f.parts, new(part)), append(f.loaded, nil)
		}
		p.add(&f.parts[i].Run, now)
		f.loaded[i] = append(f.loaded[i], p)
	}
	return f
}

func (p *parcel) add(run *lua.Run, now int64) {
	if p.requests[0].adjust {
		run.AddAdjustment(p.call, now)
	} else {
		run.AddDecision(p.call, now)
	}
}

// unpack answers the requests.
func (n *node) unpack(f freight) {
	for i, part := range f.parts {
		replies, ok := []any{part.reply}, true
		if len(f.loaded[i]) > 1 && part.err == nil {
			replies, ok = part.reply.([]any)
			ok = ok && len(replies) == len(f.loaded[i])
		}
		for j := range f.loaded[i] {
			p, err, reply := &f.loaded[i][j], part.err, any(nil)
			if !ok {
				err = lua.ErrReply
			}
			if err == nil {
				reply = replies[j]
			}
			p.deliver(reply, err)
			if r := p.requests[0]; r.err == nil && r.verdict.Damaged {
				n.store.tellDamage()
			}
		}
	}
}

// deliver answers the requests of a parcel.
func (p *parcel) deliver(reply any, err error) {
	r := p.requests[0]
	if err == nil {
		r.err = nil
		if len(p.requests) == 1 {
			r.read(reply)
			return
		}
		var v engine.Verdict
		if v, err = lua.ReadDecision(reply, p.call); err == nil {
			p.share(v)
			return
		}
	}
	for _, r := range p.requests {
		r.err = err
	}
}

// note takes in which calls were refused, and which charges were changed.
func (f *freight) note(m *refusals, sent time.Time, changes int64) {
	for _, parcels := range f.loaded {
		for _, p := range parcels {
			switch r := p.requests[0]; {
			case r.adjust:
				m.forget(r.call)
			case r.err == nil && !r.verdict.Admitted:
				m.remember(r.call, r.verdict, sent, changes)
			}
		}
	}
}
