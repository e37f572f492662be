package main

import (
	"bytes"
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
)

func Example() {
	main()
	// Output:
	// 1000 points within 3 seconds set off a trigger, once.
	//   ann scores 400: done
	//   ann scores 400: done
	//   trigger cheating: ann has 1200 points of 1000
	//   ann scores 400: done
	//   ann scores 400: done
	// The level decides how much gold may be spent a day.
	//   bob spends 1500 on level 1: examples/game.Arena.Trade: a cost of 1500 can never be admitted: the limit is 1000
	//   bob spends 1500 on level 2: done
	//   bob spends 1500 more: refused: bob may spend no more today. Retry after 11h59m58s.
	// Ten strangers a day.
	//   ann talks to the eleventh stranger: refused: Ten strangers a day. Retry after 11h59m58s.
	//   ann talks to the first one again: done
	//   ann talks to a friend: done
	// A match that could not be entered does not count.
	//   ann joins full: the match is full
	//   ann joins full: the match is full
	//   ann joins full: the match is full
	//   ann joins full: the match is full
	//   ann joins a: done
	//   ann joins b: done
	//   ann joins c: done
	//   ann joins d: refused: Too many requests. Retry after 1h0m0s.
	// Gestures beyond the limit are dropped.
	//   5 waves, 2 seen
}

// The output on Redis is that of Example, except for the delays, which depend on the time of day.
func TestOnRedis(t *testing.T) {
	var here, there bytes.Buffer
	if err := errors.Join(run(&here, ""), run(&there, "redis://"+redistest.Start(t).Addr+"?read_timeout=1m")); err != nil {
		t.Fatal(err)
	}
	delay := regexp.MustCompile(`Retry after \S+`)
	got, want := delay.ReplaceAllString(there.String(), ""), delay.ReplaceAllString(here.String(), "")
	if got != want {
		t.Errorf("got\n%s\nexpected\n%s", got, want)
	}
	if err := run(&here, "localhost"); err == nil || !strings.HasPrefix(err.Error(), "REDIS_URL: ") {
		t.Error(err)
	}
}

// crashing is an arena whose matches crash.
type crashing struct{ Arena }

func (crashing) Join(context.Context, string, string) error { panic("crash") }

func TestPanicGivesBack(t *testing.T) {
	limiter := ratelimit.New(memstore.New())
	arena := NewLimitedArena(crashing{}, limiter)
	for range 10 { // of which three would be admitted
		func() {
			defer func() {
				if r := recover(); r != "crash" {
					t.Errorf("recovered %v; expected the panic of the match", r)
				}
			}()
			err := arena.Join(t.Context(), "ann", "a")
			t.Errorf("Join returned %v; expected a panic", err)
		}()
	}
	if err := NewLimitedArena(&hall{}, limiter).Join(t.Context(), "ann", "a"); err != nil {
		t.Error(err)
	}
}

// TestTriggerIsSetAgain expects a second trigger after the sum has fallen below the limit.
func TestTriggerIsSetAgain(t *testing.T) {
	now := time.Date(2026, time.March, 2, 3, 0, 0, 0, time.UTC)
	fired := 0
	arena := NewLimitedArena(&hall{}, ratelimit.New(
		memstore.New(memstore.WithClock(func() time.Time { return now })),
		ratelimit.WithTrigger(func(context.Context, ratelimit.Trigger) { fired++ }),
	))
	for i, step := range []struct {
		after  time.Duration
		points int
		fired  int
	}{
		{0, 999, 0}, {time.Second, 1, 1}, {0, 5000, 1}, {10 * time.Second, 999, 1}, {time.Second, 1, 2},
	} {
		now = now.Add(step.after)
		if err := arena.Score(t.Context(), "ann", step.points); err != nil {
			t.Fatal(err)
		}
		if fired != step.fired {
			t.Errorf("step %d: %d triggers; expected %d", i, fired, step.fired)
		}
	}
}

func TestStrangersOfTwoPlayers(t *testing.T) {
	noon := time.Date(2026, time.March, 2, 3, 0, 0, 0, time.UTC)
	arena := NewLimitedArena(&hall{}, ratelimit.New(memstore.New(memstore.WithClock(func() time.Time { return noon }))))
	for _, player := range []string{"ann", "bob"} {
		for i := range 20 {
			err := arena.Talk(t.Context(), player, string(rune('a'+i)), "hello")
			if refused := errors.Is(err, ratelimit.ErrTooManyRequests); refused != (i >= 10) || refused != (err != nil) {
				t.Errorf("stranger %d of %s: %v", i, player, err)
			}
		}
	}
}
