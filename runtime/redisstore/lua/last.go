package lua

import (
	"context"
	"encoding/binary"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
)

// Charge is a number of permits, or of members, that were admitted at a time. Calls wait for a time to come.
type Charge = engine.Charge

// last maps each Lua file to the function that reads when the newest permits were and will be taken, if its state has those times.
var last = map[string]func(*count, context.Context) ([]Charge, error){
	"sliding_window": (*count).permits, "amounts": (*count).amounts, "distinct": (*count).members,
}

// Last returns the newest n charges of the count at a key that are not for a future time, the newest last. It returns nothing for an algorithm
// whose state does not have them.
func Last(ctx context.Context, client redis.Cmdable, state string, n int64) ([]Charge, error) {
	read := last[fileOf(state)]
	if read == nil {
		return nil, nil
	}
	now, err := client.Time(ctx).Result()
	if err != nil {
		return nil, err
	}
	found, err := read(&count{client: client, key: state}, ctx)
	found = slices.DeleteFunc(found, func(c Charge) bool { return c.At.After(now) })
	return found[max(0, int64(len(found))-n):], err
}

// Charges returns when the newest permits of the count at a key were taken, and for when calls wait, by one command. now is the server's time. The
// rest is as for Places.
func Charges(ctx context.Context, client redis.Cmdable, state string, period time.Duration, burst int64, now time.Time) ([]Charge, error) {
	read := last[fileOf(state)]
	if read == nil {
		read = due[fileOf(state)]
	}
	if read == nil {
		return nil, nil
	}
	return read(counted(client, state, period, burst, now), ctx)
}

func (c *count) permits(ctx context.Context) (found []Charge, err error) {
	permits, err := c.client.LRange(ctx, c.key, -maxDue, -1).Result()
	for _, p := range permits {
		if n := numbers(p, 1); n != nil {
			found = append(found, Charge{At: time.UnixMicro(n[0]), Permits: 1})
		}
	}
	return found, err
}

func (c *count) members(ctx context.Context) (found []Charge, err error) {
	members, err := c.client.ZRangeWithScores(ctx, c.key, -maxDue, -1).Result()
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
		n, permits := numbers(entry, 1), int64(binary.LittleEndian.Uint32([]byte(entry[8:])))
		if n != nil && permits > 0 {
			found = append(found, Charge{At: time.UnixMicro(n[0]), Permits: permits})
		}
	}
	return found, nil
}
