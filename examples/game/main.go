// Game shows rules that count other things than calls: points within some seconds, which set off a trigger; gold, with a limit that
// depends on the player's level; strangers, each of whom counts once a day; successful attempts to join a match; and gestures that
// are dropped rather than refused. The directives are in arena.go.
//
// It counts in this process, with a clock that it moves itself, or on Redis if REDIS_URL is set:
//
//	go run .
//	REDIS_URL=redis://127.0.0.1:6379 go run .
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/redis/go-redis/v9"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
)

func main() {
	if err := run(os.Stdout, os.Getenv("REDIS_URL")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run runs the demonstration on the Redis server at a URL, or in this process if the URL is "". The read_timeout in the URL limits
// the time of a decision.
func run(out io.Writer, url string) error {
	s := &story{out: out, pass: time.Sleep}
	if url == "" {
		now := time.Date(2026, time.March, 2, 3, 0, 0, 0, time.UTC) // noon in Tokyo
		s.pass = func(d time.Duration) { now = now.Add(d) }
		return s.tell(memstore.New(memstore.WithClock(func() time.Time { return now })))
	}
	options, err := redis.ParseURL(url)
	if err != nil {
		return fmt.Errorf("REDIS_URL: %w", err)
	}
	client := redis.NewClient(options)
	defer client.Close()
	return s.tell(redisstore.New(client, redisstore.WithTimeout(cmp.Or(options.ReadTimeout, 250*time.Millisecond))))
}

// story makes calls and prints their results.
type story struct {
	out  io.Writer
	pass func(time.Duration)
}

func (s *story) tell(store ratelimit.Store) error {
	// A real program always uses the same prefix. This one uses a new prefix each time, so that its output is always the same.
	limiter := ratelimit.New(store, ratelimit.WithPrefix(fmt.Sprintf("game-demo-%d", time.Now().UnixMicro())),
		ratelimit.WithTrigger(func(_ context.Context, t ratelimit.Trigger) {
			fmt.Fprintf(s.out, "  trigger %s: %s has %d points of %d\n", t.Rule, t.Key, t.Used, t.Limit)
		}))
	if err := limiter.Ping(context.Background()); err != nil {
		return err
	}
	plain := &hall{}
	arena := NewLimitedArena(plain, limiter)
	ctx := context.Background()

	fmt.Fprintln(s.out, "1000 points within 3 seconds set off a trigger, once.")
	for range 4 {
		s.say("ann scores 400", arena.Score(ctx, "ann", 400))
		s.pass(time.Second / 2)
	}

	fmt.Fprintln(s.out, "The level decides how much gold may be spent a day.")
	s.say("bob spends 1500 on level 1", arena.Trade(ctx, &Player{"bob", 1}, 1500))
	s.say("bob spends 1500 on level 2", arena.Trade(ctx, &Player{"bob", 2}, 1500))
	s.say("bob spends 1500 more", arena.Trade(ctx, &Player{"bob", 2}, 1500))

	fmt.Fprintln(s.out, "Ten strangers a day.")
	for i := range 10 {
		if err := arena.Talk(ctx, "ann", fmt.Sprint("player", i), "hello"); err != nil {
			s.say("ann talks to a stranger", err)
		}
	}
	s.say("ann talks to the eleventh stranger", arena.Talk(ctx, "ann", "player10", "hello"))
	s.say("ann talks to the first one again", arena.Talk(ctx, "ann", "player0", "hello again"))
	s.say("ann talks to a friend", arena.Talk(ctx, "ann", "bob", "hello"))

	fmt.Fprintln(s.out, "A match that could not be entered does not count.")
	for _, match := range []string{"full", "full", "full", "full", "a", "b", "c", "d"} {
		s.say("ann joins "+match, arena.Join(ctx, "ann", match))
	}

	fmt.Fprintln(s.out, "Gestures beyond the limit are dropped.")
	for range 5 {
		arena.Wave("ann")
	}
	fmt.Fprintf(s.out, "  5 waves, %d seen\n", plain.waves)
	return nil
}

// say prints the result of a call.
func (s *story) say(what string, err error) {
	if refusal, ok := errors.AsType[*ratelimit.TooManyRequestsError](err); ok {
		fmt.Fprintf(s.out, "  %s: refused: %s Retry after %s.\n", what, refusal.Message, refusal.RetryAfter)
		return
	}
	if err != nil {
		fmt.Fprintf(s.out, "  %s: %s\n", what, err)
		return
	}
	fmt.Fprintf(s.out, "  %s: done\n", what)
}
