package behaviour_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"
	"unique"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/internal/decide"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
)

const hour = int64(time.Hour / time.Microsecond)

// kinds are rules as stores see them, of four permits an hour.
func kinds() map[string]*decide.Rule {
	rules := map[string]*decide.Rule{
		"log": {Kind: decide.Log}, "fixed": {Kind: decide.Fixed}, "bucket": {Kind: decide.Bucket}, "prepaid": {Kind: decide.Prepaid},
		"warm": {Kind: decide.Warm, Warmup: hour}, "counter": {Kind: decide.Counter, Slices: 60},
		"calendar": {Kind: decide.Calendar, Schedule: decide.NewSchedule(nextHour, true, time.UTC)},
	}
	for name, rule := range rules {
		rule.Per = hour
		rule.Identify("r", name)
	}
	return rules
}

// nextHour is the next end of an hour by a clock on which these tests began at half past.
func nextHour(t time.Time) time.Time {
	return t.Add(-phase).Truncate(time.Hour).Add(phase + time.Hour)
}

var phase = time.Since(time.Now().Truncate(time.Hour)).Truncate(time.Second) + time.Hour/2

// places is a store on which calls are made for times to come.
type places struct {
	store ratelimit.Store
	rule  *decide.Rule
}

// call takes permits for a time after now, or asks for them.
func (p places) call(t *testing.T, subject string, after, cost int64, peek bool) (*decide.Call, decide.Verdict) {
	t.Helper()
	call := &decide.Call{Prefix: unique.Make("p"), After: after, Peek: peek, Claims: []decide.Claim{
		{Rule: p.rule, Subject: subject, Cost: cost, Limit: 4, Burst: 4, Wait: 1000 * hour},
	}}
	v, err := p.store.Decide(context.Background(), call)
	if err != nil || !v.Admitted {
		t.Fatalf("got %+v, error %v", v, err)
	}
	return call, v
}

func (p places) giveBack(t *testing.T, call *decide.Call) {
	t.Helper()
	if err := p.store.Return(context.Background(), call); err != nil {
		t.Fatal(err)
	}
}

// outlook is when the subject's next calls would be admitted.
func (p places) outlook(t *testing.T, subject string) [3]time.Duration {
	t.Helper()
	var delays [3]time.Duration
	for i, cost := range []int64{1, 2, 4} {
		_, v := p.call(t, subject, 0, cost, true)
		delays[i] = micros(v.At - v.Now)
	}
	return delays
}

// alike reports whether outlooks are the same to the slice of a counter: where time does not obey, some milliseconds pass between
// them. A permit is a quarter of an hour.
func alike(a, b [3]time.Duration) bool {
	for i := range a {
		if (a[i] - b[i]).Abs() > time.Minute {
			return false
		}
	}
	return true
}

var orders = [][]int{
	{0}, {1}, {2}, {3}, {0, 1}, {1, 0}, {0, 3}, {3, 1}, {2, 0}, {0, 1, 2}, {2, 1, 0}, {1, 3, 0},
	{0, 1, 2, 3}, {3, 2, 1, 0}, {1, 3, 0, 2}, {2, 0, 3, 1},
}

// Whoever gives up, in whatever order, the answers are then those of a subject whose other calls alone were ever made.
func TestCancelledPlacesHaveNeverBeen(t *testing.T) {
	clock := newClock()
	stores := map[string]ratelimit.Store{
		"memory": memstore.New(memstore.WithClock(clock.now)),
		"redis":  redisstore.New(connect(t, redistest.Start(t).Addr)),
	}
	for name, store := range stores {
		for kind, rule := range kinds() {
			p := places{store, rule}
			made := []struct{ after, cost int64 }{{2 * hour, 1}, {2 * hour, 3}, {5 * hour, 2}, {7 * hour, 4}}
			if rule.Kind == decide.Warm { // is cold again before each call: what calls cost is not changed by returns
				made[1].after, made[2].after, made[3].after = 5*hour, 9*hour, 13*hour
			}
			for _, order := range orders {
				subject := fmt.Sprintf("%s %v", kind, order)
				calls, gone := make([]*decide.Call, len(made)), map[int]bool{}
				at := make([]int64, len(made)) // after now
				for i, m := range made {
					var v decide.Verdict
					calls[i], v = p.call(t, subject, m.after, m.cost, false)
					at[i] = v.At - v.Now
				}
				for _, i := range order {
					p.giveBack(t, calls[i])
					gone[i] = true
				}
				for i, m := range made {
					if !gone[i] {
						p.call(t, subject+" alone", at[i], m.cost, false)
					}
				}
				got, want := p.outlook(t, subject), p.outlook(t, subject+" alone")
				if !alike(got, want) {
					t.Errorf("%s, %s: delays of 1, 2 and 4 permits are %v, without the cancelled calls %v", name, subject, got, want)
				}
			}
		}
	}
}

