package faults

import (
	"bufio"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
)

// enduringOn names the variable that makes the test binary a program that makes calls to the server at that address, for as long as its
// standard input says.
const enduringOn = "FAULTS_ENDURE"

// ahead is how long permits are taken ahead.
const ahead = 20 * time.Millisecond

// aheadRules have so many permits that it is worth while to take some ahead.
func aheadRules() []ratelimit.Rule {
	const per = 100 * time.Millisecond
	return []ratelimit.Rule{
		{Name: "ahead-sliding", Limit: 200, Per: per, Lease: ahead},
		{Name: "ahead-fixed", Limit: 200, Per: per, Lease: ahead, Algorithm: ratelimit.FixedWindow},
		{Name: "ahead-token", Limit: 200, Per: per, Lease: ahead, Algorithm: ratelimit.TokenBucket},
		{Name: "ahead-calendar", Limit: 2000, Cron: "* * * * * *", Lease: ahead},
	}
}

// aheadSums are rules whose permits do not come back during the test, and may be taken ahead.
func aheadSums() []ratelimit.Rule {
	all := sums()
	for i := range all {
		all[i].Name, all[i].Lease = all[i].Name+"-ahead", ahead
	}
	return all
}

// otherRules are such as no ledger of permits can judge.
func otherRules() []ratelimit.Rule {
	const per = 100 * time.Millisecond
	return []ratelimit.Rule{
		{Name: "distinct", Limit: 6, Per: per, Distinct: "{member}"},
		{Name: "instance", Limit: 6, Per: per, Scope: ratelimit.ScopeInstance},
	}
}

// mixes are rules that are called together: most calls are under those whose permits come back.
var (
	mixes    = [][]ratelimit.Rule{rules(), aheadRules(), otherRules()}
	sumMixes = [][]ratelimit.Rule{sums(), aheadSums()}
)

// enduredRound is what a program says of some time at full load.
type enduredRound struct {
	Calls, Admitted, GivenUp int
	Remembered, Leased       int    // answers of the program itself
	Busy, Idle               int    // goroutines under load, and after it
	Heap                     uint64 // after it
	Entries                  []enduredEntry
}

// count adds the calls of other to those of r.
func (r *enduredRound) count(other *enduredRound) {
	r.Calls, r.Admitted, r.GivenUp = r.Calls+other.Calls, r.Admitted+other.Admitted, r.GivenUp+other.GivenUp
	r.Remembered, r.Leased = r.Remembered+other.Remembered, r.Leased+other.Leased
}

// enduredEntry is an [Entry] of the rule of a name.
type enduredEntry struct {
	Rule, Key            string
	Outcome              Outcome
	Cost, At, RetryAfter int64
}

// endure makes calls when it is told to. In the end it exits with 1 if a goroutine is left that was not there in the beginning.
func endure(addr string) {
	client := redis.NewClient(&redis.Options{Addr: addr})
	limiter := ratelimit.New(redisstore.New(client, redisstore.WithTimeout(time.Minute)), quiet())
	before := runtime.NumGoroutine()
	out := gob.NewEncoder(os.Stdout)
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		d, err := time.ParseDuration(in.Text())
		exitIf(err)
		r := load(limiter, d)
		exitIf(out.Encode(r))
		r.Entries = nil
		time.Sleep(5 * ahead) // what was taken ahead goes back
		waitForGoroutines(before)
		r.Idle, r.Heap = runtime.NumGoroutine(), heap()
		exitIf(out.Encode(r))
	}
	if waitForGoroutines(before); runtime.NumGoroutine() > before {
		_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
		exitIf(fmt.Errorf("%d goroutines are left, of which %d were there before", runtime.NumGoroutine(), before))
	}
	exitIf(client.Close())
	os.Exit(0)
}

// waitForGoroutines waits for a time until no more than n goroutines are left.
func waitForGoroutines(n int) {
	for deadline := time.Now().Add(20 * time.Second); runtime.NumGoroutine() > n && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
}

