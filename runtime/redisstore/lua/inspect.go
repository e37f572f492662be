package lua

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
)

// Due is a number of permits for a future time.
type Due struct {
	In      time.Duration
	Permits int64
}

// count is the count at a key, with what is needed to read it: fields of the rule, and the server's time.
type count struct {
	client redis.Cmdable
	key    string
	period int64 // microseconds
	burst  int64 // of a bucket; 0 means its limit
	now    int64
}

// due maps each Lua file to the function that reads its pending permits. Some read those of the past, too.
var due = map[string]func(*count, context.Context) ([]Charge, error){
	"sliding_window": (*count).permits, "window": (*count).windows, "bucket": (*count).bucket, "amounts": (*count).amounts,
}

// counted returns the count at a key. A leaky bucket has a burst of 1.
func counted(client redis.Cmdable, state string, period time.Duration, burst int64, now time.Time) *count {
	parts, _ := key.Split(state)
	if kind, _ := engine.AlgorithmOf(parts.Tag); kind == engine.LeakyBucket {
		burst = 1
	}
	return &count{client, state, period.Microseconds(), burst, now.UnixMicro()}
}

// Places returns the permits that calls wait for in the count at a key, and the free places in it: permits that calls gave up while others
// waited behind them. The key's rule has the given period, and the given burst if that is not 0. It must not have distinct, prepay or warmup.
func Places(ctx context.Context, client redis.Cmdable, state string, period time.Duration, burst int64) (waiting, free []Due, err error) {
	parts, _ := key.Split(state)
	kind, _ := engine.AlgorithmOf(parts.Tag)
	read := due[fileOf(state)]
	if read == nil {
		return nil, nil, nil // no call waits
	}
	clock, err := client.Time(ctx).Result()
	if err != nil {
		return nil, nil, err
	}
	c := counted(client, state, period, burst, clock)
	charges, err := read(c, ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, charge := range charges {
		waiting = append(waiting, c.until(charge.At.UnixMicro(), charge.Permits)...)
	}
	free, err = c.free(ctx, kind)
	return waiting, free, err
}

// free returns the free places of the count, in the order of their times. An interval has the time of its last place.
func (c *count) free(ctx context.Context, kind engine.Kind) (found []Due, err error) {
	intervals, err := c.client.ZRange(ctx, key.FreeOf(c.key), 0, -1).Result()
	for _, i := range intervals {
		n := numbers(i, 4)
		if n == nil {
			return nil, err // the whole state counts as none
		}
		at, permits, limit := n[0], n[2], n[3]
		if kind.Row().IsBucket && limit > 0 {
			at -= engine.MulDiv(cmp.Or(c.burst, limit), c.period, limit)
		}
		found = append(found, c.until(at, permits)...)
	}
	return found, err
}

// fileOf returns the Lua file of the count at a key.
func fileOf(state string) string {
	parts, _ := key.Split(state)
	switch {
	case strings.HasPrefix(parts.Tag, "distinct:"):
		return engine.Distinct.Row().Lua
	case strings.HasPrefix(parts.Tag, engine.Amounts.Row().Tag):
		return engine.Amounts.Row().Lua
	}
	kind, _ := engine.AlgorithmOf(parts.Tag)
	return kind.Row().Lua
}

// AlgorithmOf returns how the count at a key counts, such as "fixed-window" or "distinct". It returns "" if the key is not that of a count.
func AlgorithmOf(state string) string {
	parts, ok := key.Split(state)
	switch {
	case !ok || parts.IsBlock:
		return ""
	case strings.HasPrefix(parts.Tag, "distinct:"):
		return engine.Distinct.String()
	}
	kind, _ := engine.AlgorithmOf(parts.Tag)
	return kind.String()
}

// until returns permits for a time, or nothing if the time has passed.
func (c *count) until(at, permits int64) []Due {
	if at <= c.now || permits == 0 {
		return nil
	}
	return []Due{{time.Duration(at-c.now) * time.Microsecond, permits}}
}

// maxDue bounds how many permits are returned.
const maxDue = 10_000

// windows reads the groups of three numbers that a window consists of. The first is the time at which calls are admitted, and the last is how many
// permits they take.
func (c *count) windows(ctx context.Context) (found []Charge, err error) {
	const size = 3
	state, err := c.state(ctx, 8*size, layout)
	for ; len(state) >= 8*size; state = state[8*size:] {
		n := numbers(state, size)
		if n == nil {
			return nil, err // the whole state counts as none
		}
		found = c.pending(found, n[0], n[size-1])
	}
	return found, err
}

func (c *count) bucket(ctx context.Context) (found []Charge, err error) {
	state, err := c.state(ctx, 32, bucketLayout)
	n := numbers(state, 4)
	if n == nil || n[3] == 0 {
		return nil, err
	}
	each := float64(c.period) / float64(n[3])
	last := float64(n[1]-c.now) + float64(n[2])/float64(n[3]) - float64(cmp.Or(c.burst, n[3]))*each // from now
	permits := min(math.Ceil(last/each), maxDue)
	for i := permits - 1; i >= 0; i-- {
		found = c.pending(found, c.now+int64(math.Ceil(last-i*each)), 1)
	}
	return found, nil
}

// pending adds permits for a time to come. Those of the past are not the times of calls.
func (c *count) pending(all []Charge, at, permits int64) []Charge {
	if at <= c.now || permits == 0 {
		return all
	}
	return append(all, Charge{At: time.UnixMicro(at), Permits: permits})
}

// state returns the value of the key, which consists of groups of the given number of bytes, and has a layout up to the newest one.
func (c *count) state(ctx context.Context, group int, newest byte) (string, error) {
	text, err := c.text(ctx)
	return current(text, group, newest), err
}

// text returns the value of the key, or "" if there is none.
func (c *count) text(ctx context.Context) (string, error) {
	text, err := c.client.Get(ctx, c.key).Result()
	if errors.Is(err, redis.Nil) {
		err = nil
	}
	return text, err
}

// BlockedUntil returns the time at which a block ends, in microseconds, or 0.
func BlockedUntil(state string) int64 {
	if n := numbers(current(state, 8, layout), 1); n != nil {
		return n[0]
	}
	return 0
}

const (
	layout       = 1 // LAYOUT of common.lua
	bucketLayout = 2 // NEWEST of bucket.lua
)

// current returns a state without its layout byte, like the function of this name in common.lua. The rest consists of groups of the given number of
// bytes. current returns "" if the state is damaged or has a later layout.
func current(state string, group int, newest byte) string {
	switch {
	case len(state)%group == 1 && layout <= state[0] && state[0] <= newest:
		return state[1:]
	case len(state)%group == 0:
		return state
	}
	return ""
}

// numbers returns the first n numbers of a state, or nil if there are numbers that no script writes.
func numbers(state string, n int) []int64 {
	if len(state) < 8*n {
		return nil
	}
	found := make([]int64, n)
	for i := range found {
		f := math.Float64frombits(binary.LittleEndian.Uint64([]byte(state[8*i:])))
		if !(f >= 0 && f < 1<<53 && f == math.Trunc(f)) {
			return nil
		}
		found[i] = int64(f)
	}
	return found
}
