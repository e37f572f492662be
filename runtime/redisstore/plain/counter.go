package plain

import (
	"context"
	"errors"
	"math"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/internal/once"
)

// counter is a claim and the key of its count: a string of 8 bytes that holds one integer, which BITFIELD reads and writes. The expiry
// of the key is the last millisecond of a fixed window. The key of a calendar window names the window's start, and expires a while
// after the window, so that a call on its way at the end finds the key.
type counter struct {
	*engine.Claim
	key         string
	start, stop int64 // of the calendar window, microseconds
	add         int64 // permits to charge
	most        int64 // what the count must not exceed by the charge

	opened, expiry *redis.Cmd // replies
	counted        once.Cmd
	length         *redis.IntCmd
	deleted        once.Cmd

	used    int64 // permits used in the window
	end     int64 // of the window, microseconds
	exists  bool
	damaged bool // the key holds something that no charge has left there
	charged bool
}

const (
	millisecond = 1000      // microseconds
	second      = 1_000_000 // microseconds
	after       = 60 * second
	integer     = "u63" // as BITFIELD calls it
	zero        = "\x00\x00\x00\x00\x00\x00\x00\x00"
	mostUsed    = 1 << 52 // from where on permits are not counted any more
)

// newCounter returns the counter of a claim in the window of a time.
func newCounter(call *engine.Call, c *engine.Claim, at int64) *counter {
	n := &counter{Claim: c, add: c.Cost, most: c.Limit}
	switch {
	case c.Mode == engine.Trigger:
		n.most = mostUsed
	case c.Wait == engine.Never:
		n.most = 0
	}
	tag := "plain:"
	if c.Rule.Kind == engine.Calendar {
		n.start, n.stop = c.Rule.Schedule.Window(at)
		tag += strconv.FormatInt(n.start/second, 10) + ":"
	}
	n.key = key.State(call.Prefix, c.Rule.Name, c.Subject, tag+c.Rule.Tag)
	return n
}

// holds reports whether the counter's window is the one of a time. That of a fixed window always is.
func (n *counter) holds(t int64) bool {
	return n.Rule.Kind != engine.Calendar || n.start <= t && t < n.stop
}

// look reads the count.
func (n *counter) look(ctx context.Context, p redis.Pipeliner) {
	n.opened = nil
	n.send(ctx, p, "bitfield_ro", n.key, "get", integer, 0)
}

// charge adds the permits if they fit, in one step: the first addition overflows unless used + add is at most most. The second one takes
// off what was added beyond the permits; it underflows unless the first one succeeded. SET opens the window, with its expiry, if
// there is none; it leaves alone what exists, whatever its type.
func (n *counter) charge(ctx context.Context, p redis.Pipeliner) {
	if n.add > n.most {
		n.look(ctx, p)
		return
	}
	if n.Rule.Kind == engine.Calendar {
		n.opened = p.Do(ctx, "set", n.key, zero, "nx", "pxat", (n.stop+after)/millisecond)
	} else {
		n.opened = p.Do(ctx, "set", n.key, zero, "nx", "px", n.Rule.Per/millisecond)
	}
	beyond := math.MaxInt64 - n.most
	n.send(ctx, p, "bitfield", n.key, "overflow", "fail", "incrby", integer, 0, beyond+n.add, "incrby", integer, 0, -beyond, "get", integer, 0)
}

// giveBack takes permits off a count that was just read. A rollback of the call that opened a fixed window closes the window.
func (n *counter) giveBack(ctx context.Context, p redis.Pipeliner, permits int64, rollback bool) {
	if rollback && n.used <= permits && n.Rule.Kind == engine.FixedWindow && n.At == n.begin() {
		n.forget(ctx, p)
		return
	}
	n.send(ctx, p, "bitfield", n.key, "overflow", "fail", "incrby", integer, 0, -min(permits, n.used))
}

// forget removes the count.
func (n *counter) forget(ctx context.Context, p redis.Pipeliner) {
	n.counted = once.Cmd{}
	n.deleted = once.New(ctx, "del", n.key)
	_ = p.Process(ctx, n.deleted) // queued only: it cannot fail yet
}

func (n *counter) send(ctx context.Context, p redis.Pipeliner, args ...any) {
	n.counted = once.New(ctx, args...)
	_ = p.Process(ctx, n.counted) // queued only: it cannot fail yet
	n.length = p.StrLen(ctx, n.key)
	n.expiry = p.Do(ctx, "pexpiretime", n.key)
}

var errReply = errors.New("unexpected reply of the server")

// read takes in the replies at the server's time. A count that is damaged reads as none.
func (n *counter) read(now int64) error {
	if n.counted.Cmd == nil { // it was removed
		return nil
	}
	numbers, ok := n.counted.Val().([]any)
	expiry, known := n.expiry.Val().(int64)
	if !ok || !known || len(numbers) == 0 {
		return errReply
	}
	if n.used, ok = numbers[len(numbers)-1].(int64); !ok {
		return errReply
	}
	n.charged = len(numbers) > 1 && numbers[0] != nil
	n.exists = expiry != -2
	n.damaged = n.exists && (expiry == -1 || n.length.Val() != int64(len(zero)) || n.used > mostUsed)
	if !n.exists || n.damaged {
		n.used = 0
	}
	switch {
	case n.Rule.Kind == engine.Calendar:
		n.end = n.stop
	case expiry < 0:
		n.end = now + n.Rule.Per
	default:
		n.end = (expiry + 1) * millisecond // the last millisecond belongs to the window
	}
	return nil
}

// begin returns when a fixed window opened, in whole milliseconds.
func (n *counter) begin() int64 { return n.end - millisecond - n.Rule.Per }

// isOpen reports whether the count, just read, is that of the window in which the claim was charged.
func (n *counter) isOpen() bool {
	return n.exists && !n.damaged && (n.Rule.Kind == engine.Calendar || n.begin() <= n.At && n.At < n.end)
}

// fill tells the claim what was read at the server's time, and whether it is refused.
func (n *counter) fill(now int64, refused bool) {
	c := n.Claim
	c.Clear()
	c.Refused, c.Earliest, c.Room, c.Full = refused, now, max(0, c.Limit-n.used), now
	if n.used > 0 {
		c.Full = max(n.end, now)
	}
	if refused {
		c.Earliest = max(n.end, now+1)
	}
	if !n.charged {
		return
	}
	c.Charged = n.add
	switch {
	case n.Rule.Kind == engine.Calendar:
		c.At = min(max(now, n.start), n.stop-1)
	case n.opened.Err() == nil:
		c.At = n.begin() // which says that this call opened the window
	default:
		c.At = min(max(now, n.begin()+1), n.end-1)
	}
	if c.Mode == engine.Trigger && n.used-n.add < c.Limit && c.Limit <= n.used {
		c.Fired = n.used
	}
}
