package plain

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/internal/servers"
)

// counter is a claim with the key of its count. The key holds one integer as a string of 8 bytes, which BITFIELD reads and writes. The key of a
// fixed window expires in the last millisecond of the window. The key of a calendar window contains the window's start. It expires a minute after
// the window, so that calls on their way at the window's end still find it.
//
// The key of an anchored window is the same for all windows, because an open window stays open when the anchor moves. After the count it has the
// window's start and end, as two more integers. It expires a minute after the window, too. Until then it is removed before the next window is opened.
type counter struct {
	*engine.Claim
	key   string
	start int64 // the start of a calendar or anchored window, microseconds
	end   int64 // the end of the window; of a fixed window, the replies say it
	from  int64 // the counter is for times from here to the end; it is before the start of an anchored window that the call opens or finds
	add   int64 // permits to charge
	most  int64 // the largest count after the charge

	present bool // an adjustment changes the present window, not that of the charge

	opening *redis.Cmd    // the reply to SET, if a window may have to be opened
	count   servers.Cmd   // the reply to BITFIELD or DEL
	length  *redis.IntCmd // of the value, in bytes
	expiry  *redis.Cmd    // of the key, in milliseconds

	used    int64 // permits used in the window
	exists  bool  // if the key was deleted, that there was one
	damaged bool  // the key holds something that no charge writes
	over    bool  // the key holds an anchored window that has ended
	charged bool
}

const (
	millisecond = 1000        // microseconds
	second      = 1_000_000   // microseconds
	after       = 60 * second // how long the count of a calendar window is kept after the window
	integer     = "u63"       // the type of the count in BITFIELD
	timeType    = "i64"       // the type of the start and the end of an anchored window
	zero        = "\x00\x00\x00\x00\x00\x00\x00\x00"
	mostUsed    = 1 << 52 // beyond this, permits are not counted
)

// newCounter returns the counter of a claim for the window at a time.
func newCounter(call *engine.Call, c *engine.Claim, at int64) *counter {
	n := &counter{Claim: c, add: c.Cost, most: c.Limit}
	switch {
	case c.Mode == engine.Trigger:
		n.most = mostUsed
	case c.Wait == engine.NeverFits:
		n.most = 0
	}
	tag := "plain:"
	switch c.Rule.Kind {
	case engine.Calendar:
		n.start, n.end = c.Bounds(at)
		n.from = n.start
		tag += strconv.FormatInt(n.start/second, 10) + ":"
	case engine.Anchored:
		n.from, n.end = c.Bounds(at)
		n.start = at
	}
	n.key = key.State(call.Prefix, c.Rule.Name, c.Subject, tag+c.Rule.Tag)
	return n
}

// holds reports whether a time is in the counter's window. A counter of a fixed window is for any time.
func (n *counter) holds(t int64) bool {
	return n.Rule.Kind == engine.FixedWindow || n.from <= t && t < n.end
}

// beginsEarly reports whether the anchored window that a charge opened, or would open, begins a minute or more before the server's time now. Another
// window may have ended since then, and refunds of its permits would count here. If it ended within that minute, its count was found.
func (n *counter) beginsEarly(now int64) bool {
	return n.Rule.Kind == engine.Anchored && n.from > 0 && n.start <= now-after
}

// size returns how many bytes the value has.
func (n *counter) size() int64 {
	if n.Rule.Kind == engine.Anchored {
		return 3 * int64(len(zero))
	}
	return int64(len(zero))
}

// look reads the count.
func (n *counter) look(ctx context.Context, p redis.Pipeliner) {
	n.opening = nil
	n.send(ctx, p, append([]any{"bitfield_ro", n.key}, n.gets()...)...)
}

// gets are the arguments of BITFIELD that read the value. The last one reads the count.
func (n *counter) gets() []any {
	count := []any{"get", integer, 0}
	if n.Rule.Kind == engine.Anchored {
		return append([]any{"get", timeType, 64, "get", timeType, 128}, count...)
	}
	return count
}

// charge adds the permits in one step, unless the count would exceed most. The first addition adds a surplus, so that it overflows if the permits
// do not fit. The second addition takes the surplus off again; it underflows if the first one failed. SET opens the window, with its expiry, if
// there is none. It changes no existing key, whatever its type.
func (n *counter) charge(ctx context.Context, p redis.Pipeliner) {
	if n.add > n.most {
		n.look(ctx, p)
		return
	}
	switch n.Rule.Kind {
	case engine.Calendar:
		n.opening = p.Do(ctx, "set", n.key, zero, "nx", "pxat", expiryOf(n.end))
	case engine.Anchored:
		value := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64([]byte(zero), uint64(n.start)), uint64(n.end))
		n.opening = p.Do(ctx, "set", n.key, value, "nx", "pxat", expiryOf(n.end))
	default:
		n.opening = p.Do(ctx, "set", n.key, zero, "nx", "px", n.Rule.Per/millisecond)
	}
	beyond := math.MaxInt64 - n.most
	n.send(ctx, p, append([]any{"bitfield", n.key, "overflow", "fail", "incrby", integer, 0, beyond + n.add, "incrby", integer, 0, -beyond}, n.gets()...)...)
}