// A warm-up gets back what a call took of it: its time, and the time of idling that was stored. What another call was charged
// meanwhile was fixed when it was admitted.
func TestReturnToAWarmup(t *testing.T) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		rule := ratelimit.Rule{Name: "r", Limit: 4, Per: time.Hour, Algorithm: ratelimit.TokenBucket, Warmup: 3 * time.Hour}
		q := ratelimit.Request{Rule: rule, Key: "k", Cost: 4}
		free := func() time.Time { // from when on the next call passes
			d := s.peek(t, q)
			return d.At.Add(d.RetryAfter)
		}
		for range 3 { // four permits are worth an hour: of the upper half of three hours, cold*(2*above-cold)*2/W more
			first := s.admit(t, q)
			if got, want := free().Sub(first.At), time.Hour+80*time.Minute; got != want {
				t.Fatalf("the first call costs %v, want %v", got, want)
			}
			if err := first.Refund(context.Background()); err != nil {
				t.Fatal(err)
			}
			if d := s.peek(t, q); !d.Allowed {
				t.Fatalf("after a return: retry after %v", d.RetryAfter)
			}
		}
		first := s.admit(t, q)
		leave := s.reserve(t, q)
		if got, want := free().Sub(first.At), 2*time.Hour+90*time.Minute; got != want {
			t.Errorf("two calls cost %v, want %v", got, want)
		}
		if err := first.Refund(context.Background()); err != nil {
			t.Error(err)
		}
		leave()
		if d := s.peek(t, q); !d.Allowed {
			t.Errorf("after both were given back: retry after %v", d.RetryAfter)
		}
		first = s.admit(t, q)
		if got, want := free().Sub(first.At), time.Hour+80*time.Minute; got != want {
			t.Errorf("then a call costs %v, want %v", got, want)
		}
	})
}

// What a bucket remembers of calls that wait is gone from its state after the next call behind their time.
func TestStateOfABucketIsSmallAgain(t *testing.T) {
	client := connect(t, redistest.Start(t).Addr)
	for name, rule := range kinds() {
		switch rule.Kind {
		case decide.Warm, decide.Bucket, decide.Prepaid:
			wait := 30 * time.Millisecond
			for !isSmallAgain(t, client, name, rule, wait) {
				wait *= 2
			}
		}
	}
}

// isSmallAgain reports whether the scenario was made in time: a call before another one's wait was over.
func isSmallAgain(t *testing.T, client *redis.Client, name string, rule *decide.Rule, wait time.Duration) bool {
	const size = 32
	subject := name + wait.String()
	length := func() int64 { return client.StrLen(context.Background(), "p:r:{"+subject+"}:"+name).Val() }
	call := func(after time.Duration) decide.Verdict {
		t.Helper()
		claim := decide.Claim{Rule: rule, Subject: subject, Cost: 10_000, Limit: 1_000_000, Burst: 1_000_000}
		if rule.Kind == decide.Warm {
			claim.Cost, claim.Wait = 1, hour
		}
		call := &decide.Call{Prefix: unique.Make("p"), After: after.Microseconds(), Claims: []decide.Claim{claim}}
		v, err := redisstore.New(client).Decide(context.Background(), call)
		if err != nil || !v.Admitted {
			t.Fatalf("%s: got %+v, error %v", name, v, err)
		}
		return v
	}
	call(0)
	if n := length(); n != size {
		t.Errorf("%s: a state of %d bytes, want %d", name, n, size)
	}
	waits, passes := call(wait), call(0)
	if passes.Now >= waits.At {
		return false
	}
	if n := length(); n <= size {
		t.Errorf("%s: a state of %d bytes, while calls wait", name, n)
	}
	time.Sleep(micros(max(waits.At, passes.At)-passes.Now) + 20*time.Millisecond) // a cold call costs 11 ms
	call(0)
	if n := length(); n != size {
		t.Errorf("%s: a state of %d bytes, after the wait, want %d", name, n, size)
	}
	return true
}

// A bucket remembers the newest 256 of the calls that wait. The places of those before are kept, whoever leaves them.
func TestBucketRemembersTheNewestWaiters(t *testing.T) {
	server := redistest.Start(t)
	client := connect(t, server.Addr)
	for name, store := range map[string]ratelimit.Store{"memory": memstore.New(), "redis": redisstore.New(client)} {
		p := places{store, kinds()["bucket"]}
		const waiters = 300
		var calls []*decide.Call
		for range waiters {
			call, _ := p.call(t, "k", 0, 4, false) // an hour each
			calls = append(calls, call)
		}
		place := func() int64 {
			_, v := p.call(t, "k", 0, 4, true)
			return (v.At - v.Now + hour/2) / hour
		}
		free := place()
		for _, c := range []struct{ call, free int64 }{
			{waiters - 1, free - 1},             // the newest
			{10, free - 1},                      // forgotten
			{waiters - 3, free - 1},             // the one before keeps its place
			{waiters - 2, free - 3},             // both are gone now
			{waiters - maxRemembered, free - 3}, // the oldest that is known
		} {
			p.giveBack(t, calls[c.call])
			if got := place(); got != c.free {
				t.Errorf("%s: after %d came back the next place is in %d hours, want %d", name, c.call, got, c.free)
			}
		}
	}
	if n := client.StrLen(context.Background(), "p:r:{k}:bucket").Val(); n > 64+64*(maxRemembered+1) {
		t.Errorf("a state of %d bytes", n)
	}
}

const maxRemembered = 256

// A call passes those who wait as long as all of them are remembered; before those who are not, there is no telling whom it delays.
func TestWhoPassesAsManyWaitersAsAreRemembered(t *testing.T) {
	for name, store := range map[string]ratelimit.Store{
		"memory": memstore.New(memstore.WithClock(newClock().now)), "redis": redisstore.New(connect(t, redistest.Start(t).Addr)),
	} {
		for waiters := maxRemembered - 1; waiters <= maxRemembered+2; waiters++ {
			claim := decide.Claim{Rule: kinds()["bucket"], Subject: strconv.Itoa(waiters), Cost: 1, Limit: 1000, Burst: 1000}
			ask := func(after int64) bool {
				call := &decide.Call{Prefix: unique.Make("p"), After: after, Claims: []decide.Claim{claim}}
				v, err := store.Decide(context.Background(), call)
				if err != nil {
					t.Fatal(err)
				}
				return v.Admitted
			}
			for range waiters {
				ask(hour)
			}
			if passes := ask(0); passes != (waiters <= maxRemembered) {
				t.Errorf("%s: a call passes %d: %v", name, waiters, passes)
			}
		}
	}
}
