package redisstore

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

var ledgerTime = flag.Duration("ledger.time", 3*time.Second, "how long the programs of the ledger run; 30s are more than a million calls")

const ledgerVariable = "RATELIMIT_LEDGER_SERVER"

func TestMain(m *testing.M) {
	if addr := os.Getenv(ledgerVariable); addr != "" {
		keepLedger(addr)
		return
	}
	_ = flag.Set("test.parallel", "4") // many tests wait; the flag -parallel sets another number
	os.Exit(m.Run())
}

// ledgerRules have the same number of permits a second each, and admit them all at once.
var ledgerRules = []ratelimit.Rule{
	{Name: "sliding", Limit: 2000, Per: 100 * time.Millisecond, Lease: 20 * time.Millisecond},
	{Name: "fixed", Algorithm: ratelimit.FixedWindow, Limit: 2000, Per: 100 * time.Millisecond, Lease: 20 * time.Millisecond},
	{Name: "bucket", Algorithm: ratelimit.TokenBucket, Limit: 2000, Per: 100 * time.Millisecond, Lease: 20 * time.Millisecond},
	{Name: "second", Limit: 20_000, Cron: "* * * * * *", Lease: 20 * time.Millisecond},
}

// entry is what one call was charged by one rule.
type entry struct {
	Rule, Permits, Leased int64
	Before                int64 // the machine's time before the call, in microseconds
	At, Stop              int64 // the time of the decision, and the end of the window
}

// keepLedger makes random calls under one rule or several, and logs them, until it is killed or the test ends.
func keepLedger(addr string) {
	client := redis.NewClient(&redis.Options{Addr: addr})
	limiter := ratelimit.New(New(client, WithTimeout(20*time.Second)))
	for range 3 {
		go func() {
			for {
				pace := []time.Duration{0, 100 * time.Microsecond, time.Millisecond, 10 * time.Millisecond}[rand.N(4)]
				for end := time.Now().Add(rand.N(200 * time.Millisecond)); time.Now().Before(end); {
					callAndNote(limiter)
					if pace > 0 {
						time.Sleep(rand.N(pace))
					}
				}
			}
		}()
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // standard input is closed when the test ends
}

func callAndNote(limiter *ratelimit.Limiter) {
	ctx, _ := ratelimit.WithReport(context.Background())
	cost := []int64{1, 1, 1, 1, 1, 5}[rand.N(6)]
	first := rand.N(len(ledgerRules))
	var requests []ratelimit.Request
	for _, r := range ledgerRules[first:min(len(ledgerRules), first+1+rand.N(2))] {
		requests = append(requests, ratelimit.Request{Rule: r, Cost: cost})
	}
	before := time.Now().UnixMicro()
	d, err := limiter.Allow(ctx, requests...)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	var text []byte
	for i, q := range d.Quotas { // whose times count from the decision
		e := entry{Rule: int64(first + i), Before: before, At: d.At.UnixMicro()}
		e.Stop = e.At + q.Reset.Microseconds()
		if d.Allowed {
			e.Permits = cost
		}
		if d.Source == ratelimit.SourceLease {
			e.Leased = 1
		}
		text, _ = binary.Append(text, binary.LittleEndian, e)
	}
	if d.Allowed && rand.N(50) == 0 { // entries of refunded calls are not written
		text = nil
		_ = d.Refund(context.Background())
	}
	_, _ = os.Stdout.Write(text) // in one write, so that a kill leaves whole entries
}

// Several programs take permits ahead on one server, and are killed while they have leases. By the times of the decisions, no window has more
// permits than the limit, and no span of a bucket has more than its burst and what it gains in that span.
func TestLedgerOfLeases(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	dir := t.TempDir()
	var programs sync.WaitGroup
	end := time.Now().Add(*ledgerTime)
	for i := range 3 {
		programs.Go(func() {
			for life := 0; time.Now().Before(end); life++ {
				runLedger(t, server.Addr, filepath.Join(dir, fmt.Sprint(i, "-", life)), min(time.Until(end), rand.N(time.Second)))
			}
		})
	}
	programs.Wait()
	entries := readLedger(t, dir)
	calls, leased, admitted := len(entries), 0, 0
	for _, e := range entries {
		leased += int(e.Leased)
		if e.Permits > 0 {
			admitted++
		}
		if e.At < e.Before-1000 {
			t.Fatalf("a permit of %d is handed out at %d", e.At, e.Before)
		}
	}
	t.Logf("%d charges and refusals by one rule, %d admitted, %d of these by leases", calls, admitted, leased)
	if leased == 0 {
		t.Errorf("none of %d was admitted by a lease", admitted)
	}
	for i := range ledgerRules {
		own := slices.DeleteFunc(slices.Clone(entries), func(e entry) bool { return e.Rule != int64(i) })
		requireLedger(t, &ledgerRules[i], own)
	}
}

// runLedger runs a program for the time life, and kills it.
func runLedger(t *testing.T, addr, path string, life time.Duration) {
	file, err := os.Create(path)
	if err != nil {
		t.Error(err)
		return
	}
	defer file.Close()
	var failed bytes.Buffer
	program := exec.Command(os.Args[0])
	program.Env = append(os.Environ(), ledgerVariable+"="+addr)
	program.Stdout, program.Stderr = file, &failed
	_, err = program.StdinPipe()
	if err := errors.Join(err, program.Start()); err != nil {
		t.Error(err)
		return
	}
	time.Sleep(life)
	_ = program.Process.Kill()
	_ = program.Wait()
	if failed.Len() > 0 {
		t.Error(failed.String())
	}
}

func readLedger(t *testing.T, dir string) (entries []entry) {
	paths, _ := filepath.Glob(filepath.Join(dir, "*"))
	size := binary.Size(entry{})
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil || len(text)%size != 0 {
			t.Fatalf("%d bytes in %s, %v", len(text), path, err)
		}
		own := make([]entry, len(text)/size)
		if _, err := binary.Decode(text, binary.LittleEndian, own); err != nil {
			t.Fatal(err)
		}
		entries = append(entries, own...)
	}
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(a.At, b.At) })
	return entries
}

func requireLedger(t *testing.T, rule *ratelimit.Rule, entries []entry) {
	excess := int64(0)
	switch {
	case rule.Name == "sliding":
		sum, first := int64(0), 0
		for _, e := range entries {
			sum += e.Permits
			for ; entries[first].At <= e.At-rule.Per.Microseconds(); first++ {
				sum -= entries[first].Permits
			}
			excess = max(excess, sum-rule.Limit)
		}
	case rule.Name == "bucket": // checked by filling a bucket: it runs over if a span has more permits
		level, last := 0.0, int64(0)
		for _, e := range entries {
			level = max(0, level-float64(e.At-last)*float64(rule.Limit)/float64(rule.Per.Microseconds()))
			level, last = level+float64(e.Permits), e.At
			excess = max(excess, int64(level-float64(rule.Limit)))
		}
	default:
		windows := map[int64]int64{}
		for _, e := range entries {
			if e.Permits > 0 {
				windows[e.Stop] += e.Permits
				excess = max(excess, windows[e.Stop]-rule.Limit)
			}
			if e.Permits > 0 && e.At >= e.Stop {
				t.Fatalf("%s: a permit of the window that ends at %d is handed out at %d", rule.Name, e.Stop, e.At)
			}
		}
		if len(windows) < 2 {
			t.Errorf("%s: %d windows", rule.Name, len(windows))
		}
	}
	if excess > 0 || len(entries) == 0 {
		t.Errorf("%s: %d permits too many, of %d entries", rule.Name, excess, len(entries))
	}
}
