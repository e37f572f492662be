package lua

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
)

// What common.lua calls the flags of a call.
const (
	flagPeek     = 1
	flagReport   = 2
	flagUpTo     = 4
	flagRefused  = 8
	flagAdjust   = 16
	flagRollback = 32
	flagLease    = 64
)

// Which keys a claim has besides its state, as run.lua knows them.
const (
	hasFree  = 1
	hasBlock = 2
)

// Run is what the script is sent: calls as run.lua reads them.
type Run struct {
	Keys, Args []any // for EVALSHA or FCALL

	header []byte
}

// AddDecision adds a call to decide, with the calendar windows that hold now and those that the call may wait for.
func (r *Run) AddDecision(call *engine.Call, now int64) {
	until := now
	for i := range call.Claims {
		until = max(until, now+call.Claims[i].Wait)
	}
	r.add(call, decisionFlags(call), func(c *engine.Claim) sent {
		asked := *c
		if call.UpTo {
			asked.Cost = 1
		}
		return sent{Terms: asked.Terms(now, until), cost: asked.Cost, wait: c.Wait, free: c.Mode == engine.Enforce && until > now}
	})
}

func decisionFlags(call *engine.Call) (flags byte) {
	for _, f := range [...]struct {
		set  bool
		flag byte
	}{{call.Peek, flagPeek}, {call.Report, flagReport}, {call.UpTo, flagUpTo}, {call.Refused, flagRefused}, {call.Lease > 0, flagLease}} {
		if f.set {
			flags |= f.flag
		}
	}
	return flags
}

// AddAdjustment adds the claims of a call whose charge is to change. What was taken is of a lease for all claims, or for none.
func (r *Run) AddAdjustment(call *engine.Call, now int64) {
	flags, leased := byte(flagAdjust), call.Claims[0].Leased
	if call.Rollback {
		flags |= flagRollback
	}
	if leased {
		flags |= flagLease
	}
	r.add(call, flags, func(c *engine.Claim) sent {
		return sent{Terms: c.Terms(now, now), cost: c.Delta, wait: c.At, free: !leased}
	})
}

func (r *Run) add(call *engine.Call, flags byte, terms func(*engine.Claim) sent) {
	if r.Args == nil {
		r.Args = append(r.Args, nil) // the header
	}
	r.header = append(r.header, flags, byte(len(call.Claims)))
	switch {
	case flags&flagUpTo != 0:
		r.Args = append(r.Args, call.Claims[0].Cost)
	case flags&flagAdjust == 0 && flags&flagLease != 0:
		r.Args = append(r.Args, call.Ahead, call.Lease)
	}
	for i := range call.Claims {
		c := &call.Claims[i]
		t, has := terms(c), byte(0)
		r.Keys = append(r.Keys, key.State(call.Prefix, c.Rule.Name, c.Subject, c.Rule.Tag))
		if t.free {
			has |= hasFree
			r.Keys = append(r.Keys, key.Free(call.Prefix, c.Rule.Name, c.Subject, c.Rule.Tag))
		}
		if t.block = c.Rule.Block > 0 && flags&flagAdjust == 0; t.block {
			has |= hasBlock
			r.Keys = append(r.Keys, key.Block(call.Prefix, c.Rule.Name, c.Subject, c.Rule.Tag))
		}
		record := append(make([]byte, 0, 64), byte(c.Rule.Kind), byte(c.Mode), has)
		for _, n := range [...]int64{c.Limit, t.cost, t.A, t.B, t.wait} {
			record = binary.LittleEndian.AppendUint64(record, math.Float64bits(float64(n)))
		}
		r.Args = append(r.Args, append(append(record, t.Text...), 0))
		if t.block {
			r.Args = append(r.Args, c.Rule.Block)
		}
	}
	r.Args[0] = r.header
	if len(r.header) == 2 && flags == 0 {
		r.Args[0] = "" // one call without flags
	}
}

