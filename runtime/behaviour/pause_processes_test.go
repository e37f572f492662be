package behaviour_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

const (
	heldBy    = "RATELIMIT_TEST_HELD" // the server of a process whose calls a pause holds
	heldCalls = 100                   // of each process
	stubborn  = 90                    // the calls from this number on have a context that ends if the process reads a line
)

// far is a rule for somebody else's service.
var far = ratelimit.Rule{Name: "far", Algorithm: ratelimit.LeakyBucket, Limit: 50, Per: time.Second, Pausable: true}

// asking notes when each call asked the store, by the number in its context.
type asking struct {
	ratelimit.Store
	mu    sync.Mutex
	last  map[any]time.Time
	first map[any]chan struct{} // closed when the call has its first answer
}

// number is the key of a call's number in a context.
type number struct{}

func (a *asking) Decide(ctx context.Context, call *engine.Call) (engine.Verdict, error) {
	began := time.Now()
	v, err := a.Store.Decide(ctx, call)
	a.mu.Lock()
	defer a.mu.Unlock()
	n := ctx.Value(number{})
	if _, again := a.last[n]; !again {
		close(a.first[n])
	}
	a.last[n] = began
	return v, err
}

// holdCalls makes calls one after the other, each when the one before it has a place. It prints "ready" when all have one, and what became of
// each call.
func holdCalls(addr string) {
	store := &asking{
		Store: scripted(redis.NewClient(&redis.Options{Addr: addr, PoolSize: 50, ReadTimeout: patience})),
		last:  map[any]time.Time{}, first: map[any]chan struct{}{},
	}
	limiter := ratelimit.New(store)
	ends, end := context.WithCancel(context.Background())
	go func() {
		if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err == nil {
			end()
		}
	}()
	var all sync.WaitGroup
	for n := range heldCalls {
		ctx, asked := context.WithValue(context.Background(), number{}, n), make(chan struct{})
		if n >= stubborn {
			ctx = context.WithValue(ends, number{}, n)
		}
		store.mu.Lock()
		store.first[n] = asked
		store.mu.Unlock()
		all.Go(func() {
			d, err := limiter.Wait(ctx, ratelimit.Request{Rule: far, Key: "account"})
			gone := time.Now()
			store.mu.Lock()
			defer store.mu.Unlock()
			fmt.Println(n, store.last[n].UnixMicro(), d.At.UnixMicro(), gone.UnixMicro(), err == nil, errors.Is(err, context.Canceled))
		})
		<-asked
	}
	store.mu.Lock()
	fmt.Println("ready")
	store.mu.Unlock()
	all.Wait()
}

// heldCall is what became of a call. Times are in microseconds.
type heldCall struct {
	asked, at, gone    int64
	admitted, canceled bool
}

// holder is a process whose calls are held.
type holder struct {
	*exec.Cmd
	in    io.Writer
	ready chan struct{}
	ended chan struct{}
	calls map[int]heldCall
}

func startHolder(t *testing.T, server *redistest.Server) *holder {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	h := &holder{exec.Command(binary), nil, make(chan struct{}), make(chan struct{}), map[int]heldCall{}}
	h.Env = append(os.Environ(), heldBy+"="+server.Addr)
	h.Stderr = os.Stderr
	if h.in, err = h.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := h.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Process.Kill() })
	go func() {
		defer close(h.ended)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var n int
			var c heldCall
			if lines.Text() == "ready" {
				close(h.ready)
			} else if _, err := fmt.Sscan(lines.Text(), &n, &c.asked, &c.at, &c.gone, &c.admitted, &c.canceled); err == nil {
				h.calls[n] = c
			}
		}
		_ = h.Wait() // killed perhaps
	}()
	return h
}

// pauseProcesses lets three processes wait for a far side, pauses it for two seconds when all their calls have places, as a call of a wrapper does
// after a 429, and does something during the pause. It returns the calls of the processes, when the pause was stored, and when it ended.
func pauseProcesses(t *testing.T, server *redistest.Server, during func(limiter *ratelimit.Limiter, holders []*holder)) (holders []*holder, stored, resumed int64) {
	t.Helper()
	limiter := ratelimit.New(scripted(connect(t, server.Addr)))
	rules := wrap.NewRules("p.T.M", far)
	taken, err := wrap.Begin(t.Context(), rules.On(limiter), rules, wrap.Charge{Key: "account", Cost: 1})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		holders = append(holders, startHolder(t, server))
	}
	for _, h := range holders {
		select {
		case <-h.ready:
		case <-h.ended:
			t.Fatal("a process ended before its calls waited")
		}
	}
	resumed = time.Now().Add(2 * time.Second).UnixMicro()
	taken.Pause(t.Context(), wrap.RetryAfter(http.Header{"Retry-After": {"2"}}))
	stored = time.Now().UnixMicro()
	during(limiter, holders)
	for _, h := range holders {
		<-h.ended
	}
	return holders, stored, resumed
}

