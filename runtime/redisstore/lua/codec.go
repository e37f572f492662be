package lua

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/backend"
	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/key"
)

// The flags of a call. new_call in claims.lua reads them. The last bit means flagGrow in a decision, and flagGive in an adjustment.
const (
	flagPeek     = 1
	flagReport   = 2
	flagUpTo     = 4
	flagRefused  = 8
	flagAdjust   = 16
	flagRollback = 32
	flagLease    = 64
	flagGive     = 128
	flagGrow     = 128
)

// What a claim has: the keys besides its state, in their order, and the lease of its rule.
const (
	hasFree  = 1
	hasBlock = 2
	hasPause = 4
	hasLease = 8
)

// layout is the first byte of a state: see common.lua.
const layout = 1

// numbers are those of this file by their names in the script.
var numbers = map[string]int64{
	"FLAG_PEEK": flagPeek, "FLAG_REPORT": flagReport, "FLAG_UP_TO": flagUpTo, "FLAG_REFUSED": flagRefused,
	"FLAG_ADJUST": flagAdjust, "FLAG_ROLLBACK": flagRollback, "FLAG_LEASE": flagLease, "FLAG_GIVE": flagGive, "FLAG_GROW": flagGrow,

	"FREE": hasFree, "BLOCK": hasBlock, "PAUSE": hasPause, "LEASE": hasLease,

	"REFUSAL": entryRefusal, "PRICE": entryPrice, "QUOTA": entryQuota, "DAMAGE": entryDamage, "RECORDED": entryRecorded,
	"ADMITTED": entryAdmitted, "OTHER": entryOther, "BLOCKED": entryBlocked, "PAUSED": entryPaused, "DELAY": entryDelay,

	"LAYOUT": layout, "MOST_TOLD": mostTold,
}

// Run is one or more calls in the form in which the script is sent them. run.lua and claims.lua read it.
type Run struct {
	Keys, Args []any // for EVALSHA or FCALL
}

// AddDecision adds a call to decide. The call is sent with the calendar windows that hold now, and the windows that it may wait for.
func (r *Run) AddDecision(call *engine.Call, now int64) {
	until := waitsUntil(call, now)
	flags := bit(call.Peek, flagPeek) | bit(call.Report, flagReport) | bit(call.UpTo, flagUpTo) | bit(call.Refused, flagRefused) |
		bit(call.Lease > 0, flagLease) | bit(call.Grows, flagGrow)
	r.add(call, flags, func(c *engine.Claim) sent {
		if call.UpTo {
			one := *c
			one.Cost = 1
			c = &one
		}
		return sent{Terms: c.Terms(now, until), cost: c.Cost, wait: c.Wait, free: c.Mode == engine.Enforce && until > now}
	})
}

// waitsUntil returns until when a call that is decided now may wait.
func waitsUntil(call *engine.Call, now int64) int64 {
	until := now
	for i := range call.Claims {
		until = max(until, now+call.Claims[i].Wait)
	}
	return until
}

// SameWindows reports whether a call is sent the same calendar windows at two times.
func SameWindows(call *engine.Call, a, b int64) bool {
	untilA, untilB := waitsUntil(call, a), waitsUntil(call, b)
	for i := range call.Claims {
		c := &call.Claims[i]
		if !bytes.Equal(c.Terms(a, untilA).Text, c.Terms(b, untilB).Text) {
			return false
		}
	}
	return true
}

// bit returns b if it is set, and otherwise 0.
func bit(set bool, b byte) byte {
	if set {
		return b
	}
	return 0
}

// AddAdjustment adds an admitted call whose charges are to be changed by the Deltas of its claims, or another change.
func (r *Run) AddAdjustment(call *engine.Call, now int64) {
	flags := flagAdjust | bit(call.Rollback, flagRollback) | bit(call.Change == engine.Gives, flagGive)
	r.add(call, flags, func(c *engine.Claim) sent {
		if call.Change >= engine.Pauses {
			return sent{Terms: c.Terms(now, now), cost: c.Delta, wait: int64(bit(call.Change == engine.Repauses, 1))}
		}
		terms := c.Terms(now, now)
		if call.IDs != nil {
			terms.Text = engine.TextOf(call.IDs...)
		}
		return sent{Terms: terms, cost: c.Delta, wait: c.At, free: !c.Dated && call.Change == engine.Charges}
	})
}

// addLook adds a question for what people see of the count of a call's claim, of whose newest charges some have been told.
func (r *Run) addLook(call *engine.Call, now int64, told int) {
	r.add(call, flagPeek|flagAdjust, func(c *engine.Claim) sent {
		return sent{Terms: c.Terms(now, now), cost: c.Cost, wait: int64(told), free: true}
	})
}

