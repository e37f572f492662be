package behaviour_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// pausable are a rule that has a marker of pauses, and rules that settings pause.
var pausable = map[string]ratelimit.Rule{
	"marker":  {Name: "marked", Algorithm: ratelimit.TokenBucket, Limit: 1000, Per: time.Second, Burst: 5, Pausable: true},
	"setting": {Name: "set", Algorithm: ratelimit.TokenBucket, Limit: 1000, Per: time.Second, Burst: 5},
	"running": {Name: "run", Algorithm: ratelimit.Concurrency, Limit: 5},
}

// During a pause calls that may wait hold, and others are refused until its end. Other keys go on. Resume ends it at once.
func TestPause(t *testing.T) {
	inRealTime(t, func(t *testing.T, s *subject) {
		for kind, rule := range pausable {
			l, ctx, q := s.limiter, t.Context(), ratelimit.Request{Rule: rule, Key: "ann"}
			if err := l.Pause(ctx, time.Hour, q); err != nil {
				t.Fatal(err)
			}
			d, err := l.Allow(ctx, q)
			if err != nil || d.Allowed || d.Never || d.Source != ratelimit.SourcePause || d.RetryAfter > time.Hour || d.RetryAfter < 50*time.Minute {
				t.Fatalf("%s: got %+v, error %v", kind, d, err)
			}
			if d, err := l.Peek(ctx, q); err != nil || d.Allowed || d.Source != ratelimit.SourcePause {
				t.Errorf("%s: a peek tells %+v, error %v", kind, d, err)
			}
			if d, err := l.Allow(ctx, ratelimit.Request{Rule: rule, Key: "bob"}); err != nil || !d.Allowed {
				t.Errorf("%s: another key: %+v, error %v", kind, d, err)
			}
			short, cancel := context.WithTimeout(ctx, 20*time.Minute)
			if _, err := l.Wait(short, q); !errors.Is(err, ratelimit.ErrTooManyRequests) {
				t.Errorf("%s: a call with too little time: %v", kind, err)
			}
			cancel()
			gone := make(chan error)
			go func() {
				_, err := l.Wait(ctx, q)
				gone <- err
			}()
			select {
			case err := <-gone:
				t.Fatalf("%s: a call goes on in the pause: %v", kind, err)
			case <-time.After(50 * time.Millisecond):
			}
			if err := l.Resume(ctx, q); err != nil {
				t.Fatal(err)
			}
			if err := <-gone; err != nil {
				t.Errorf("%s: after the pause: %v", kind, err)
			}
			if d, err := l.Allow(ctx, q); err != nil || !d.Allowed {
				t.Errorf("%s: after the pause: %+v, error %v", kind, d, err)
			}
		}
	})
}

// A pause by hand replaces another one. It ends by itself.
func TestPauseIsReplaced(t *testing.T) {
	inRealTime(t, func(t *testing.T, s *subject) {
		for kind, rule := range pausable {
			q, l := ratelimit.Request{Rule: rule, Key: "ann"}, s.limiter
			for _, d := range []time.Duration{time.Hour, 100 * time.Millisecond} {
				if err := l.Pause(t.Context(), d, q); err != nil {
					t.Fatal(err)
				}
			}
			if d, err := l.Allow(t.Context(), q); err != nil || d.RetryAfter > 100*time.Millisecond {
				t.Errorf("%s: got %+v, error %v", kind, d, err)
			}
			if _, err := l.Wait(t.Context(), q); err != nil {
				t.Errorf("%s: %v", kind, err)
			}
		}
	})
}

