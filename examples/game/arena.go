package main

import (
	"context"
	"errors"
)

//go:generate go run github.com/ratelimit-go/ratelimit/cmd/ratelimit

// Arena is where players meet.
//
//ratelimit:wrap tz=Asia/Tokyo
type Arena interface {
	// Score adds points to a player. More than 1000 points in 3 seconds are probably cheating, which triggers an alert.
	//
	//ratelimit:rule key="{player}" limit=1000 per=3s algorithm=sliding-counter slices=30 cost=points mode=trigger name=cheating
	Score(ctx context.Context, player string, points int) error

	// Trade spends gold of a player. A player on a higher level may spend more.
	//
	//ratelimit:rule key="{player.Name}" limit="1000 * player.Level" cron=@daily cost=gold message="{player.Name} may spend no more today."
	Trade(ctx context.Context, player *Player, gold int) error

	// Talk sends a message. A player may talk to ten strangers a day, and to each of them any number of times.
	//
	//ratelimit:rule key="{player}" distinct="{to}" limit=10 cron=@daily when="!friends(player, to)" message="Ten strangers a day."
	Talk(ctx context.Context, player, to, text string) error

	// Join enters a match. A failed attempt does not count.
	//
	//ratelimit:rule key="{player}" limit=3 per=1h refund=error
	Join(ctx context.Context, player, match string) error

	// Wave shows a gesture. Gestures beyond the limit are not shown.
	//
	//ratelimit:rule key="{player}" limit=2 per=1s
	//ratelimit:fallback unseen
	Wave(player string)
}

// Player is a player.
type Player struct {
	Name  string
	Level int
}

func friends(a, b string) bool { return a == "ann" && b == "bob" || a == "bob" && b == "ann" }

func unseen(string) {}

var errFull = errors.New("the match is full")

// hall is an arena without limits.
type hall struct{ waves int }

func (*hall) Score(context.Context, string, int) error           { return nil }
func (*hall) Trade(context.Context, *Player, int) error          { return nil }
func (*hall) Talk(context.Context, string, string, string) error { return nil }
func (h *hall) Wave(string)                                      { h.waves++ }

func (*hall) Join(_ context.Context, _, match string) error {
	if match == "full" {
		return errFull
	}
	return nil
}
