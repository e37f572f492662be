//go:build faults

package faults

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
)

var programTime = flag.Duration("programs", 10*time.Minute, "how long programs are killed at random")

// serverOf names the variable that makes the test binary a program that makes calls to the server at that address.
const serverOf = "FAULTS_SERVER"

func init() {
	if addr := os.Getenv(serverOf); addr != "" {
		runProgram(addr)
	}
}

// played are the rules of the programs.
func played() []ratelimit.Rule {
	return slices.Concat(rules(), sums(), leased(), aheadSums())
}

// runProgram makes calls until it is killed. It tells each one on standard output before it is sent, and its outcome after.
func runProgram(addr string) {
	limiter, all := ratelimit.New(redisstore.New(redis.NewClient(&redis.Options{Addr: addr})), quiet()), played()
	Press(time.Hour, 4, func(ctx context.Context, caller, n int) {
		rule, key := rand.IntN(len(all)), rand.IntN(len(keys))
		calls := 1
		if all[rule].Lease > 0 {
			calls = 5 // what nobody uses is not taken ahead
		}
		for i := range calls {
			fmt.Printf("%d %d %d %d -1 0 0 false\n", caller, 5*n+i, rule, key)
			var b Book
			b.Call(ctx, limiter.Allow, ratelimit.Request{Rule: all[rule], Key: keys[key]})
			e := b.entries[0]
			fmt.Printf("%d %d %d %d %d %d %d %t\n", caller, 5*n+i, rule, key, e.Outcome, e.At, e.RetryAfter, e.Leased)
			time.Sleep(10 * time.Millisecond) // the ledger is kept in memory
		}
	})
	os.Exit(0)
}

var errKilled = errors.New("the program was killed, or the call failed")

// read returns what a program told before it was killed. Calls that it was not told the outcome of are unknown.
func read(r io.Reader) (done []Entry) {
	type call struct{ caller, n int }
	open, all := map[call]Entry{}, played()
	for lines := bufio.NewScanner(r); lines.Scan(); {
		var c call
		var rule, key, outcome int
		e := Entry{Cost: 1, Outcome: Unknown, Err: errKilled}
		n, _ := fmt.Sscan(lines.Text(), &c.caller, &c.n, &rule, &key, &outcome, &e.At, &e.RetryAfter, &e.Leased)
		if n < 8 {
			continue // it was killed in the middle
		}
		e.Rule, e.Key = all[rule], keys[key]
		if outcome < 0 {
			open[c] = e
			continue
		}
		delete(open, c)
		e.Outcome = Outcome(outcome)
		done = append(done, e)
	}
	return slices.AppendSeq(done, maps.Values(open))
}

// holdings are how many permits programs may have held at most when they were killed.
type holdings map[counted]int64

// add adds what a program may have held when it was killed. A lease is at most as large as the use in a time of its length, by the
// program's clock. At most one is on its way back while the next one is in hand.
func (h holdings) add(entries []Entry) {
	for _, rule := range aheadSums() {
		for _, key := range keys {
			var times []int64
			for _, e := range entries {
				if e.Rule.Name == rule.Name && e.Key == key && e.Outcome == Admitted {
					times = append(times, e.At)
				}
			}
			slices.Sort(times)
			most, first := 0, 0
			for i, at := range times {
				for times[first] < at-2*rule.Lease.Microseconds() { // the server's clock is not the program's
					first++
				}
				most = max(most, i-first+1)
			}
			h[counted{rule.Name, key}] += 2 * int64(most)
		}
	}
}

// Programs that are killed at random leave the counts exact: each call that was answered is counted once, and of the others none twice.
// The permits that a killed program had taken ahead count as used.
func TestKilledPrograms(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	var b Book
	var group sync.WaitGroup
	kills, held := 0, holdings{}
	for range 3 {
		group.Go(func() {
			for begun := time.Now(); time.Since(begun) < *programTime; {
				entries, err := killed(server.Addr)
				if err != nil {
					t.Error(err)
					return
				}
				b.mu.Lock()
				kills++
				held.add(entries)
				b.entries = append(b.entries, entries...)
				b.mu.Unlock()
			}
		})
	}
	group.Wait()
	leases := 0
	for _, e := range b.Entries() {
		if e.Leased {
			leases++
		}
	}
	t.Logf("%d programs were killed; %d calls were admitted by leases", kills, leases)
	report(t, &b)
	limiter := ratelimit.New(redisstore.New(connect(t, server.Addr), redisstore.WithTimeout(time.Minute)), quiet())
	requireSums(t, &b, limiter, append(sums(), aheadSums()...), held)
	if kills < 3 || leases == 0 {
		t.Error("the programs did nothing")
	}
	for _, rule := range append(rules(), leased()...) {
		for _, key := range keys {
			requireNoExcess(t, rule, key, b.Of(rule.Name, key))
		}
	}
}

// killed runs a program that is killed at random, and returns what it told.
func killed(addr string) ([]Entry, error) {
	program := exec.Command(os.Args[0])
	program.Env = append(os.Environ(), serverOf+"="+addr)
	out, err := program.StdoutPipe()
	if err == nil {
		err = program.Start()
	}
	if err != nil {
		return nil, err
	}
	time.AfterFunc(100*time.Millisecond+rand.N(2*time.Second), func() { _ = program.Process.Kill() })
	entries := read(out)
	_ = program.Wait() // it was killed
	return entries, nil
}
