package behaviour_test

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/decide"
	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
)

// If the test binary is started with this variable, it is another program on a server: it makes calls that wait, and prints their results.
const waiterOf = "RATELIMIT_TEST_WAITER_OF"

func TestMain(m *testing.M) {
	if os.Getenv(waiterOf)+os.Getenv(runnerOf)+os.Getenv(heldBy) != "" {
		slog.SetDefault(slog.New(slog.DiscardHandler)) // such a program prints nothing but results
	}
	var addr, names string
	var per time.Duration
	if n, _ := fmt.Sscan(os.Getenv(waiterOf), &addr, &names, &per); n == 3 {
		wait(addr, strings.Split(names, ","), per)
		return
	}
	if addr := os.Getenv(runnerOf); addr != "" {
		runCalls(addr)
		return
	}
	if addr := os.Getenv(heldBy); addr != "" {
		holdCalls(addr)
		return
	}
	decide.Grace = time.Minute
	_ = flag.Set("test.parallel", "8") // most tests wait; the flag -parallel sets another number
	os.Exit(m.Run())
}

const (
	processes    = 4
	ofOneProcess = 50
)

// queued are the rules for which the programs wait.
var queued = map[string]ratelimit.Rule{
	"sliding-window": {Name: "sliding-window", Limit: 20, Per: 100 * time.Millisecond},
	"fixed-window":   {Name: "fixed-window", Limit: 20, Per: 100 * time.Millisecond, Algorithm: ratelimit.FixedWindow},
	"leaky-bucket":   {Name: "leaky-bucket", Limit: 20, Per: 100 * time.Millisecond, Algorithm: ratelimit.LeakyBucket},
	"token-bucket":   {Name: "token-bucket", Limit: 20, Per: 100 * time.Millisecond, Burst: 5, Algorithm: ratelimit.TokenBucket},
}

// An admission is one line in the log of a waiting program: when a place was reserved, the place, and when the call went on.
type admission struct {
	reserved, at, woken int64
}

// wait makes many calls at the same time that wait for rules.
func wait(addr string, names []string, per time.Duration) {
	var all sync.WaitGroup
	var output sync.Mutex
	client := redis.NewClient(&redis.Options{Addr: addr, PoolSize: ofOneProcess, ReadTimeout: patience})
	for _, name := range names {
		rule := queued[name]
		rule.Per = per
		for range ofOneProcess {
			all.Go(func() {
				store := &witness{Store: scripted(client), seen: make(chan seen, 1)}
				d, err := ratelimit.New(store).Wait(context.Background(), ratelimit.Request{Rule: rule, Key: "k"})
				woken := time.Now().UnixMicro()
				output.Lock()
				defer output.Unlock()
				fmt.Println(name, (<-store.seen).verdict.Now, d.At.UnixMicro(), woken, err)
			})
		}
	}
	all.Wait()
}

// program returns a command that runs the test binary as a program that waits on the server for some of the queued rules, with another period.
func program(t *testing.T, server *redistest.Server, per time.Duration, names ...string) *exec.Cmd {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %d", waiterOf, server.Addr, strings.Join(names, ","), per))
	return cmd
}

// Waiting calls of several programs are admitted in the order in which they came, and never more than the limit.
func TestWaitersOfSeveralProgramsQueue(t *testing.T) {
	onEveryServer(t, func(t *testing.T, server *redistest.Server) {
		programs := make([]*exec.Cmd, processes)
		outputs := make([]strings.Builder, processes)
		for i := range programs {
			programs[i] = program(t, server, queued["leaky-bucket"].Per, slices.Collect(maps.Keys(queued))...)
			programs[i].Stdout, programs[i].Stderr = &outputs[i], &outputs[i]
			if err := programs[i].Start(); err != nil {
				t.Fatal(err)
			}
		}
		logs := map[string][]admission{}
		for i, program := range programs {
			if err := program.Wait(); err != nil {
				t.Fatalf("%v\n%s", err, outputs[i].String())
			}
			readAdmissions(t, outputs[i].String(), logs)
		}
		for name, rule := range queued {
			requireQueue(t, rule, logs[name])
		}
		requireExpiries(t, server)
	})
}

