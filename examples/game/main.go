// Game shows rules that count more than calls: points within some seconds, which set off a trigger; gold, of which the players'
// levels decide how much; strangers a day, of whom each counts once; matches that could really be entered; and gestures
// that are dropped rather than refused. The directives stand in arena.go.
//
//	go run .
package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
)

func main() {
	now := time.Date(2026, time.March, 2, 3, 0, 0, 0, time.UTC) // noon in Tokyo
	limiter := ratelimit.New(
		memstore.New(memstore.WithClock(func() time.Time { return now })),
		ratelimit.WithTrigger(func(_ context.Context, t ratelimit.Trigger) {
			fmt.Printf("  trigger %s: %s has %d points of %d\n", t.Rule, t.Key, t.Used, t.Limit)
		}),
	)
	plain := &hall{}
	arena := NewLimitedArena(plain, limiter)
	ctx := context.Background()

	fmt.Println("1000 points within 3 seconds set off a trigger, once.")
	for range 4 {
		say("ann scores 400", arena.Score(ctx, "ann", 400))
		now = now.Add(time.Second / 2)
	}

	fmt.Println("The level decides how much gold may be spent a day.")
	say("bob spends 1500 on level 1", arena.Trade(ctx, &Player{"bob", 1}, 1500))
	say("bob spends 1500 on level 2", arena.Trade(ctx, &Player{"bob", 2}, 1500))
	say("bob spends 1500 more", arena.Trade(ctx, &Player{"bob", 2}, 1500))

	fmt.Println("Ten strangers a day.")
	for i := range 10 {
		if err := arena.Talk(ctx, "ann", fmt.Sprint("player", i), "hello"); err != nil {
			say("ann talks to a stranger", err)
		}
	}
	say("ann talks to the eleventh stranger", arena.Talk(ctx, "ann", "player10", "hello"))
	say("ann talks to the first one again", arena.Talk(ctx, "ann", "player0", "hello again"))
	say("ann talks to a friend", arena.Talk(ctx, "ann", "bob", "hello"))

	fmt.Println("A match that could not be entered does not count.")
	for _, match := range []string{"full", "full", "full", "full", "a", "b", "c", "d"} {
		say("ann joins "+match, arena.Join(ctx, "ann", match))
	}

	fmt.Println("Gestures beyond the limit are dropped.")
	for range 5 {
		arena.Wave("ann")
	}
	fmt.Printf("  5 waves, %d seen\n", plain.waves)
}

// say prints what became of a call.
func say(what string, err error) {
	if refusal, ok := errors.AsType[*ratelimit.TooManyRequestsError](err); ok {
		fmt.Printf("  %s: refused: %s Retry after %s.\n", what, refusal.Message, refusal.RetryAfter)
		return
	}
	if err != nil {
		fmt.Printf("  %s: %s\n", what, err)
		return
	}
	fmt.Printf("  %s: done\n", what)
}
