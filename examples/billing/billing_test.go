package billing

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
)

const (
	long  = 1000 * time.Hour // no permit comes back during a test
	lease = 50 * time.Millisecond
)

var (
	billed = []ratelimit.Rule{
		{Name: "tokens", Limit: 1_000_000_000, Per: long},
		{Name: "seconds", Limit: 1_000_000_000, Per: long, Algorithm: ratelimit.FixedWindow},
		{Name: "leased", Limit: 1_000_000_000, Per: long, Algorithm: ratelimit.FixedWindow, Lease: lease},
	}
	names     = []string{"tokens", "seconds", "leased"}
	customers = []string{"acme", "zenith"}
)

// order is a call that may be billed: what it may cost, and when it began.
type order struct {
	line
	Call int
	At   time.Time
}

// orders is a journal of what goes on: an order before its call, and its number again when what the store has charged is known.
type orders struct {
	mu  sync.Mutex
	out *json.Encoder
	n   int
}

func (o *orders) write(v order) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	if v.Call == 0 {
		o.n++
		v.Call = o.n
	}
	_ = o.out.Encode(v) // a test without the line fails
	return v.Call
}

// spend makes a random call, and settles it or gives it back.
func spend(limiter *ratelimit.Limiter, o *orders) {
	ctx, rule, customer := context.Background(), billed[rand.N(len(billed))], customers[rand.N(len(customers))]
	estimate, cost := rand.Int64N(50)+1, rand.Int64N(100)
	number := o.write(order{line{Account{customer, rule.Name}, max(estimate, cost)}, 0, time.Now()})
	d, err := limiter.Allow(ctx, ratelimit.Request{Rule: rule, Key: customer, Cost: estimate})
	switch {
	case err == nil && rand.N(5) == 0:
		err = d.Refund(ctx)
	case err == nil:
		err = d.Settle(ctx, cost)
	}
	if err == nil {
		o.write(order{Call: number})
	}
}

// abandon makes a call that gives up while it waits. It costs nothing.
func abandon(t *testing.T, limiter *ratelimit.Limiter) {
	queue := ratelimit.Request{Rule: ratelimit.Rule{Name: "queue", Algorithm: ratelimit.TokenBucket, Limit: 1, Per: long}}
	if _, err := limiter.Allow(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	if _, err := limiter.Wait(ctx, queue, ratelimit.Request{Rule: billed[0], Key: customers[0], Cost: 7}); err == nil {
		t.Error("the call has not waited")
	}
}

// ledger returns what the store has counted.
func ledger(t *testing.T, limiter *ratelimit.Limiter, rule ratelimit.Rule, customer string) int64 {
	t.Helper()
	d, err := limiter.Peek(t.Context(), ratelimit.Request{Rule: rule, Key: customer})
	if err != nil {
		t.Fatal(err)
	}
	return rule.Limit - d.Quotas[0].Remaining
}

// The bill is what the store has counted, to the permit, whatever was settled, given back, abandoned or handed out by leases.
func TestBillEqualsTheLedger(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: redistest.Start(t).Addr})
	defer client.Close()
	for name, store := range map[string]ratelimit.Store{
		"memory": memstore.New(), "redis": redisstore.New(client, redisstore.WithTimeout(time.Minute)),
	} {
		t.Run(name, func(t *testing.T) {
			var journal bytes.Buffer
			limiter := ratelimit.New(store, ratelimit.WithObserver(NewJournal(&journal, names...).Observe))
			o := &orders{out: json.NewEncoder(io.Discard)}
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() {
					for range 200 {
						spend(limiter, o)
					}
				})
			}
			all.Wait()
			abandon(t, limiter)
			sums, err := Sum(&journal)
			if err != nil {
				t.Fatal(err)
			}
			for _, rule := range billed {
				for _, customer := range customers {
					has := ledger(t, limiter, rule, customer)
					bill := sums[Account{customer, rule.Name}]
					for end := time.Now().Add(time.Minute); has != bill && time.Now().Before(end); { // what is given back later
						time.Sleep(10 * time.Millisecond)
						has = ledger(t, limiter, rule, customer)
					}
					if bill != has || bill == 0 {
						t.Errorf("%s of %s: the bill is %d, the store has counted %d", rule.Name, customer, bill, has)
					}
				}
			}
		})
	}
}

// What cannot be settled because its cost is unknown is billed as it was estimated. Rules that are not billed are in no journal.
func TestEstimateThatStays(t *testing.T) {
	var journal bytes.Buffer
	j := NewJournal(&journal, "tokens")
	for _, e := range []ratelimit.Event{
		{Kind: ratelimit.EventAdmitted, Rules: []ratelimit.Outcome{{Rule: "tokens", Key: "acme", Cost: 5}}},
		{Kind: ratelimit.EventSettled, Err: errors.New("no usage"), Rules: []ratelimit.Outcome{
			{Rule: "tokens", Key: "acme", CostBefore: 5, Cost: 5}, {Rule: "calls", Key: "acme", CostBefore: 1, Cost: 1},
		}},
		{Kind: ratelimit.EventSettled, Err: &ratelimit.StoreError{}, Rules: []ratelimit.Outcome{{Rule: "tokens", Key: "acme", CostBefore: 5, Cost: 9}}},
	} {
		j.Observe(t.Context(), &e)
	}
	if journal.String() != `{"customer":"acme","rule":"tokens","cost":5}`+"\n" {
		t.Errorf("the journal is %s", journal.String())
	}
	if _, err := Sum(strings.NewReader("{}\n{\n")); err == nil || !strings.HasPrefix(err.Error(), "line 2: ") {
		t.Errorf("got error %v", err)
	}
}

