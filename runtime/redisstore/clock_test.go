package redisstore

import (
	"fmt"
	"testing"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/engine"
)

// A call that may wait for the next calendar window gets its place there, whatever this process takes for the server's time.
func TestPlacesByAWrongClock(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	n, err := s.node(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	next := time.Now().Add(time.Hour).Truncate(time.Second).UTC()
	daily := &engine.Rule{
		Name: "daily", Tag: "cron", Kind: engine.Calendar, Schedule: schedule(t, fmt.Sprintf("%d %d %d * * *", next.Second(), next.Minute(), next.Hour())),
	}
	every := &engine.Rule{Name: "every", Tag: "every", Kind: engine.Anchored, Every: engine.Every{Days: 1, Zone: time.UTC}}
	anchor, _ := engine.AnchorAt(next)
	for i, off := range []time.Duration{0, -2 * time.Hour, 2 * time.Hour, -72 * time.Hour, 72 * time.Hour, -400 * 24 * time.Hour, 400 * 24 * time.Hour} {
		for _, rule := range []*engine.Rule{daily, every} {
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
