package redisstore

import (
	"fmt"
	"testing"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/redistest"
)

// daily returns a rule of calendar windows, of which one begins at a time of each day.
func daily(t *testing.T, at time.Time) *engine.Rule {
	spec := fmt.Sprintf("%d %d %d * * *", at.Second(), at.Minute(), at.Hour())
	return &engine.Rule{Name: "daily", Tag: "cron", Kind: engine.Calendar, Schedule: schedule(t, spec)}
}

// A call that may wait for the next calendar window gets its place there, whatever this process takes for the server's time.
func TestPlacesByAWrongClock(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	n, err := s.node(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	next := time.Now().Add(time.Hour).Truncate(time.Second).UTC()
	every := &engine.Rule{Name: "every", Tag: "every", Kind: engine.Anchored, Every: engine.Every{Days: 1, Zone: time.UTC}}
	anchor, _ := engine.AnchorAt(next)
	for i, off := range []time.Duration{0, -2 * time.Hour, 2 * time.Hour, -72 * time.Hour, 72 * time.Hour, -400 * 24 * time.Hour, 400 * 24 * time.Hour} {
		for _, rule := range []*engine.Rule{daily(t, next), every} {
			call := of(rule, 1, fmt.Sprint(i))
			call.Claims[0].Anchor = anchor
			if v, _ := decideOnce(t, s, call); !v.Admitted {
				t.Fatalf("%s: refused", rule.Name)
			}
			call.Claims[0].Wait = (90 * time.Minute).Microseconds()
			n.noteTime(time.Now().Add(off).UnixMicro())
			if v, _ := decideOnce(t, s, call); !v.Admitted || v.At != next.UnixMicro() {
				t.Errorf("%s, off by %s: got %+v, want a place at %s", rule.Name, off, v, next)
			}
		}
	}
}

// A calendar window is kept if it is one of the next 64, opened or not. A call that needs a later one is sent only once.
func TestPlacesAfterTheWindows(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client, sent := connect(t, server.Addr), new(decisions)
	client.AddHook(sent)
	s := New(client, asking...).(*store)
	decideOnce(t, s, of(minute, 9, "warm"))
	redistest.Eventually(t, "the function", func() bool { return server.Do("FUNCTION LIST") != "" })
	day := daily(t, time.Now().Add(time.Hour).UTC())
	for _, days := range []int64{64, 65} {
		call := of(&engine.Rule{Name: "long", Tag: "long", Kind: engine.FixedWindow, Per: days * 86_400 * second}, 1, fmt.Sprint(days))
		call.Claims = append(call.Claims, of(day, 9, fmt.Sprint(days)).Claims...)
		decideOnce(t, s, call)
		for i := range call.Claims {
			call.Claims[i].Wait = 100 * 86_400 * second
		}
		before := sent.seen.Load()
		v, _ := decideOnce(t, s, call)
		if n := sent.seen.Load() - before; v.Admitted != (days == 64) || v.At-v.Now < (days-1)*86_400*second || n != 1 {
			t.Errorf("a place in %d days: got %+v, sent %d times", days, v, n)
		}
	}
}