// sent is what a claim is sent as besides its kind, mode and limit.
type sent struct {
	engine.Terms
	cost, wait  int64
	free, block bool
}

// ErrReply is the error of a reply that no script of this version gives.
var ErrReply = errors.New("unexpected reply of the script")

// WindowsAt is the reply of a call that must tell the calendar windows which hold a time. Nothing was done.
type WindowsAt int64

func (WindowsAt) Error() string { return "the calendar windows are not those of the server's time" }

// ReadDecision takes in the script's reply to a decision. The error is a WindowsAt if the call is to be sent again.
func ReadDecision(reply any, call *engine.Call) (engine.Verdict, error) {
	for i := range call.Claims {
		call.Claims[i].Clear()
	}
	switch reply := reply.(type) {
	case redis.Error:
		return engine.Verdict{}, reply
	case int64:
		if reply <= 0 {
			return engine.Verdict{}, WindowsAt(-reply)
		}
		v := engine.Verdict{Now: reply, At: reply, Admitted: true}
		markCharged(call, v)
		return v, nil
	case string:
		return readReport(reply, call)
	default:
		return engine.Verdict{}, ErrReply
	}
}

// readReport reads what decide.lua calls a text.
func readReport(report string, call *engine.Call) (engine.Verdict, error) {
	head := 25
	if report != "" && report[0] == 0 {
		head = 9
	}
	if len(report) < head {
		return engine.Verdict{}, ErrReply
	}
	v := engine.Verdict{Now: number(report[1:])}
	if head == 25 {
		v.Admitted, v.At, v.Taken = report[0] == 1, number(report[9:]), number(report[17:])
	}
	for entries := report[head:]; entries != ""; {
		size := readEntry(entries, call)
		if size == 0 {
			return engine.Verdict{}, ErrReply
		}
		entries = entries[size:]
	}
	if v.Admitted && !call.Peek {
		markCharged(call, v)
	}
	return v, nil
}

// readEntry reads what one rule has to tell, and returns the size of that, or 0 if it is none.
func readEntry(entry string, call *engine.Call) int {
	if len(entry) < 2 || entry[1] < 1 || entry[1] > 5 || entry[0] < 1 || int(entry[0]) > len(call.Claims) {
		return 0
	}
	size := [...]int{1: 10, 2: 18, 3: 34, 4: 34, 5: 10}[entry[1]]
	if len(entry) < size {
		return 0
	}
	c := &call.Claims[entry[0]-1]
	switch entry[1] {
	case 1:
		c.Refused, c.Earliest = true, number(entry[2:])
	case 2:
		c.Extra, c.Stored = number(entry[2:]), number(entry[10:])
	case 5:
		c.Leased, c.At = true, number(entry[2:])
	default:
		c.Refused, c.Earliest, c.Room = entry[1] == 4, number(entry[2:]), number(entry[10:])
		c.Full, c.Fired = number(entry[18:]), number(entry[26:])
	}
	return size
}

// markCharged says of each claim of an admitted call what it was charged. Of a member that was known that is said as well; to give
// it back does nothing.
func markCharged(call *engine.Call, v engine.Verdict) {
	for i := range call.Claims {
		c := &call.Claims[i]
		if c.Refused {
			continue
		}
		c.Charged = c.Cost
		if call.UpTo || c.Leased {
			c.Charged = v.Taken
		}
		switch {
		case c.Leased: // it says when it is recorded
		case c.Mode == engine.Enforce:
			c.At = v.At
		default:
			c.At = v.Now
		}
	}
}

// number returns the number at the beginning of a report. What is beyond an int64 is cut, and what is not a number is 0.
func number(s string) int64 {
	f := math.Float64frombits(binary.LittleEndian.Uint64([]byte(s[:8])))
	if math.IsNaN(f) {
		return 0
	}
	return int64(min(max(f, -1<<62), 1<<62))
}