func exitIf(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// heap returns how many bytes are in use.
func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what pools hold outlives the first
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// load makes calls from many goroutines for a time, as fast as it can.
func load(limiter *ratelimit.Limiter, d time.Duration) *enduredRound {
	var sum enduredRound
	callers := make([]caller, 32)
	var halfTime sync.WaitGroup
	halfTime.Go(func() {
		time.Sleep(d / 2)
		sum.Busy = runtime.NumGoroutine()
	})
	Press(d, len(callers), func(ctx context.Context, i, _ int) { callers[i].call(ctx, limiter) })
	halfTime.Wait()
	for i := range callers {
		sum.count(&callers[i].enduredRound)
		sum.Entries = append(sum.Entries, callers[i].Entries...)
	}
	return &sum
}

// caller is one goroutine's calls.
type caller struct {
	enduredRound
	ends map[counted]int64 // of the last fixed window that refused
}

// counted is what permits are counted of: a rule and a key.
type counted struct{ rule, key string }

// call makes a call at random. Some wait, some are given up soon, and some give back what they got.
func (c *caller) call(ctx context.Context, limiter *ratelimit.Limiter) {
	requests := draw()
	decide, patience := limiter.Allow, time.Minute
	switch first := &requests[0].Rule; {
	case rand.N(16) == 0:
		patience = rand.N(2 * time.Millisecond)
	case rand.N(64) == 0 && len(requests) == 1 && first.Algorithm != ratelimit.SlidingCounter && first.Distinct == "":
		decide, patience = limiter.Wait, 5*time.Millisecond
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	d, err := decide(ctx, requests...)
	c.Calls++
	switch d.Source {
	case ratelimit.SourceMemory:
		c.Remembered++
	case ratelimit.SourceLease:
		c.Leased++
	}
	switch {
	case err != nil && ctx.Err() != nil:
		c.GivenUp++
	case errors.Is(err, ratelimit.ErrTooManyRequests):
	case err != nil:
		exitIf(err)
	case !d.Allowed:
		c.noteEnds(d)
	case rand.N(64) == 0:
		exitIf(d.Refund(context.WithoutCancel(ctx)))
	default:
		c.Admitted++
		c.note(d, requests)
	}
}

// draw returns requests under one rule or two, for one of the keys or for a new one.
func draw() []ratelimit.Request {
	of := mixes[rand.N(len(mixes))]
	if rand.N(32) == 0 {
		of = sumMixes[rand.N(len(sumMixes))]
	}
	first := rand.N(len(of))
	key, cost := keys[rand.N(len(keys))], int64(1+rand.N(8)/7)
	if rand.N(4) == 0 {
		key = strconv.FormatUint(rand.Uint64(), 36)
	}
	var requests []ratelimit.Request
	for _, rule := range of[first:min(len(of), first+1+rand.N(2))] {
		if rule.Algorithm == ratelimit.LeakyBucket || rule.Distinct != "" {
			cost = 1
		}
		requests = append(requests, ratelimit.Request{Rule: rule, Key: key, Cost: cost, Member: strconv.Itoa(rand.N(100))})
	}
	return requests
}

// note writes down a call that was admitted.
func (c *caller) note(d ratelimit.Decision, requests []ratelimit.Request) {
	for _, q := range requests {
		if slices.Contains(keys, q.Key) {
			c.Entries = append(c.Entries, enduredEntry{Rule: q.Rule.Name, Key: q.Key, Cost: q.Cost, At: d.At.UnixMicro()})
		}
	}
}

// noteEnds writes down the first refusal of each fixed window, which tells when it ends.
func (c *caller) noteEnds(d ratelimit.Decision) {
	for _, v := range d.Violations {
		e := enduredEntry{Rule: v.Rule, Key: v.Key, Outcome: Refused, At: d.At.UnixMicro(), RetryAfter: v.RetryAfter.Microseconds()}
		of := counted{v.Rule, v.Key}
		if !strings.HasSuffix(v.Rule, "fixed") || !slices.Contains(keys, v.Key) || c.ends[of] == e.At+e.RetryAfter {
			continue
		}
		if c.ends == nil {
			c.ends = map[counted]int64{}
		}
		c.ends[of] = e.At + e.RetryAfter
		c.Entries = append(c.Entries, e)
	}
}
