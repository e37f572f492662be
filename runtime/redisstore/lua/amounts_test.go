package lua

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/redistest"
)

// A sliding window of amounts holds thousands of entries in blocks, and joins entries beyond 2,048. The engine and the script agree on all
// answers, whatever is charged, given back, settled, leased or trimmed meanwhile. The state stays within its bound on bytes.
func TestAmountsLikeEngine(t *testing.T) {
	t.Parallel()
	var most atomic.Int64
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			compareAmounts(t, seed, &most)
		})
	}
	t.Cleanup(func() {
		if most.Load() < 3000 {
			t.Errorf("no state had more than %d entries", most.Load())
		}
	})
}

// compareAmounts makes random calls on a server of its own, and notes the most entries that a state had.
func compareAmounts(t *testing.T, seed uint64, most *atomic.Int64) {
	client := redis.NewClient(&redis.Options{Addr: redistest.Start(t).Addr, ReadTimeout: time.Minute})
	defer client.Close()
	library := "#!lua name=virtual\n" + join(virtualClock) + "redis.register_function('virtual', run)\n"
	if err := client.FunctionLoad(t.Context(), library).Err(); err != nil {
		t.Fatal(err)
	}
	left := 3 // of the checks, each of which makes thousands of calls
	rapid.Check(t, func(t *rapid.T) {
		if left--; left < 0 {
			return
		}
		if err := client.FlushDB(context.Background()).Err(); err != nil {
			t.Fatal(err)
		}
		p := &pair{t: t, client: client, script: []any{"fcall", "virtual"}, cells: map[string]*engine.Cell{}, latest: map[string]int64{}, now: start}
		d := amountDraws{p, rand.New(rand.NewPCG(seed, rapid.Uint64().Draw(t, "seed"))), &engine.Rule{
			Name: "r", Tag: "amounts:1m", Kind: engine.Amounts, Per: rapid.SampledFrom([]int64{3000, 60 * second}).Draw(t, "per"),
		}, []int64{1e6, 40_000, 1e9}[seed%3]}
		for range 300 {
			d.step(t)
		}
		entries := int64(d.fill(t, 4500))
		for known := most.Load(); entries > known && !most.CompareAndSwap(known, entries); known = most.Load() {
		}
		for range 300 {
			d.step(t)
		}
		p.rules = []*engine.Rule{d.rule}
		p.requireExpiries()
	})
}

type amountDraws struct {
	*pair
	rand  *rand.Rand
	rule  *engine.Rule
	limit int64
}

// fill charges small costs in quick succession, and returns how many entries the state has then.
func (d *amountDraws) fill(t *rapid.T, n int) int {
	for range n {
		d.now += d.rand.Int64N(d.rule.Per/2048 + 1)
		d.client.Set(context.Background(), "clock", d.now, 0)
		d.call(engine.Call{Prefix: "p", Claims: []engine.Claim{{Ask: engine.Ask{Rule: d.rule, Subject: "a", Cost: 1 + d.rand.Int64N(9), Limit: d.limit}}}})
		if d.rand.IntN(8) == 0 { // when would some of these permits leave?
			limit := 1 + 9*d.rand.Int64N(4500)
			d.call(engine.Call{Prefix: "p", Peek: true, Claims: []engine.Claim{{Ask: engine.Ask{Rule: d.rule, Subject: "a", Cost: 1, Limit: limit}}}})
		}
	}
	bytes := d.client.MemoryUsage(context.Background(), "p:r:{a}:amounts:1m").Val()
	entries := int(d.client.StrLen(context.Background(), "p:r:{a}:amounts:1m").Val()) / 12
	if bytes > 66_000+300 {
		t.Fatalf("the state takes %d bytes", bytes)
	}
	return entries
}

func (d *amountDraws) call(call engine.Call) {
	run := new(Run)
	run.AddDecision(&call, d.now)
	d.compare(call, d.run(run, call.Peek))
}

func (d *amountDraws) step(t *rapid.T) {
	per := d.rule.Per
	later := []int64{0, 0, 1, 3, per / 5000, per / 2048, per / 2048, per / 500, per / 100, -2, per / 3, 2 * per}
	d.now += later[min(d.rand.IntN(len(later)), d.rand.IntN(40))]
	d.client.Set(context.Background(), "clock", d.now, 0)
	if d.rand.IntN(4) == 0 && len(d.taken) > 0 {
		d.adjustOne()
		return
	}
	c := engine.Claim{Ask: engine.Ask{Rule: d.rule, Subject: "a", Limit: d.limit}}
	call := engine.Call{Prefix: "p"}
	c.Cost = 1 + d.rand.Int64N(max(1, d.limit/int64(1+d.rand.IntN(50))))
	if d.rand.IntN(2) == 0 {
		c.Cost = d.limit / 8 // so that sums are often equal
	}
	switch d.rand.IntN(8) {
	case 0:
		call.Peek = true
	case 1:
		call.Report = true
	case 2:
		call.UpTo = true
	case 3:
		c.Wait = 2 * per
	case 4:
		c.Mode, c.Cost = engine.Trigger, 3*c.Cost
	case 5:
		call.Lease, call.Ahead = per/10, 2*c.Cost
	case 6:
		c.Limit /= 2
		c.Cost = min(c.Cost, c.Limit)
	}
	call.Claims = []engine.Claim{c}
	d.call(call)
}

// adjustOne refunds or settles a call, or gives permits back.
func (d *amountDraws) adjustOne() {
	i := d.rand.IntN(len(d.taken))
	call := d.taken[i]
	d.taken = slices.Delete(d.taken, i, i+1)
	c := call.Claims[0]
	if c.Charged == 0 {
		return
	}
	c.Delta = []int64{-c.Charged, -1, -c.Charged / 2, 1, c.Charged, 10 * d.limit}[d.rand.IntN(6)]
	if c.Delta == 0 {
		return
	}
	some := engine.Call{Prefix: "p", Rollback: d.rand.IntN(2) == 0, Claims: []engine.Claim{c}}
	if d.rand.IntN(8) == 0 { // gives back what others took, sometimes all
		some.Change, some.Claims[0].Delta = engine.Gives, -1-d.rand.Int64N(2*d.limit)
	}
	want := some
	want.Claims = slices.Clone(some.Claims)
	run := new(Run)
	run.AddAdjustment(&some, d.now)
	if v, err := ReadAdjustment(d.run(run, false), &some); err != nil || v.Now != d.now {
		d.t.Fatalf("adjusting gives %+v, error %v", v, err)
	}
	want.Adjust(d.cellsOf(&want), d.now)
	d.note(&want)
}
