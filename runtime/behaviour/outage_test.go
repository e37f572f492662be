package behaviour_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/plain"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

var hourly = ratelimit.Rule{Name: "hourly", Limit: 10, Per: time.Hour}

func TestUnreachableServerIsAStoreError(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server, s *subject) {
		rule := window("r", 10, s.window)
		ctx, q := context.Background(), ratelimit.Request{Rule: rule, Key: "k"}
		s.admit(t, q)
		server.Stop()
		rules := wrap.NewRules("m", rule)
		for name, call := range map[string]func() error{
			"Allow": func() error { _, err := s.limiter.Allow(ctx, q); return err },
			"Peek":  func() error { _, err := s.limiter.Peek(ctx, q); return err },
			"Reset": func() error { _, err := s.limiter.Reset(ctx, q); return err },
			"Take":  func() error { return wrap.Take(ctx, rules.On(s.limiter), rules, "k") },
		} {
			_ = call() // the first call may still use the broken connection
			err := call()
			if _, ok := errors.AsType[*ratelimit.StoreError](err); !ok {
				t.Errorf("%s: got error %v (%T), want a *StoreError", name, err, err)
			}
			if !errors.Is(err, syscall.ECONNREFUSED) && !strings.Contains(err.Error(), "not sent") { // while the client tries to connect
				t.Errorf("%s: %v does not say that there is no connection", name, err)
			}
			if errors.Is(err, ratelimit.ErrTooManyRequests) {
				t.Errorf("%s: %v is taken for a refusal", name, err)
			}
		}
	})
}

func TestServerErrorIsAStoreError(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server, s *subject) {
		server.Do("CONFIG SET maxmemory 1")
		server.Do("CONFIG SET maxmemory-policy noeviction")
		_, err := s.limiter.Allow(context.Background(), ratelimit.Request{Rule: window("r", 10, s.window), Key: "k"})
		if _, ok := errors.AsType[*ratelimit.StoreError](err); !ok {
			t.Errorf("a server out of memory: got error %v (%T), want a *StoreError", err, err)
		}
	})
}

// If the context ends while the server is silent, the call ends, even if the client itself would wait for a minute.
func TestContextEndsACallToASilentServer(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr, ReadTimeout: time.Minute, WriteTimeout: time.Minute})
	t.Cleanup(func() { _ = client.Close() })
	s := &subject{limiter: ratelimit.New(scripted(client, redisstore.WithTimeout(2*time.Second)))}
	q := ratelimit.Request{Rule: hourly, Key: "k"}
	s.admit(t, q)
	server.Pause()
	defer server.Resume() // a client that is closed waits for its connections
	for name, end := range map[string]func() (context.Context, context.CancelFunc){
		"cancelled": func() (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(context.Background())
			time.AfterFunc(30*time.Millisecond, cancel)
			return ctx, cancel
		},
		"deadline": func() (context.Context, context.CancelFunc) {
			return context.WithTimeout(context.Background(), 30*time.Millisecond)
		},
	} {
		ctx, cancel := end()
		_, err := s.limiter.Allow(ctx, q)
		if ctx.Err() == nil || !errors.Is(err, ctx.Err()) || errors.Is(err, ratelimit.ErrTooManyRequests) {
			t.Errorf("%s: got error %v, want one that is %v", name, err, ctx.Err())
		}
		cancel()
	}
}

// Counts that a restart of the server loses start from zero, without an error.
func TestRestartedServerCountsAfresh(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server, s *subject) {
		q := ratelimit.Request{Rule: window("r", 10, s.window), Key: "k", Cost: 10}
		s.admit(t, q)
		s.refuse(t, q)
		server.Restart()
		s.pass(100 * time.Millisecond) // until the refusal is no longer remembered
		s.admit(t, q)
		s.refuse(t, q)
	})
}

func TestFault_ScriptFlushFailsCalls(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := onServer(t, server)
	q := ratelimit.Request{Rule: hourly, Key: "k"}
	for range 10 {
		server.Do("SCRIPT FLUSH")
		s.peek(t, q)
		server.Do("SCRIPT FLUSH")
		d := s.admit(t, q)
		server.Do("SCRIPT FLUSH")
		if err := d.Refund(context.Background()); err != nil {
			t.Fatal(err)
		}
		s.admit(t, q)
	}
	s.refuse(t, q)
	server.Do("SCRIPT FLUSH")
	if _, err := s.limiter.Reset(context.Background(), q); err != nil {
		t.Fatal(err)
	}
	s.admit(t, q)
}