// Calls of three programs sleep for their places when a pause begins. No call is admitted that asked after the pause was stored. Then they go on
// within the limit, those of each program in their order, and a context that ends takes one call out.
func TestPauseOfSleepingCalls(t *testing.T) {
	const programs, waiters = 3, 20
	inVirtualTime(t, func(t *testing.T, s *subject) {
		var limiters [programs]*ratelimit.Limiter
		for p := range limiters {
			limiters[p] = s.another()
		}
		rule := ratelimit.Rule{Name: "far", Algorithm: ratelimit.LeakyBucket, Limit: 20, Per: time.Second, Pausable: true}
		q, ctx := ratelimit.Request{Rule: rule, Key: "account"}, t.Context()
		var mu sync.Mutex
		var admitted [programs]map[int]time.Time
		var all sync.WaitGroup
		left, cancel := context.WithCancel(ctx)
		for p := range admitted {
			admitted[p] = map[int]time.Time{}
		}
		for n := range waiters {
			for p, l := range limiters {
				free := nextPlace(t, l, q)
				all.Go(func() {
					of := ctx
					if n == waiters-1 {
						of = left
					}
					d, err := l.Wait(of, q)
					mu.Lock()
					defer mu.Unlock()
					switch {
					case err == nil:
						admitted[p][n] = d.At
					case n < waiters-1 || !errors.Is(err, context.Canceled):
						t.Error(err)
					}
				})
				for nextPlace(t, l, q).Before(free.Add(rule.Per / time.Duration(rule.Limit))) { // so that the calls come one after the other
					time.Sleep(100 * time.Microsecond)
				}
			}
		}
		began := time.Now()
		if err := limiters[0].Pause(ctx, 700*time.Millisecond, q); err != nil {
			t.Fatal(err)
		}
		stored := time.Now()
		cancel()
		all.Wait()
		resumed, after := began.Add(700*time.Millisecond), 0
		for p := range admitted {
			if at := admitted[p][waiters-1]; at.After(stored) { // on a slow machine it may have gone before the pause
				t.Errorf("program %d: a call whose context ended in the pause is admitted %v after the pause was stored", p, at.Sub(stored))
			}
			var before, held time.Time // each in order; a call that asks late may be held, although one behind it has gone
			for n := range waiters - 1 {
				at := admitted[p][n]
				last := &before
				if at.After(stored) {
					last = &held
				}
				if at.After(stored) && at.Before(resumed) {
					t.Errorf("program %d: call %d is admitted %v after the pause was stored", p, n, at.Sub(stored))
				}
				if at.After(resumed) {
					after++
				}
				if at.Before(*last) {
					t.Errorf("program %d: call %d is admitted %v before an earlier one", p, n, last.Sub(at))
				}
				*last = at
			}
		}
		if after < programs {
			t.Errorf("only %d calls went on after the pause", after)
		}
	})
}

// nextPlace returns when the next call would be admitted, by the clock of the store.
func nextPlace(t *testing.T, l *ratelimit.Limiter, q ratelimit.Request) time.Time {
	t.Helper()
	d, err := l.Peek(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return d.At.Add(d.RetryAfter)
}

// A rule without pauses reads no marker. One with pauses reads one for each decision, in the same run.
func TestOnlyRulesWithPausesReadAMarker(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := connect(t, server.Addr)
	load(t, client)
	limiter := ratelimit.New(scripted(client))
	ran := func(command string) (n int) {
		_, after, _ := strings.Cut(server.Do("INFO commandstats"), "cmdstat_"+command+":calls=")
		_, _ = fmt.Sscan(strings.SplitN(after, ",", 2)[0], &n) // 0 if it never ran
		return n
	}
	for want, rule := range []ratelimit.Rule{{Name: "plain", Limit: 100, Per: time.Hour}, {Name: "far", Limit: 100, Per: time.Hour, Pausable: true}} {
		const decisions = 10
		reads, runs := ran("get"), ran("fcall")
		for range decisions {
			if d, err := limiter.Allow(t.Context(), ratelimit.Request{Rule: rule, Key: "ann"}); err != nil || !d.Allowed {
				t.Fatalf("got %+v, %v", d, err)
			}
		}
		if reads, runs = ran("get")-reads, ran("fcall")-runs; reads != want*decisions || runs != decisions {
			t.Errorf("%s: %d decisions run %d times, and read %d markers", rule.Name, decisions, runs, reads)
		}
	}
}

// A key that is paused twice in one call has one pause.
func TestPauseOfOneKeyTwice(t *testing.T) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		q := ratelimit.Request{Rule: ratelimit.Rule{Name: "r", Limit: 5, Per: time.Hour, Pausable: true}, Key: "ann"}
		if err := s.limiter.Pause(t.Context(), time.Hour, q, q); err != nil {
			t.Fatal(err)
		}
		s.refuse(t, q)
		if err := s.limiter.Resume(t.Context(), q); err != nil {
			t.Fatal(err)
		}
		s.admit(t, q)
	})
}
