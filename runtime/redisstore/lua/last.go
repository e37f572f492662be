package lua

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/redis/go-redis/v9"
)

// Charge is a number of permits, or a member, that was admitted at a time.
type Charge struct {
	At      time.Time
	Permits int64
}

// last maps each Lua file to the function that reads the times of its newest permits, if its state has them.
var last = map[string]func(*count, context.Context, int64) ([]Charge, error){
	"sliding_window": (*count).lastPermits, "amounts": (*count).lastAmounts, "distinct": (*count).lastMembers,
}

// Last returns the newest n charges of the count at a key that are not for a future time, the newest last. It returns nothing for an algorithm
// whose state does not have them.
func Last(ctx context.Context, client redis.Cmdable, state string, n int64) ([]Charge, error) {
	read := last[fileOf(state)]
	if read == nil {
		return nil, nil
	}
	clock, err := client.Time(ctx).Result()
	if err != nil {
		return nil, err
	}
	c := &count{client: client, key: state, now: clock.UnixMicro()}
	found, err := read(c, ctx, n)
	return found[max(0, int64(len(found))-n):], err
}

// past adds a charge unless its time is to come.
func (c *count) past(all []Charge, at, permits int64) []Charge {
	if at > c.now || permits == 0 {
		return all
	}
	return append(all, Charge{time.UnixMicro(at), permits})
}

func (c *count) lastPermits(ctx context.Context, _ int64) (found []Charge, err error) {
	permits, err := c.client.LRange(ctx, c.key, -maxDue, -1).Result() // those for future times are the last
	for _, p := range permits {
		if n := numbers(p, 1); n != nil {
			found = c.past(found, n[0], 1)
		}
	}
	return found, err
}

func (c *count) lastMembers(ctx context.Context, n int64) (found []Charge, err error) {
	members, err := c.client.ZRangeWithScores(ctx, c.key, -n, -1).Result()
	for _, m := range members {
		found = c.past(found, int64(m.Score), 1)
	}
	return found, err
}

// The layout of amounts.lua.
const (
	amountsHead  = 39
	amountsBlock = 64
	amountsEntry = 12
)

func (c *count) lastAmounts(ctx context.Context, _ int64) (found []Charge, err error) {
	entries, err := c.amounts(ctx)
	for _, e := range entries {
		found = c.past(found, e.At.UnixMicro(), e.Permits)
	}
	return found, err
}

// ofAmounts returns the permits of a sliding window of amounts that calls wait for.
func (c *count) ofAmounts(ctx context.Context) (found []Due, err error) {
	entries, err := c.amounts(ctx)
	for _, e := range entries {
		found = append(found, c.until(e.At.UnixMicro(), e.Permits)...)
	}
	return found, err
}

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
		if n := numbers(entry, 1); n != nil {
			found = append(found, Charge{time.UnixMicro(n[0]), int64(binary.LittleEndian.Uint32([]byte(entry[8:])))})
		}
	}
	return found, nil
}