// expiryOf returns when the key of a calendar or anchored window expires, in milliseconds.
func expiryOf(end int64) int64 { return (end + after) / millisecond }

// isOpened reports whether the charge opened the window.
func (n *counter) isOpened() bool { return n.opening != nil && n.opening.Err() == nil }

// giveBack subtracts permits from a count that was just read. The rollback of a call that opened a fixed or anchored window closes the window.
func (n *counter) giveBack(ctx context.Context, p redis.Pipeliner, permits int64, rollback bool) {
	if rollback && n.used <= permits && n.Rule.Kind != engine.Calendar && n.At == n.begin() {
		n.forget(ctx, p)
		return
	}
	n.send(ctx, p, "bitfield", n.key, "overflow", "fail", "incrby", integer, 0, -min(permits, n.used))
}

// forget removes the count.
func (n *counter) forget(ctx context.Context, p redis.Pipeliner) {
	n.count = servers.Cmd{Cmd: redis.NewCmd(ctx, "del", n.key)}
	_ = p.Process(ctx, n.count) // queued only: it cannot fail yet
}

func (n *counter) send(ctx context.Context, p redis.Pipeliner, args ...any) {
	n.count = servers.Cmd{Cmd: redis.NewCmd(ctx, args...)}
	_ = p.Process(ctx, n.count) // queued only: it cannot fail yet
	n.length = p.StrLen(ctx, n.key)
	n.expiry = p.Do(ctx, "pexpiretime", n.key)
}

var errReply = errors.New("unexpected reply of the server")

// read reads the replies, which were given at the server's time now. It treats a damaged count as empty.
func (n *counter) read(now int64) error {
	if deleted, ok := n.count.Val().(int64); ok {
		n.exists = deleted > 0
		return nil
	}
	numbers, ok := n.count.Val().([]any)
	expiry, known := n.expiry.Val().(int64)
	if !ok || !known || len(numbers) == 0 {
		return errReply
	}
	if n.used, ok = numbers[len(numbers)-1].(int64); !ok {
		return errReply
	}
	n.charged = n.opening != nil && numbers[0] != nil
	n.exists = expiry != -2
	n.damaged = n.exists && (expiry == -1 || n.length.Val() != n.size() || n.used > mostUsed)
	if n.Rule.Kind == engine.Anchored && n.exists && !n.damaged && len(numbers) > 2 { // otherwise permits were given back
		n.readWindow(numbers[len(numbers)-3:], expiry, now)
	}
	if !n.exists || n.damaged || n.over {
		n.used = 0
	}
	switch {
	case n.Rule.Kind != engine.FixedWindow:
	case expiry < 0:
		n.end = now + n.Rule.Per
	default:
		n.end = (expiry + 1) * millisecond // the millisecond of the expiry belongs to the window
	}
	return nil
}

// readWindow reads the start and the end of an anchored window. If it has ended, the counter stays for the window that a charge would open.
func (n *counter) readWindow(numbers []any, expiry, now int64) {
	start, _ := numbers[0].(int64)
	end, _ := numbers[1].(int64)
	switch {
	case start >= end || expiry != expiryOf(end):
		n.damaged = true
	case end <= now:
		n.over, n.charged = true, false
	case n.isOpened():
	default:
		n.start, n.end, n.from = start, end, 0
	}
}

// begin returns when a fixed or anchored window was opened; of a fixed window, that is a whole millisecond.
func (n *counter) begin() int64 {
	if n.Rule.Kind == engine.Anchored {
		return n.start
	}
	return n.end - millisecond - n.Rule.Per
}

// isOpen reports whether the count that was just read belongs to the window in which the claim was charged.
func (n *counter) isOpen() bool {
	return n.isCount() && (n.Rule.Kind == engine.Calendar || n.begin() <= n.At && n.At < n.end)
}

// isCount reports whether there is a count of a window that has not ended.
func (n *counter) isCount() bool { return n.exists && !n.damaged && !n.over }

// cell returns the window as it was before the charge, for a decision at the server's time now.
func (n *counter) cell(now int64) *engine.Cell {
	used := n.used
	if n.charged {
		used -= n.add
	}
	return engine.CellOfWindow(max(n.end, now+1), used)
}

// noteCharge sets what to charge after a decision. If the count was charged, it sets in the claim at what time.
func (n *counter) noteCharge(now int64) {
	n.add = n.Charged
	if n.charged {
		n.At = n.chargedAt(now)
	} else {
		n.Charged, n.At = 0, 0
	}
}

// chargedAt returns the time of a charge that was just made, which lies in the window as the replies describe it.
func (n *counter) chargedAt(now int64) int64 {
	switch {
	case n.Rule.Kind == engine.Calendar:
		return min(max(now, n.start), n.end-1)
	case n.isOpened():
		return n.begin() // giveBack takes this as the sign that the call opened the window
	}
	return min(max(now, n.begin()+1), n.end-1)
}
