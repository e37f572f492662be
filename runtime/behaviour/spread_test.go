package behaviour_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"
	"unique"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/internal/decide"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
)

// A spread is stores on the same servers, and two subjects on different ones.
type spread struct {
	stores []ratelimit.Store // of programs
	a, b   string
}

func onSpreads(t *testing.T, scenario func(*testing.T, spread)) {
	t.Run("cluster", func(t *testing.T) {
		servers := redistest.StartCluster(t, 3)
		scenario(t, newSpread(t, connectCluster(t, servers), servers))
	})
	t.Run("ring", func(t *testing.T) {
		servers := redistest.Cluster{redistest.Start(t), redistest.Start(t)}
		addrs := map[string]string{"a": servers[0].Addr, "b": servers[1].Addr}
		ring := redis.NewRing(&redis.RingOptions{Addrs: addrs, ReadTimeout: patience})
		t.Cleanup(func() { _ = ring.Close() })
		scenario(t, newSpread(t, ring, servers))
	})
}

func newSpread(t *testing.T, client redis.UniversalClient, servers redistest.Cluster) spread {
	t.Helper()
	s := spread{stores: []ratelimit.Store{redisstore.New(client), redisstore.New(client), redisstore.New(client)}}
	probe := places{s.stores[0], kinds()["log"]}
	for i := 0; s.a == "" || s.b == ""; i++ {
		subject := fmt.Sprint("subject", i)
		probe.call(t, subject, 0, 1, false)
		if keys := servers[0].Do("KEYS *{" + subject + "}*"); keys != "" {
			s.a = subject
		} else {
			s.b = subject
		}
	}
	return s
}

// permits asks a rule of so many permits an hour for one, however long that takes.
func permits(name, subject string, kind decide.Kind, limit int64) decide.Claim {
	rule := &decide.Rule{Kind: kind, Per: hour}
	rule.Identify(name, "1h")
	return decide.Claim{Rule: rule, Subject: subject, Cost: 1, Limit: limit, Burst: 1, Wait: 100_000 * hour}
}

// compete makes calls of so many programs at once, and returns the places of the admitted ones in order.
func (s spread) compete(t *testing.T, programs, calls int, claims func(call int) []decide.Claim) []int64 {
	t.Helper()
	var mu sync.Mutex
	var taken []int64
	var all sync.WaitGroup
	for i := range calls {
		all.Go(func() {
			call := &decide.Call{Prefix: unique.Make("p"), Claims: claims(i)}
			v, err := s.stores[i%programs].Decide(context.Background(), call)
			if err != nil || !v.Admitted {
				t.Errorf("got %+v, error %v", v, err)
				return
			}
			for _, c := range call.Claims {
				if v.At > v.Now && c.At != v.At {
					t.Errorf("admitted at %d, and charged %v later", v.At, micros(c.At-v.At))
				}
			}
			mu.Lock()
			defer mu.Unlock()
			taken = append(taken, v.At)
		})
	}
	all.Wait()
	slices.Sort(taken)
	return taken
}

// Where only one of a call's subjects is contended, it alone decides: no call pushes another one back.
func TestWaitersOnOneOfTwoServers(t *testing.T) {
	onSpreads(t, func(t *testing.T, s spread) {
		for _, last := range []bool{false, true} {
			name := fmt.Sprint("all ", last)
			taken := s.compete(t, 3, 60, func(call int) []decide.Claim {
				claims := []decide.Claim{
					permits(name, s.a, decide.Bucket, 4), permits("user", fmt.Sprint("user", call, last), decide.Log, 1000),
				}
				if last {
					slices.Reverse(claims)
				}
				return claims
			})
			taken = taken[1:] // the first one did not wait
			for i := range taken {
				if got, want := taken[i]-taken[0], int64(i)*hour/4; got != want {
					t.Errorf("%s: place %d is %v after the first, want %v", name, i, micros(got), micros(want))
				}
			}
		}
	})
}

// Where both subjects of all calls are contended, all calls get places, at which both rules are kept. Those of one program are
// nearly the best ones; several leave gaps where one of them was faster.
func TestWaitersOnTwoServers(t *testing.T) {
	onSpreads(t, func(t *testing.T, s spread) {
		const calls = 150
		for programs, worst := range map[int]int64{1: hour / 2, 3: hour} {
			name := fmt.Sprint(programs, " programs")
			taken := s.compete(t, programs, calls, func(int) []decide.Claim {
				return []decide.Claim{permits(name, s.a, decide.Bucket, 4), permits(name, s.b, decide.Bucket, 3)}
			})
			if len(taken) != calls {
				t.Fatalf("%s: %d of %d calls got a place", name, len(taken), calls)
			}
			for i := range calls - 1 {
				if d := taken[i+1] - taken[i]; d < hour/3 {
					t.Errorf("%s: places %d and %d are %v apart", name, i, i+1, micros(d))
				}
			}
			if all := taken[calls-1] - taken[0]; all > (calls-1)*worst {
				t.Errorf("%s: the places are spread over %v, at best over %v", name, micros(all), micros((calls-1)*hour/3))
			}
		}
	})
}

// Programs that wait on a cluster are admitted within the limits of all their rules, by the times that the store tells.
func TestWaitOnACluster(t *testing.T) {
	onSpreads(t, func(t *testing.T, s spread) {
		const calls = 40
		rules := []ratelimit.Rule{
			{Name: "leaky", Limit: 20, Per: 100 * time.Millisecond, Algorithm: ratelimit.LeakyBucket},
			{Name: "sliding", Limit: 15, Per: 100 * time.Millisecond},
		}
		limiters := [2]*ratelimit.Limiter{ratelimit.New(ledger{s.stores[0]}), ratelimit.New(ledger{s.stores[1]})}
		var mu sync.Mutex
		taken := make([][]int64, len(rules))
		var all sync.WaitGroup
		for i := range calls {
			all.Go(func() {
				ctx, e := entered()
				d, err := limiters[i%2].Wait(ctx, ratelimit.Request{Rule: rules[0], Key: s.a}, ratelimit.Request{Rule: rules[1], Key: s.b})
				if err != nil || !d.Allowed {
					t.Errorf("got %+v, error %v", d, err)
				}
				woken := time.Now().UnixMicro()
				mu.Lock()
				defer mu.Unlock()
				for rule, at := range e.charged {
					taken[rule] = append(taken[rule], at)
					if woken < at {
						t.Errorf("went on %v before its place under %s", micros(at-woken), rules[rule].Name)
					}
				}
			})
		}
		all.Wait()
		for i, rule := range rules {
			requireLimit(t, rule, taken[i])
		}
	})
}
