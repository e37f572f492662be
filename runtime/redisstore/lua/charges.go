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

	"github.com/ratelimit-go/ratelimit/internal/backend"
	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/key"
)

// Charge is a number of permits, or of members, that were admitted at a time. Calls wait for a time to come.
type Charge = backend.Charge

// count is the count at a key, with what is needed to read it: fields of the rule, and the server's time.
type count struct {
	client redis.Cmdable
	key    string
	kind   engine.Kind
	period int64 // microseconds
	burst  int64 // of a bucket; 0 means its limit
	now    int64
}

func newCount(client redis.Cmdable, state string, period time.Duration, burst int64, now time.Time) *count {
	c := &count{client, state, kindOf(state), period.Microseconds(), burst, now.UnixMicro()}
	if c.kind == engine.LeakyBucket {
		c.burst = 1
	}
	return c
}

// readers maps each Lua file to the function that reads its charges. Of a window and of a bucket only those that calls wait for are known.
var readers = map[string]func(*count, context.Context) ([]Charge, error){
	"sliding_window": (*count).permits, "window": (*count).windows, "bucket": (*count).bucket, "amounts": (*count).amounts,
	"distinct": (*count).members,
}

// Charges returns when the newest permits of the count at a key were taken, and for when calls wait, by one command. It returns nothing for an
// algorithm whose state does not have these times. The key's rule has the given period, and the given burst if that is not 0. now is the
// server's time.
func Charges(ctx context.Context, client redis.Cmdable, state string, period time.Duration, burst int64, now time.Time) ([]Charge, error) {
	c := newCount(client, state, period, burst, now)
	if read := readers[c.kind.Row().Lua]; read != nil {
		return read(c, ctx)
	}
	return nil, nil
}

// Free returns the free places in the count at a key: permits that calls gave up while others waited after them, in the order of their times.
// An interval has the time of its last place. The rest is as for Charges.
func Free(ctx context.Context, client redis.Cmdable, state string, period time.Duration, burst int64, now time.Time) (found []Charge, err error) {
	c := newCount(client, state, period, burst, now)
	intervals, err := client.ZRange(ctx, key.FreeOf(state), 0, -1).Result()
	for _, i := range intervals {
		n := numbersIn(i, 4)
		if n == nil {
			return nil, err // the whole state counts as none
		}
		at, permits, limit := n[0], n[2], n[3]
		if c.kind.Row().IsBucket && limit > 0 {
			at -= engine.MulDiv(cmp.Or(c.burst, limit), c.period, limit)
		}
		found = c.pending(found, at, permits)
	}
	return found, err
}

// kindOf returns how the count at a key counts, or no kind if the key is not that of a count.
func kindOf(state string) engine.Kind {
	parts, ok := key.Split(state)
	switch {
	case !ok || parts.IsBlock:
		return 0
	case strings.HasPrefix(parts.Tag, "distinct:"):
		return engine.Distinct
	case strings.HasPrefix(parts.Tag, engine.Amounts.Row().Tag):
		return engine.Amounts
	}
	kind, _ := engine.AlgorithmOf(parts.Tag)
	return kind
}

// AlgorithmOf returns how the count at a key counts, such as "fixed-window" or "distinct". It returns "" if the key is not that of a count.
func AlgorithmOf(state string) string {
	kind := kindOf(state)
	if kind == engine.Amounts {
		kind = engine.SlidingWindow
	}
	return kind.String()
}

// maxRead bounds how many permits are returned.
const maxRead = 10_000

// windows reads the groups of three numbers that a window consists of. The first is the time at which calls are admitted, and the last is how many
// permits they take.
func (c *count) windows(ctx context.Context) (found []Charge, err error) {
	const size = 3
	state, err := c.state(ctx, 8*size, layout)
	for ; len(state) >= 8*size; state = state[8*size:] {
		n := numbersIn(state, size)
		if n == nil {
			return nil, err // the whole state counts as none
		}
		found = c.pending(found, n[0], n[size-1])
	}
	return found, err
}

func (c *count) bucket(ctx context.Context) (found []Charge, err error) {
	state, err := c.state(ctx, 32, bucketLayout)
	n := numbersIn(state, 4)
	if n == nil || n[3] == 0 {
		return nil, err
	}
	each := float64(c.period) / float64(n[3])
	last := float64(n[1]-c.now) + float64(n[2])/float64(n[3]) - float64(cmp.Or(c.burst, n[3]))*each // from now
	permits := min(math.Ceil(last/each), maxRead)
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

func (c *count) permits(ctx context.Context) (found []Charge, err error) {
	permits, err := c.client.LRange(ctx, c.key, -maxRead, -1).Result()
	for _, p := range permits {
		if n := numbersIn(p, 1); n != nil {
			found = append(found, Charge{At: time.UnixMicro(n[0]), Permits: 1})
		}
	}
	return found, err
}

func (c *count) members(ctx context.Context) (found []Charge, err error) {
	members, err := c.client.ZRangeWithScores(ctx, c.key, -maxRead, -1).Result()
	for _, m := range members {
		found = append(found, Charge{At: time.UnixMicro(int64(m.Score)), Permits: 1})
	}
	return found, err
}

// The layout of amounts.lua.
const (
	amountsHead  = 39
	amountsBlock = 64
	amountsEntry = 12
)

// amounts returns the entries of a sliding window of amounts, or nothing if the state is damaged.
func (c *count) amounts(ctx context.Context) (found []Charge, err error) {
	text, err := c.text(ctx)
	if err != nil || len(text) < amountsHead {
		return nil, err
	}
	field := func(i int) int { return int(binary.LittleEndian.Uint16([]byte(text[amountsHead-6+2*i:]))) }
	oldest, stop, fit := field(0), field(1), field(2)
	size := amountsHead + 8*((fit+amountsBlock-1)/amountsBlock) + amountsEntry*fit
	if oldest > stop || stop > fit || len(text) != size {
		return nil, nil
	}
	for i := oldest; i < stop; i++ {
		entry := text[size-amountsEntry*(fit-i):]
		n, permits := numbersIn(entry, 1), int64(binary.LittleEndian.Uint32([]byte(entry[8:])))
		if n != nil && permits > 0 {
			found = append(found, Charge{At: time.UnixMicro(n[0]), Permits: permits})
		}
	}
	return found, nil
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
	if n := numbersIn(current(state, 8, layout), 1); n != nil {
		return n[0]
	}
	return 0
}

const (
	bucketLayout = 2 // NEWEST of bucket.lua
)

// current returns a state without its layout byte, and accepts the same states as the function of this name in states.lua. The result consists of
// groups of the given number of bytes. It is "" if the state is damaged or has a later layout.
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
func numbersIn(state string, n int) []int64 {
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