func (r *Run) add(call *engine.Call, flags byte, terms func(*engine.Claim) sent) {
	claims, texts := append(make([]byte, 0, 1+64*len(call.Claims)), flags), []byte(nil)
	r.Keys = slices.Grow(r.Keys, len(call.Claims))
	for i := range call.Claims {
		c := &call.Claims[i]
		t, adjusts := terms(c), flags&(flagAdjust|flagPeek) == flagAdjust
		has := bit(t.free, hasFree) | bit(c.Rule.Block > 0 && !adjusts, hasBlock) |
			bit(c.Rule.Pausable && (!adjusts || call.Change >= engine.Pauses), hasPause) | bit(c.Rule.Lease > 0 && adjusts, hasLease)
		state := key.State(call.Prefix, c.Rule.Name, c.Subject, c.Rule.Tag)
		r.Keys = append(r.Keys, state)
		for i, of := range [...]func(state string) string{key.FreeOf, key.BlockOf, key.PauseOf} {
			if has&(1<<i) != 0 {
				r.Keys = append(r.Keys, of(state))
			}
		}
		claims = append(claims, byte(c.Rule.Kind), byte(c.Mode), has)
		claims = appendNumbers(claims, c.Limit, t.cost, t.A, t.B, t.wait)
		if c.Rule.Kind.Row().OwnText {
			texts, t.Text = append(append(texts, t.Text...), 0), nil
		}
		claims = append(append(claims, t.Text...), 0)
		if has&hasBlock != 0 {
			claims = appendNumbers(claims, c.Rule.Block, c.Rule.BlockMax)
		}
	}
	r.Args = append(r.Args, claims)
	var second []byte
	switch {
	case flags&flagUpTo != 0:
		second = appendNumbers(nil, call.Claims[0].Cost)
	case flags&flagLease != 0:
		second = appendNumbers(nil, call.Ahead, call.Lease)
	}
	if second = append(second, texts...); second != nil {
		r.Args = append(r.Args, second)
	}
}

func appendNumbers(b []byte, numbers ...int64) []byte {
	for _, n := range numbers {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(float64(n)))
	}
	return b
}

// sent holds the terms of a claim, and the fields that depend on whether the call is decided or adjusted.
type sent struct {
	engine.Terms
	cost, wait int64
	free       bool // the script needs the claim's free places
}

// ErrReply is the error for a reply that the script of this version never gives.
var ErrReply = errors.New("unexpected reply of the script")

// WindowsAt is the reply to a call that was sent with the wrong calendar windows. The call must be sent again, with the windows that hold
// at this time. Nothing was done.
type WindowsAt int64

func (WindowsAt) Error() string { return "the calendar windows are not those of the server's time" }

// Fault translates an error of the script. If the script could not read the value of a key, Fault returns an *backend.StateError.
func Fault(err error) error {
	if err == nil {
		return nil
	}
	if found := laterLayout.FindStringSubmatch(err.Error()); found != nil {
		return &backend.StateError{Found: fmt.Sprintf("state has layout %s; this program knows layout %s: update it", found[1], found[2]), Err: err}
	}
	if redis.HasErrorPrefix(err, "WRONGTYPE") {
		return &backend.StateError{Found: "the key of a count holds another type; delete the key, or choose another prefix: " + err.Error(), Err: err}
	}
	return err
}

// laterLayout matches the error of fail_later_layout in states.lua: the layout found, and the layout known.
var laterLayout = regexp.MustCompile(`later layout (\d+) (\d+)`)

// ReadDecision reads the script's reply to a decision, and sets the results in the claims, also what an admitted call was charged, and when.
// The error is a WindowsAt if the call must be sent again.
func ReadDecision(reply any, call *engine.Call) (engine.Verdict, error) {
	v, err := read(reply, call)
	if !v.Admitted || call.Peek {
		return v, err
	}
	for i := range call.Claims {
		c := &call.Claims[i]
		if known := c.Dated && c.At == 0; known || c.Refused { // a known member was charged nothing
			c.Dated = false
			continue
		}
		c.Charged = c.Cost
		if call.UpTo || call.Lease > 0 {
			c.Charged = v.Taken
		}
		switch {
		case c.Dated:
		case c.Mode == engine.Enforce:
			c.At = v.At
		default:
			c.At = v.Now
		}
	}
	return v, err
}