// readAdmissions adds the admissions that a program wrote to the logs of their rules.
func readAdmissions(t *testing.T, output string, logs map[string][]admission) {
	t.Helper()
	for line := range strings.Lines(output) {
		var a admission
		var name, failure string
		if n, _ := fmt.Sscan(line, &name, &a.reserved, &a.at, &a.woken, &failure); n != 5 || failure != "<nil>" {
			t.Fatalf("a waiter wrote %q", line)
		}
		logs[name] = append(logs[name], a)
	}
}

func requireQueue(t *testing.T, rule ratelimit.Rule, log []admission) {
	t.Helper()
	if len(log) != processes*ofOneProcess {
		t.Fatalf("%s: %d admissions", rule.Name, len(log))
	}
	slices.SortFunc(log, func(a, b admission) int { return cmp.Compare(a.reserved, b.reserved) })
	var late []int64
	places := make([]int64, len(log))
	for i, a := range log {
		if i > 0 && a.at < log[i-1].at {
			t.Errorf("%s: reserved at %d for %d, after one at %d for %d", rule.Name, a.reserved, a.at, log[i-1].reserved, log[i-1].at)
		}
		if a.woken < a.at {
			t.Errorf("%s: went on %v before its place", rule.Name, micros(a.at-a.woken))
		}
		late = append(late, a.woken-max(a.at, a.reserved))
		places[i] = a.at
	}
	requireLimit(t, rule, places)
	slices.Sort(late)
	t.Logf("%s: %d waiters, up to %v; later than their places by %v at the median, %v at most", rule.Name, len(log),
		micros(log[len(log)-1].at-log[0].reserved), micros(late[len(late)/2]), micros(late[len(late)-1]))
}

// requireLimit checks, by the times of all admissions of one permit, that a rule was kept.
func requireLimit(t *testing.T, rule ratelimit.Rule, places []int64) {
	t.Helper()
	slices.Sort(places)
	per, limit := rule.Per.Microseconds(), rule.Limit
	var opened int64
	for i, at := range places {
		first := i // the first admission of the window that ends with this one
		switch rule.Algorithm {
		case ratelimit.FixedWindow:
			if at >= opened+per {
				opened = at
			}
			first, _ = slices.BinarySearch(places, opened)
		case ratelimit.SlidingWindow, ratelimit.SlidingCounter:
			first, _ = slices.BinarySearch(places, at-per+1)
		default: // a span has at most a burst and what the bucket gains in it
			burst := int64(1)
			if rule.Algorithm == ratelimit.TokenBucket {
				burst = rule.Burst
			}
			for j := range i {
				if leaks := (at-places[j])*limit/per + burst; int64(i-j+1) > leaks+1 {
					t.Fatalf("%s: %d within %v", rule.Name, i-j+1, micros(at-places[j]))
				}
			}
		}
		if n := int64(i - first + 1); n > limit {
			t.Fatalf("%s: %d permits in one window, limit %d", rule.Name, n, limit)
		}
	}
}

// Many goroutines wait, and some give up. The places of the others do not exceed the limit.
func TestWaitingGoroutinesNeverExceedTheLimit(t *testing.T) {
	t.Parallel()
	const goroutines, calls = 64, 3
	server := redistest.Start(t)
	limiters := map[string]*ratelimit.Limiter{"memory": ratelimit.New(memstore.New())}
	for by, options := range scriptedBy {
		limiters[by] = onServer(t, server, options...).limiter
	}
	for name, l := range limiters {
		t.Run(name, func(t *testing.T) {
			for _, rule := range queued {
				if rule.Algorithm == ratelimit.FixedWindow {
					continue // the log does not show windows that were opened by calls that gave up
				}
				var all sync.WaitGroup
				var mu sync.Mutex
				var places []int64
				for i := range goroutines * calls {
					all.Go(func() {
						ctx, cancel := context.WithCancel(context.Background())
						defer cancel()
						if i%3 == 0 {
							time.AfterFunc(time.Duration(i)*2*time.Millisecond, cancel)
						}
						d, err := l.Wait(ctx, ratelimit.Request{Rule: rule, Key: name})
						if err != nil && ctx.Err() == nil || err == nil && !d.Allowed {
							t.Errorf("got %+v, error %v", d, err)
						}
						if err == nil {
							mu.Lock()
							defer mu.Unlock()
							places = append(places, d.At.UnixMicro())
						}
					})
				}
				all.Wait()
				if len(places) < goroutines*calls*2/3 {
					t.Errorf("%s: only %d were admitted", rule.Name, len(places))
				}
				requireLimit(t, rule, places)
			}
		})
	}
	requireExpiries(t, server)
}
