//go:build faults

package faults

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
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

// runProgram makes calls until it is killed. It tells each one on standard output before it is sent, and its outcome after.
func runProgram(addr string) {
	limiter := ratelimit.New(redisstore.New(redis.NewClient(&redis.Options{Addr: addr})), quiet())
	all := append(rules(), sums()...)
	Press(time.Hour, 4, func(ctx context.Context, caller, n int) {
		rule, key := rand.IntN(len(all)), rand.IntN(len(keys))
		fmt.Printf("%d %d %d %d -1 0\n", caller, n, rule, key)
		var b Book
		b.Call(ctx, limiter.Allow, ratelimit.Request{Rule: all[rule], Key: keys[key]})
		fmt.Printf("%d %d %d %d %d %d\n", caller, n, rule, key, b.entries[0].Outcome, b.entries[0].At)
		time.Sleep(10 * time.Millisecond) // the ledger is kept in memory
	})
	os.Exit(0)
}

var errKilled = errors.New("the program was killed, or the call failed")

// follow writes down what a program told before it was killed. Calls that it was not told the outcome of are unknown.
func (b *Book) follow(r io.Reader) {
	type call struct{ caller, n int }
	open, all := map[call]Entry{}, append(rules(), sums()...)
	var done []Entry
	for lines := bufio.NewScanner(r); lines.Scan(); {
		var c call
		var rule, key, outcome int
		var at int64
		if n, _ := fmt.Sscan(lines.Text(), &c.caller, &c.n, &rule, &key, &outcome, &at); n < 6 {
			continue // it was killed in the middle
		}
		e := Entry{Rule: all[rule], Key: keys[key], Cost: 1, Outcome: Unknown, At: at, Err: errKilled}
		if outcome < 0 {
			open[c] = e
			continue
		}
		delete(open, c)
		e.Outcome = Outcome(outcome)
		done = append(done, e)
	}
	for _, e := range open {
		done = append(done, e)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.entries = append(b.entries, done...)
}

// Programs that are killed at random leave the counts exact: each call that was answered is counted once, and of the others none twice.
func TestKilledPrograms(t *testing.T) {
	server := redistest.Start(t)
	var b Book
	var group sync.WaitGroup
	kills := 0
	var mu sync.Mutex
	for range 3 {
		group.Go(func() {
			for begun := time.Now(); time.Since(begun) < *programTime; {
				program := exec.Command(os.Args[0])
				program.Env = append(os.Environ(), serverOf+"="+server.Addr)
				out, err := program.StdoutPipe()
				if err == nil {
					err = program.Start()
				}
				if err != nil {
					t.Error(err)
					return
				}
				time.AfterFunc(100*time.Millisecond+rand.N(2*time.Second), func() { _ = program.Process.Kill() })
				b.follow(out)
				_ = program.Wait() // it was killed
				mu.Lock()
				kills++
				mu.Unlock()
			}
		})
	}
	group.Wait()
	t.Logf("%d programs were killed", kills)
	report(t, &b)
	requireSums(t, &b, ratelimit.New(redisstore.New(connect(t, server.Addr)), quiet()), sums())
	if kills < 3 || b.Count(Admitted) == 0 {
		t.Error("the programs did nothing")
	}
	requireMost(t, &b)
}

// requireMost checks that nobody got too much, by the times that the server told.
func requireMost(t *testing.T, b *Book) {
	for _, rule := range rules() {
		for _, key := range keys {
			requireNoExcess(t, rule, key, b.Of(rule.Name, key))
		}
	}
}
