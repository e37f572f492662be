package behaviour_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// panics calls do, which must panic.
func panics(t *testing.T, do func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Error("no panic came through")
		}
	}()
	do()
}

// A panic in an observer or a trigger, which the caller recovers, leaves no permit of a call that does not run. All calls after it are decided.
func TestPanicsOfObserversAndTriggers(t *testing.T) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		var on atomic.Int32
		check := func(part int32) {
			if on.CompareAndSwap(part, 0) {
				panic("a bug of the program")
			}
		}
		s = &subject{store: s.store, limiter: ratelimit.New(s.store,
			ratelimit.WithObserver(func(context.Context, *ratelimit.Event) { check(1) }),
			ratelimit.WithTrigger(func(context.Context, ratelimit.Trigger) { check(2) }))}
		run := atATime(1)
		rules := wrap.NewRules("p.T.M", run, ratelimit.Rule{Name: "t", Limit: 1, Per: long, Mode: ratelimit.ModeTrigger})
		for name, call := range map[string]func(){
			"Begin": func() { _, _ = s.begin(t, t.Context(), rules) },
			"Allow": func() {
				_, _ = s.limiter.Allow(t.Context(), ratelimit.Request{Rule: run, Key: "k"}, ratelimit.Request{Rule: rules.Rules()[1], Key: "k"})
			},
		} {
			for part := range int32(2) {
				if _, err := s.limiter.Reset(t.Context(), ratelimit.Request{Rule: rules.Rules()[1], Key: "k"}); err != nil {
					t.Fatal(err)
				}
				on.Store(part + 1)
				panics(t, call)
				if n := s.running(t, run); n != 0 {
					t.Errorf("%s: part %d: %d calls run after a panic", name, part, n)
				}
			}
		}
		taken, err := s.begin(t, t.Context(), rules)
		if err != nil {
			t.Fatal(err)
		}
		taken.Release(t.Context())
	})
}

// brittle is a store that panics once in a decision after on was set.
type brittle struct {
	ratelimit.Store
	on *atomic.Bool
}

func (b brittle) Decide(ctx context.Context, call *engine.Call) (engine.Verdict, error) {
	if b.on.CompareAndSwap(true, false) {
		panic("a bug of the program")
	}
	return b.Store.Decide(ctx, call)
}

// A panic of a call that waits, which its caller recovers, takes the call out of its line: the one behind it is admitted next, and at once.
func TestPanicOfAWaiter(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *subject) {
		on := new(atomic.Bool)
		s.limiter = ratelimit.New(brittle{s.store, on})
		rule := atATime(1)
		rule.Wait = time.Hour
		rules := wrap.NewRules("p.T.M", rule)
		taken, err := s.begin(t, t.Context(), rules)
		if err != nil {
			t.Fatal(err)
		}
		var ended sync.WaitGroup
		ended.Go(func() { panics(t, func() { _, _ = s.begin(t, t.Context(), rules) }) })
		synctest.Wait()
		ended.Go(func() {
			if _, err := s.begin(t, t.Context(), rules); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		on.Store(true)
		began := time.Now()
		taken.Release(t.Context())
		ended.Wait()
		if waited := time.Since(began); waited > 0 {
			t.Errorf("the call behind it waited for %v after the release", waited)
		}
	})
}

// late is a hook that panics once after the reply to a decision, after on was set.
type late struct{ on *atomic.Bool }

func (late) DialHook(next redis.DialHook) redis.DialHook { return next }

func (l late) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if cmd.Name() == "fcall" && l.on.CompareAndSwap(true, false) {
			panic("a bug of the program")
		}
		return err
	}
}

func (late) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// A panic in a hook of the client leaves no permit of a call that does not run, although the server has admitted it.
func TestPanicAfterTheReply(t *testing.T) {
	t.Parallel()
	server, on := redistest.Start(t), new(atomic.Bool)
	client := connect(t, server.Addr)
	load(t, client)
	client.AddHook(late{on})
	s, direct := &subject{limiter: ratelimit.New(scripted(client))}, onServer(t, server)
	rule := atATime(1)
	rule.Per = time.Hour
	rules := wrap.NewRules("p.T.M", rule)
	if n := s.running(t, rule); n != 0 {
		t.Fatal(n)
	}
	on.Store(true)
	panics(t, func() { _, _ = s.begin(t, t.Context(), rules) })
	redistest.Eventually(t, "nothing runs", func() bool { return direct.running(t, rule) == 0 })
}
