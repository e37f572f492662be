package faults

import (
	"encoding/gob"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
)

var enduranceTime = flag.Duration("endurance", 3*time.Second, "how long three programs run at full load")

// Programs run at full load, under all algorithms, with calls that are combined, leased or answered from memory. No limit is exceeded,
// and the server has counted what the programs took. Their memory does not grow, and they leave no goroutine behind.
func TestEndurance(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	round := min(2*time.Second, *enduranceTime/9)
	programs := []*program{startProgram(t, server.Addr), startProgram(t, server.Addr), startProgram(t, server.Addr)}
	together := func(do func(p *program)) {
		var all sync.WaitGroup
		for _, p := range programs {
			all.Go(func() { do(p) })
		}
		if all.Wait(); t.Failed() {
			t.FailNow()
		}
	}
	book := enduredBook{entries: map[counted][]Entry{}, taken: map[counted]int64{}}
	for range *enduranceTime / round {
		together(func(p *program) { p.run(t, round) })
		for _, p := range programs {
			book.add(p.entries)
		}
		book.audit(t)
	}
	together(func(p *program) { p.end(t) })
	book.requireTaken(t, ratelimit.New(redisstore.New(connect(t, server.Addr), redisstore.WithTimeout(time.Minute)), quiet()))
	logRounds(t, server, programs, round)
	for _, p := range programs {
		p.requireFlat(t)
	}
}

// program is a program of its own that makes calls, as its test sees it.
type program struct {
	command *exec.Cmd
	in      io.WriteCloser
	out     *gob.Decoder
	rounds  []enduredRound // without entries
	entries []enduredEntry // of the last round
}

func startProgram(t *testing.T, addr string) *program {
	p := &program{command: exec.Command(os.Args[0])}
	p.command.Env, p.command.Stderr = append(os.Environ(), enduringOn+"="+addr), os.Stderr
	in, err := p.command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.command.Process.Kill()
		_ = p.command.Wait()
	})
	p.in, p.out = in, gob.NewDecoder(out)
	return p
}

// run lets the program make calls for so long.
func (p *program) run(t *testing.T, d time.Duration) {
	var load, after enduredRound
	_, err := fmt.Fprintln(p.in, d)
	if err == nil {
		err = p.out.Decode(&load)
	}
	if err == nil {
		err = p.out.Decode(&after)
	}
	if err != nil {
		t.Errorf("a program failed: %v", err)
	}
	p.rounds, p.entries = append(p.rounds, after), load.Entries
}

// end lets the program end by itself, which fails if a goroutine is left.
func (p *program) end(t *testing.T) {
	_ = p.in.Close()
	if err := p.command.Wait(); err != nil {
		t.Errorf("a program failed: %v", err)
	}
}

// requireFlat checks that the heap does not grow after the first third of the run. Where a leak is as small as the slack, a longer run
// finds it.
func (p *program) requireFlat(t *testing.T) {
	const slack = 4 << 20
	n := len(p.rounds)
	before, after := medianHeap(p.rounds[n/3:2*n/3]), medianHeap(p.rounds[2*n/3:])
	if after > before+before/4+slack {
		t.Errorf("the heap of a program grew from %d bytes to %d", before, after)
	}
}

func medianHeap(rounds []enduredRound) uint64 {
	var heaps []uint64
	for _, r := range rounds {
		heaps = append(heaps, r.Heap)
	}
	slices.Sort(heaps)
	return heaps[len(heaps)/2]
}

// enduredBook is what all programs told, as far as a law still wants to see it.
type enduredBook struct {
	entries map[counted][]Entry
	taken   map[counted]int64 // permits, in the whole run
}

func (b *enduredBook) add(entries []enduredEntry) {
	for _, e := range entries {
		of := counted{e.Rule, e.Key}
		if e.Outcome == Admitted {
			b.taken[of] += e.Cost
		}
		b.entries[of] = append(b.entries[of], Entry{Cost: e.Cost, Outcome: e.Outcome, At: e.At, RetryAfter: e.RetryAfter})
	}
}

// audit checks that nobody got too much, and forgets what is too old to matter.
func (b *enduredBook) audit(t *testing.T) {
	for _, rule := range slices.Concat(rules(), aheadRules()) {
		for _, key := range keys {
			of := counted{rule.Name, key}
			requireNoExcess(t, rule, key, b.entries[of])
			newest := int64(0)
			for _, e := range b.entries[of] {
				newest = max(newest, e.At)
			}
			b.entries[of] = slices.DeleteFunc(b.entries[of], func(e Entry) bool { return e.At < newest-longestSpan })
		}
	}
}

// requireTaken checks that the server has counted what the programs took. The last of what they gave back may still be on its way.
func (b *enduredBook) requireTaken(t *testing.T, limiter *ratelimit.Limiter) {
	for _, rule := range slices.Concat(sums(), aheadSums()) {
		for _, key := range keys {
			taken := b.taken[counted{rule.Name, key}]
			used := usedOf(t, limiter, rule, key)
			for deadline := time.Now().Add(20 * time.Second); used > taken && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
				used = usedOf(t, limiter, rule, key)
			}
			if used != taken {
				t.Errorf("%s of %s: %d permits are used; the programs took %d", rule.Name, key, used, taken)
			}
		}
	}
}

// logRounds logs what the run was like.
func logRounds(t *testing.T, server *redistest.Server, programs []*program, round time.Duration) {
	var sum enduredRound
	for _, p := range programs {
		for i := range p.rounds {
			sum.count(&p.rounds[i])
		}
	}
	n := len(programs[0].rounds)
	seconds := (round * time.Duration(n)).Seconds()
	t.Logf("%.0f s of load: %d calls, %.0f a second; %d admitted, %d given up", seconds, sum.Calls, float64(sum.Calls)/seconds, sum.Admitted, sum.GivenUp)
	_, scripts, _ := strings.Cut(server.Do("INFO commandstats"), "cmdstat_fcall:calls=")
	scripts, _, _ = strings.Cut(scripts, ",")
	t.Logf("%d answered from memory, %d by leases, and %d by %s scripts", sum.Remembered, sum.Leased, sum.Calls-sum.Remembered-sum.Leased, scripts)
	for _, part := range []int{n / 5, n * 3 / 5, n} {
		for i, p := range programs {
			r := p.rounds[part-1]
			t.Logf("after %.0f s, program %d: %d goroutines under load, %d after it, %.1f MB of heap", (round * time.Duration(part)).Seconds(), i,
				r.Busy, r.Idle, float64(r.Heap)/1e6)
		}
	}
}
