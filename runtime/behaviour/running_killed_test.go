package behaviour_test

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// If the test binary is started with this variable, it is another program on a server: its calls run until it is killed.
const runnerOf = "RATELIMIT_TEST_RUNNER_OF"

// shared is the rule of these programs. Permits are renewed after a third of Per. On a busy machine that may be late, but not by the rest.
var shared = ratelimit.Rule{Name: "shared", Algorithm: ratelimit.Concurrency, Limit: 12, Per: 4 * time.Second, Wait: patience}

// runCalls makes calls until the program is killed. It tells when each one begins and is over. The first caller's calls run longer than Per.
func runCalls(addr string) {
	limiter := ratelimit.New(scripted(redis.NewClient(&redis.Options{Addr: addr, ReadTimeout: patience})))
	rules := wrap.NewRules("p.T.M", shared)
	for caller := range 8 {
		go func() {
			for {
				taken, err := wrap.Begin(context.Background(), rules.On(limiter), rules, wrap.Charge{Key: "k", Cost: 1})
				if err != nil {
					fmt.Fprintln(os.Stderr, err)
					os.Exit(1)
				}
				fmt.Println(caller, time.Now().UnixMicro())
				if time.Sleep(rand.N(100 * time.Millisecond)); caller == 0 {
					time.Sleep(shared.Per * 3 / 2)
				}
				fmt.Println(caller, time.Now().UnixMicro())
				taken.Release(context.Background())
			}
		}()
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // standard input is closed when the test ends
}

// ran is a call that ran at least from one time to another, in microseconds.
type ran struct{ from, to int64 }

// runUntilKilled runs a program for the time life, and returns the calls that ran in it.
func runUntilKilled(t *testing.T, addr, path string, life time.Duration) (calls []ran) {
	file, err := os.Create(path)
	if err != nil {
		t.Error(err)
		return nil
	}
	defer file.Close()
	var failed strings.Builder
	program := exec.Command(os.Args[0])
	program.Env = append(os.Environ(), runnerOf+"="+addr)
	program.Stdout, program.Stderr = file, &failed
	if _, err = program.StdinPipe(); err == nil {
		err = program.Start()
	}
	if err != nil {
		t.Error(err)
		return nil
	}
	time.Sleep(life)
	killed := time.Now().UnixMicro()
	_ = program.Process.Kill()
	_ = program.Wait()
	text, err := os.ReadFile(path)
	if err != nil || failed.Len() > 0 {
		t.Error(err, failed.String())
	}
	began := map[int]int64{}
	for line := range strings.Lines(string(text)) {
		var caller int
		var at int64
		if n, err := fmt.Sscan(line, &caller, &at); n != 2 || !strings.HasSuffix(line, "\n") {
			t.Errorf("%q: %v", line, err)
		}
		if from := began[caller]; from > 0 {
			calls = append(calls, ran{from, at})
			delete(began, caller)
		} else {
			began[caller] = at
		}
	}
	for _, from := range began {
		calls = append(calls, ran{from, max(from, killed)})
	}
	return calls
}

// Calls of three programs run until these are killed at random. Never more of them run at the same time than the limit, also if a call runs for
// longer than Per. The permits of killed programs come back.
func TestLedgerOfRunningCalls(t *testing.T) {
	onEveryServer(t, func(t *testing.T, server *redistest.Server) {
		dir := t.TempDir()
		var mu sync.Mutex
		var calls []ran
		var programs sync.WaitGroup
		began := time.Now()
		for i := range 3 {
			programs.Go(func() {
				kills := []time.Duration{rand.N(shared.Per), shared.Per + rand.N(shared.Per/2), shared.Per * 7 / 2}
				for _, at := range kills[i:] { // between the last two kills, the permits of dead programs come back
					own := runUntilKilled(t, server.Addr, filepath.Join(dir, fmt.Sprint(i, at)), at-time.Since(began))
					mu.Lock()
					calls = append(calls, own...)
					mu.Unlock()
				}
			})
		}
		programs.Wait()
		s := onServer(t, server)
		redistest.Eventually(t, "the permits of the killed programs are back", func() bool { return s.running(t, shared) == 0 })
		longest := slices.MaxFunc(calls, func(a, b ran) int { return cmp.Compare(a.to-a.from, b.to-b.from) })
		t.Logf("%d calls ran, at most %d at the same time, the longest for %d µs", len(calls), mostAtATime(calls), longest.to-longest.from)
		if most := mostAtATime(calls); most > shared.Limit || most < 2 {
			t.Errorf("%d of %d calls ran at the same time; the limit is %d", most, len(calls), shared.Limit)
		}
		if longest.to-longest.from <= shared.Per.Microseconds() {
			t.Error("no call ran for longer than Per")
		}
	})
}

// mostAtATime returns how many calls ran at the same time.
func mostAtATime(calls []ran) (most int64) {
	type change struct{ at, by int64 }
	var changes []change
	for _, c := range calls {
		changes = append(changes, change{c.from, 1}, change{c.to, -1})
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.by, b.by)) })
	now := int64(0)
	for _, c := range changes {
		now += c.by
		most = max(most, now)
	}
	return most
}