// requireHeld expects that no call left that had asked after the pause was stored, and that the calls of each process went in their order: those
// that asked last before the pause was stored, and those that asked again after it. It returns when the calls were admitted that the pause held.
func requireHeld(t *testing.T, holders []*holder, stored, resumed int64) (after []int64) {
	t.Helper()
	for p, h := range holders {
		last := map[bool]int64{}
		for n := range heldCalls {
			c := h.calls[n]
			held := c.asked > stored
			switch {
			case !c.admitted:
				continue
			case held && (c.gone < resumed || c.at < resumed):
				t.Errorf("process %d: call %d left %v before the end of the pause", p, n, micros(resumed-min(c.gone, c.at)))
			case c.at < last[held]:
				t.Errorf("process %d: call %d is admitted %v before an earlier one", p, n, micros(last[held]-c.at))
			case held:
				after = append(after, c.at)
			}
			last[held] = c.at
		}
	}
	if len(after) == 0 {
		t.Error("the pause held no call")
	}
	return after
}

// requireAdmitted expects that all calls of a process were admitted, but for those whose context ended while the pause held them.
func requireAdmitted(t *testing.T, h *holder, stored int64, ends bool) {
	t.Helper()
	for n := range heldCalls {
		c, ok := h.calls[n], h.calls[n].admitted
		if ends && n >= stubborn {
			ok = c.canceled || c.admitted && c.asked <= stored // it may have gone before the pause
		}
		if !ok {
			t.Errorf("call %d ended as %+v", n, c)
		}
	}
}

// After a 429 with a Retry-After of two seconds no call leaves any process that asked after the marker was stored. Then they go on at the rule's
// rate, in each process in their order. A context that ends takes its call out.
func TestPauseHoldsProcesses(t *testing.T) {
	onEveryServer(t, func(t *testing.T, server *redistest.Server) {
		holders, stored, resumed := pauseProcesses(t, server, func(_ *ratelimit.Limiter, holders []*holder) {
			for _, h := range holders {
				if _, err := h.in.Write([]byte("end\n")); err != nil {
					t.Error(err)
				}
			}
		})
		requireLimit(t, far, requireHeld(t, holders, stored, resumed))
		for _, h := range holders {
			requireAdmitted(t, h, stored, true)
		}
	})
}

// A process that is killed while a pause holds its calls holds nobody up.
func TestPauseOfAKilledProcess(t *testing.T) {
	onEveryServer(t, func(t *testing.T, server *redistest.Server) {
		holders, stored, resumed := pauseProcesses(t, server, func(_ *ratelimit.Limiter, holders []*holder) {
			if err := holders[0].Process.Kill(); err != nil {
				t.Error(err)
			}
		})
		requireLimit(t, far, requireHeld(t, holders, stored, resumed))
		for _, h := range holders[1:] {
			requireAdmitted(t, h, stored, false)
		}
	})
}

// A limit that changes while a pause holds calls is in force when they go on.
func TestLimitChangesDuringAPause(t *testing.T) {
	onEveryServer(t, func(t *testing.T, server *redistest.Server) {
		more := far
		more.Limit = 500
		holders, stored, resumed := pauseProcesses(t, server, func(limiter *ratelimit.Limiter, _ []*holder) {
			if err := limiter.Overrides().Set(t.Context(), far.Name, ratelimit.Override{Limit: &more.Limit}); err != nil {
				t.Error(err)
			}
		})
		requireLimit(t, more, requireHeld(t, holders, stored, resumed))
		for _, h := range holders {
			requireAdmitted(t, h, stored, false)
		}
	})
}

// A pause outlives the death of the master that stored it: the replica that takes its place admits no call either.
func TestPauseSurvivesAFailover(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	master.StartReplica(t)
	sentinels := master.StartSentinels(t, "limits", 3, 500, 1)
	client := redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: "limits", SentinelAddrs: sentinels.Addrs(), DialTimeout: time.Second, ReadTimeout: time.Second, DialerRetries: 1,
	})
	t.Cleanup(func() { _ = client.Close() })
	limiter, ctx, q := ratelimit.New(scripted(client)), t.Context(), ratelimit.Request{Rule: far, Key: "account"}
	if err := limiter.Pause(ctx, time.Hour, q); err != nil {
		t.Fatal(err)
	}
	if n, err := client.Wait(ctx, 1, patience).Result(); err != nil || n != 1 {
		t.Fatalf("%d replicas have the pause: %v", n, err)
	}
	waiter := make(chan error, 1)
	go func() {
		_, err := limiter.Wait(ctx, q)
		waiter <- err
	}()
	master.Stop()
	for refused, began := 0, time.Now(); refused < 5; {
		d, err := limiter.Allow(ctx, q)
		switch {
		case err == nil && (d.Allowed || d.Source != ratelimit.SourcePause):
			t.Fatalf("got %+v in the pause", d)
		case err == nil:
			refused++
		case time.Since(began) > 2*time.Minute:
			t.Fatalf("no replica answers: %v", err)
		default:
			time.Sleep(10 * time.Millisecond)
		}
	}
	select {
	case err := <-waiter:
		if err == nil {
			t.Error("a call went on in the pause")
		}
	default:
	}
	if err := limiter.Resume(ctx, q); err != nil {
		t.Fatal(err)
	}
	if _, err := limiter.Wait(ctx, q); err != nil {
		t.Errorf("after the pause: %v", err)
	}
}
