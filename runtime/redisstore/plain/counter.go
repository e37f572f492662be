package plain

import (
	"context"
	"errors"
	"math"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/runtime/internal/decide"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/internal/once"
)

// counter is a claim and where it is counted: in a string that holds one integer, which BITFIELD reads and writes. The
// expiry of the key is the end of a fixed window; a calendar window has a key of its own, which names its start.
type counter struct {
	*decide.Claim
	key         string
	start, stop int64 // of the calendar window

	counted once.Cmd   // replies: of BITFIELD,
	bounded *redis.Cmd // of PEXPIRE or PEXPIREAT,
	expiry  *redis.Cmd // and of PEXPIRETIME
	removed *redis.IntCmd
	used    int64 // what they said: the permits used by now,
	end     int64 // when the window ends,
	fits    bool  // and whether the claim fits, or did
}

const (
	millisecond = 1000
	integer     = "u63" // as BITFIELD calls it
)

// newCounter returns the counter of a claim in the window of a time.
func newCounter(call *decide.Call, c *decide.Claim, at int64) *counter {
	n := &counter{Claim: c}
	id := c.Rule.ID.Value()
	n.key = call.Prefix.Value() + ":" + id.Scope + ":{" + c.Subject + "}:plain:"
	if c.Rule.Kind == decide.Calendar {
		n.start, n.stop = c.Rule.Schedule.Window(at)
		n.key += strconv.FormatInt(n.start/1e6, 10) + ":"
	}
	n.key += id.Window
	return n
}

// holds reports whether the counter is that of a time.
func (n *counter) holds(t int64) bool {
	return n.Rule.Kind != decide.Calendar || n.start <= t && t < n.stop
}

// charge adds the cost if it fits, in one command: the first addition fails by overflow unless cost + used is at most the
// limit, and only after it succeeded the second one, which takes off again what was added beyond the cost, does not fail by
// underflow. A counter that was not there has been made, and gets its expiry, all in the same transaction.
func (n *counter) charge(ctx context.Context, p redis.Pipeliner) {
	args := []any{"bitfield", n.key, "overflow", "fail"}
	if n.Mode == decide.Trigger {
		args = append(args, "incrby", integer, 0, n.Cost)
	} else {
		beyond := math.MaxInt64 - n.Limit
		args = append(args, "incrby", integer, 0, beyond+n.Cost, "incrby", integer, 0, -beyond)
	}
	n.send(ctx, p, append(args, "get", integer, 0)...)
	n.bound(ctx, p)
}

// look reads the counter.
func (n *counter) look(ctx context.Context, p redis.Pipeliner) {
	n.bound(ctx, p)
	n.send(ctx, p, "bitfield_ro", n.key, "get", integer, 0)
}

// giveBack takes the cost off, after a look. A fixed window that holds nothing else is closed if its call was not made.
func (n *counter) giveBack(ctx context.Context, p redis.Pipeliner, undo bool) {
	numbers, _ := n.counted.Val().([]any)
	if undo && n.Rule.Kind == decide.Fixed && len(numbers) == 1 && numbers[0] == n.Cost {
		n.forget(ctx, p)
		return
	}
	n.send(ctx, p, "bitfield", n.key, "overflow", "fail", "incrby", integer, 0, -n.Cost)
}

// forget removes the counter.
func (n *counter) forget(ctx context.Context, p redis.Pipeliner) { n.removed = p.Del(ctx, n.key) }

func (n *counter) send(ctx context.Context, p redis.Pipeliner, args ...any) {
	n.counted = once.New(ctx, args...)
	_ = p.Process(ctx, n.counted) // queued only: it cannot fail yet
}

// bound gives a counter that has no expiry one, and asks for it. A key that is not there stays so.
func (n *counter) bound(ctx context.Context, p redis.Pipeliner) {
	if n.Rule.Kind == decide.Calendar {
		n.bounded = p.Do(ctx, "pexpireat", n.key, n.stop/millisecond, "nx")
	} else {
		n.bounded = p.Do(ctx, "pexpire", n.key, n.Rule.Per/millisecond, "nx")
	}
	n.expiry = p.Do(ctx, "pexpiretime", n.key)
}

var errReply = errors.New("unexpected reply of the server")

// read takes in the replies to look or charge.
func (n *counter) read(now int64) error {
	numbers, ok := n.counted.Val().([]any)
	expiry, known := n.expiry.Val().(int64)
	if !ok || !known || len(numbers) == 0 {
		return errReply
	}
	if n.used, ok = numbers[len(numbers)-1].(int64); !ok {
		return errReply
	}
	switch {
	case n.Rule.Kind == decide.Calendar:
		n.end = n.stop
	case expiry < 0: // there is no such key
		n.used, n.end = 0, now+n.Rule.Per
	default:
		n.end = (expiry + 1) * millisecond // the last millisecond belongs to the window
	}
	switch charged := len(numbers) > 1; {
	case n.Mode == decide.Trigger:
		n.fits = true
	case charged:
		n.fits = numbers[0] != nil
	default:
		n.fits = n.used+n.Cost <= n.Limit
	}
	return nil
}

// answer takes the replies into the claim and the verdict.
func (n *counter) answer(v *decide.Verdict) error {
	if err := n.read(v.Now); err != nil {
		return err
	}
	n.Charged, n.At, n.Earliest, n.Room, n.Fired = false, v.Now, 0, 0, 0
	if !n.fits {
		if n.Rule.Kind == decide.Fixed && v.Now >= n.end { // the clock was read after the window's end, the window before
			v.Now, v.At, n.At = n.end-1, n.end-1, n.end-1
		}
		n.Earliest, n.Room = max(n.end, v.Now+1), max(0, n.Limit-n.used)
		v.Admitted = v.Admitted && n.Mode == decide.Shadow
	}
	return nil
}

// date tells a call that opened a fixed window when that was: the server reads its clock for us, at now, a little later than for
// the window's end, perhaps in another millisecond, and the window would seem too short. Each window has a time of its own.
func (n *counter) date(v *decide.Verdict, now int64) {
	if opened, _ := n.bounded.Val().(int64); opened == 1 && n.Rule.Kind == decide.Fixed {
		n.At = min(n.end-n.Rule.Per, now)
		v.Now = min(v.Now, n.At)
		v.At = v.Now
	}
}

// trigger takes into the claim that its charge has reached a trigger's limit.
func (n *counter) trigger() {
	if n.Mode == decide.Trigger && n.used >= n.Limit && n.used-n.Cost < n.Limit {
		n.Fired = n.used
	}
}

// isOpen reports whether the window in which the claim was charged has not ended, after a look.
func (n *counter) isOpen() bool {
	expiry, ok := n.expiry.Val().(int64)
	return ok && expiry >= 0 && (n.Rule.Kind == decide.Calendar || n.At/millisecond >= expiry-n.Rule.Per/millisecond)
}