// The environment of a program that is killed: its server, and the path of its journals.
const (
	serverVariable = "BILLING_SERVER"
	pathVariable   = "BILLING_PATH"
	callers        = 4
)

// TestMain runs a program that spends until it is killed, if a test has started this binary for that.
func TestMain(m *testing.M) {
	if addr := os.Getenv(serverVariable); addr != "" {
		if err := spendOn(addr, os.Getenv(pathVariable)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

func spendOn(addr, path string) error {
	journal, err := os.Create(path + ".journal")
	if err != nil {
		return err
	}
	going, err := os.Create(path + ".orders")
	if err != nil {
		return err
	}
	client := redis.NewClient(&redis.Options{Addr: addr, DialerRetries: 1})
	limiter := ratelimit.New(redisstore.New(client, redisstore.WithTimeout(time.Minute)), ratelimit.WithObserver(NewJournal(journal, names...).Observe),
		ratelimit.WithLogger(slog.New(slog.DiscardHandler)))
	o := &orders{out: json.NewEncoder(going)}
	for range callers {
		go func() {
			for {
				spend(limiter, o)
				time.Sleep(time.Millisecond)
			}
		}()
	}
	_, err = io.Copy(io.Discard, os.Stdin) // standard input is closed when the test ends
	return err
}

// Programs are killed, and replies are lost. The bill is never above what the store has counted, and below it by at most what was on its way or
// taken ahead.
func TestBillOfKilledPrograms(t *testing.T) {
	server := redistest.Start(t)
	proxy := redistest.StartProxy(t, server.Addr)
	path := t.TempDir()
	var programs sync.WaitGroup
	for i := range 3 {
		programs.Go(func() {
			for life := range 3 {
				if err := kill(proxy, filepath.Join(path, fmt.Sprint(i, "-", life))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	programs.Wait()
	sums, open := read(t, path)
	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer client.Close()
	limiter := ratelimit.New(redisstore.New(client, redisstore.WithTimeout(time.Minute)))
	for _, rule := range billed {
		for _, customer := range customers {
			a := Account{customer, rule.Name}
			bill, has := sums[a], ledger(t, limiter, rule, customer)
			t.Logf("%v: the bill is %d, the store has counted %d, and at most %d were on their way or taken ahead", a, bill, has, open[a])
			if bill > has || bill < has-open[a] || bill == 0 {
				t.Errorf("%v: the bill is %d, the store has counted %d, and at most %d were on their way or taken ahead", a, bill, has, open[a])
			}
		}
	}
}

// kill runs a program, loses a reply when it has billed something, and kills it a little later.
func kill(proxy *redistest.Proxy, path string) error {
	program := exec.Command(os.Args[0])
	program.Env = append(os.Environ(), serverVariable+"="+proxy.Addr, pathVariable+"="+path)
	program.Stderr = os.Stderr
	if _, err := program.StdinPipe(); err != nil {
		return err
	}
	if err := program.Start(); err != nil {
		return err
	}
	defer program.Wait()
	defer program.Process.Kill()
	for range 12_000 {
		if info, err := os.Stat(path + ".journal"); err == nil && info.Size() > 1000 {
			time.Sleep(rand.N(100 * time.Millisecond))
			proxy.Replies.Store(rand.Int64N(500))
			time.Sleep(rand.N(200 * time.Millisecond))
			return nil
		}
		time.Sleep(5 * time.Millisecond)
	}
	return errors.New("the program has billed nothing within a minute")
}

// read returns the sum of all journals, and what programs may have charged that no journal has.
func read(t *testing.T, path string) (sums, open map[Account]int64) {
	sums, open = map[Account]int64{}, map[Account]int64{}
	paths, err := filepath.Glob(filepath.Join(path, "*.journal"))
	if err != nil || len(paths) != 9 {
		t.Fatal(paths, err)
	}
	for _, journal := range paths {
		own, err := Sum(bytes.NewReader(contents(t, journal)))
		if err != nil {
			t.Fatal(err)
		}
		for a, sum := range own {
			sums[a] += sum
		}
		for a, most := range ahead(contents(t, strings.TrimSuffix(journal, "journal")+"orders")) {
			open[a] += most
		}
	}
	return sums, open
}

func contents(t *testing.T, path string) []byte {
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// ahead returns what a program may have charged when it was killed: calls whose end it has not seen, and leases. A lease holds at most what was
// used in a time of its length, and at most one is on its way back while the next one is in hand.
func ahead(text []byte) map[Account]int64 {
	most, going, used := map[Account]int64{}, map[int]order{}, map[Account][]order{}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		var o order
		if json.Unmarshal(lines.Bytes(), &o) != nil {
			break // the program was killed in the middle of this one
		}
		if o.Rule == "" {
			delete(going, o.Call)
			continue
		}
		going[o.Call], used[o.Account] = o, append(used[o.Account], o)
	}
	for _, o := range going {
		most[o.Account] += o.Cost
	}
	for a, list := range used {
		if a.Rule != "leased" {
			continue
		}
		held, sum, first := int64(0), int64(0), 0
		for _, o := range list {
			for sum += o.Cost; list[first].At.Before(o.At.Add(-2 * lease)); first++ {
				sum -= list[first].Cost
			}
			held = max(held, sum)
		}
		most[a] += 2 * held
	}
	return most
}