// ReadAdjustment reads the script's reply to an adjustment. The verdict has only its time, and whether a state is damaged. Each Delta
// becomes the number of permits that were not charged because the debt would last too long. The error is a WindowsAt if the call must be
// sent again.
func ReadAdjustment(reply any, call *engine.Call) (engine.Verdict, error) {
	answer := engine.Call{Claims: slices.Clone(call.Claims)}
	v, err := read(reply, &answer)
	for i := range call.Claims {
		if c, a := &call.Claims[i], &answer.Claims[i]; err == nil {
			switch {
			case a.Dated:
				c.At, c.Dated = a.At, true
			case c.Delta > 0:
				c.At, c.Dated = v.Now, false
			}
			c.Delta = c.Excess(c.Delta, a.Extra)
		}
	}
	return engine.Verdict{Now: v.Now, Finding: engine.Finding{Damaged: v.Damaged}}, err
}

// read reads a reply, and sets the results in the claims.
func read(reply any, call *engine.Call) (engine.Verdict, error) {
	for i := range call.Claims {
		call.Claims[i].Clear()
	}
	switch reply := reply.(type) {
	case redis.Error:
		return engine.Verdict{}, Fault(reply)
	case int64:
		if reply <= 0 {
			return engine.Verdict{}, WindowsAt(-reply)
		}
		return engine.Verdict{Now: reply, At: reply, Finding: engine.Finding{Admitted: true}}, nil
	case string:
		return readEntries(reply, call)
	}
	return engine.Verdict{}, ErrReply
}

// The kinds of entries in a reply. reply.lua describes them.
const (
	entryRefusal  = 1
	entryPrice    = 2
	entryQuota    = 3
	entryDamage   = 4
	entryRecorded = 5
	entryAdmitted = 6
	entryOther    = 7
	entryBlocked  = 8
	entryPaused   = 9
	entryDelay    = 10
)

// numbersOf is how many numbers an entry of each kind has: at most mostNumbers.
var numbersOf = [...]int{
	entryRefusal: 2, entryPrice: 2, entryQuota: 4, entryDamage: 0, entryRecorded: 1, entryAdmitted: 3, entryOther: 3, entryBlocked: 0, entryPaused: 1,
	entryDelay: 1,
}

const mostNumbers = 4

// readEntries reads a reply that is a list of entries.
func readEntries(entries string, call *engine.Call) (engine.Verdict, error) {
	var v engine.Verdict
	if entries == "" {
		return v, ErrReply
	}
	for entries != "" {
		size, ok := entrySize(entries, call)
		if !ok {
			return engine.Verdict{}, ErrReply
		}
		readEntry(entries[:size], call, &v)
		entries = entries[size:]
	}
	return v, nil
}

// entrySize returns the size of the first entry in bytes, and whether the entry is valid.
func entrySize(entries string, call *engine.Call) (size int, ok bool) {
	if len(entries) < 2 || int(entries[0]) > len(call.Claims) {
		return 0, false
	}
	kind := int(entries[1])
	if kind == 0 || kind >= len(numbersOf) || (entries[0] == 0) != (kind == entryAdmitted || kind == entryOther) {
		return 0, false
	}
	size = 2 + 8*numbersOf[kind]
	return size, len(entries) >= size
}

// readEntry reads an entry of a claim or of the call, and sets its results.
func readEntry(entry string, call *engine.Call, v *engine.Verdict) {
	var n [mostNumbers]int64
	for i := range numbersOf[entry[1]] {
		n[i] = number(entry[2+8*i:])
	}
	if entry[0] == 0 {
		v.Now, v.Admitted, v.At, v.Taken = n[0], entry[1] == entryAdmitted, n[1], n[2]
		return
	}
	switch c := &call.Claims[entry[0]-1]; entry[1] {
	case entryRefusal:
		v.Now, c.Refused = n[0], true
		if n[1] > n[0] { // otherwise it never admits the claim
			c.Earliest = n[1]
		}
	case entryPrice:
		c.Extra, c.Stored = n[0], n[1]
	case entryRecorded:
		c.Dated, c.At = true, n[0]
	case entryBlocked:
		c.Blocked = true
	case entryPaused:
		c.Paused = n[0]
	case entryDamage:
		v.Damaged = true
	case entryQuota:
		c.Room, c.Full, c.More, c.Fired = n[0], n[1], n[2], n[3]
	case entryDelay:
		c.Earliest = n[0]
	}
}

// number returns the number at the beginning of s. It limits numbers to ±2^62, and returns 0 for NaN.
func number(s string) int64 {
	f := math.Float64frombits(binary.LittleEndian.Uint64([]byte(s[:8])))
	if math.IsNaN(f) {
		return 0
	}
	return int64(min(max(f, -1<<62), 1<<62))
}