// If many callers repeatedly find a server without the script, each of them is admitted exactly once.
func TestFault_ColdServerFailsConcurrentCalls(t *testing.T) {
	t.Parallel()
	const callers = 64
	server := redistest.Start(t)
	s := onServer(t, server)
	for round := range 20 {
		server.Do("SCRIPT FLUSH")
		server.Do("FLUSHALL")
		q := ratelimit.Request{Rule: ratelimit.Rule{Name: "r", Limit: callers, Per: time.Hour}, Key: fmt.Sprint(round)} // a new key has no remembered refusal
		if admitted := race(t, callers, 1, s.limiter, q); admitted != callers {
			t.Errorf("round %d: %d of %d callers were admitted", round, admitted, callers)
		}
		s.refuse(t, q)
	}
}

// A decision whose reply is lost may have been made. It is not sent a second time.
func TestFault_LostReplyIsChargedAgain(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	load(t, connect(t, server.Addr))
	between := redistest.StartProxy(t, server.Addr)
	through := &subject{limiter: ratelimit.New(bare{scripted(connectBy(t, between.Addr, 1))})}
	through.admit(t, ratelimit.Request{Rule: hourly, Key: "warm"})
	between.WaitInfo() // which the store asks in the background: that reply is not to be the one that is lost
	direct := onServer(t, server)
	for i := range int64(5) {
		q := ratelimit.Request{Rule: hourly, Key: string(rune('a' + i))}
		through.admit(t, q)
		between.Replies.Store(0)
		_, err := through.limiter.Allow(context.Background(), q)
		if _, ok := errors.AsType[*ratelimit.StoreError](err); !ok {
			t.Errorf("a lost reply: got error %v (%T), want a *StoreError", err, err)
		}
		if between.Replies.Load() == 0 {
			t.Fatal("no reply was lost")
		}
		if left := direct.left(t, q); left != 8 {
			t.Errorf("%d of 10 permits left after two calls", left)
		}
		through.admit(t, q)
	}
}

// A decision whose reply is late is not sent a second time, either.
func TestFault_TimedOutDecisionIsChargedAgain(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr, ReadTimeout: 50 * time.Millisecond})
	t.Cleanup(func() { _ = client.Close() })
	impatient, direct := ratelimit.New(bare{redisstore.New(client)}), onServer(t, server)
	q := ratelimit.Request{Rule: hourly, Key: "k"}
	redistest.Eventually(t, "the client has two connections, and its answers in time", func() bool {
		one, other := client.Conn(), client.Conn()
		defer one.Close()
		defer other.Close()
		return one.Ping(context.Background()).Err() == nil && other.Ping(context.Background()).Err() == nil
	})
	direct.admit(t, q)
	server.Pause()
	_, err := impatient.Allow(context.Background(), q)
	server.Resume()
	if _, ok := errors.AsType[*ratelimit.StoreError](err); !ok {
		t.Errorf("a late reply: got error %v (%T), want a *StoreError", err, err)
	}
	if left := direct.left(t, q); left != 8 && left != 9 {
		t.Errorf("%d of 10 permits left after two calls, of which one may not have arrived", left)
	}
}

// If callers give up while the server is silent, each of their calls is charged at most once.
func TestCallersWhoGaveUpAreChargedOnceAtMost(t *testing.T) {
	t.Parallel()
	const callers = 32
	server := redistest.Start(t)
	s := onServer(t, server)
	q := ratelimit.Request{Rule: ratelimit.Rule{Name: "r", Limit: 1000, Per: time.Hour}, Key: "k"}
	s.admit(t, q)
	server.Pause()
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	var all sync.WaitGroup
	var answered atomic.Int64
	for range callers {
		all.Go(func() {
			if _, err := s.limiter.Allow(ctx, q); err == nil {
				answered.Add(1)
			}
		})
	}
	all.Wait()
	server.Resume()
	if answered.Load() != 0 {
		t.Errorf("%d calls were answered by a silent server", answered.Load())
	}
	if left := s.left(t, q); left < 1000-1-callers {
		t.Errorf("%d of 1000 permits left after %d calls", left, 1+callers)
	}
}

// A caller that gives up early is no sign that the server is away. A charge that was made for it is given back, even if the client applies
// contexts to its connections.
func TestImpatientCallerBarsNobody(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr, ContextTimeoutEnabled: true, ReadTimeout: patience})
	t.Cleanup(func() { _ = client.Close() })
	for name, store := range map[string]ratelimit.Store{"scripts": scripted(client), "plain": plain.New(client, plain.WithTimeout(patience))} {
		s := &subject{limiter: ratelimit.New(store)}
		q := ratelimit.Request{Rule: ratelimit.Rule{Name: name, Limit: 10, Per: time.Hour, Algorithm: ratelimit.FixedWindow}, Key: "k"}
		s.admit(t, q)
		server.Pause()
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
		_, err := s.limiter.Allow(ctx, q)
		cancel()
		server.Resume()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: got error %v, want the context's", name, err)
		}
		s.admit(t, q) // the breaker would still refuse
		redistest.Eventually(t, name+": 8 of 10 permits are left", func() bool { return s.left(t, q) == 8 })
	}
}
