package fleet_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/redistest"
)

// The newest changes are kept, and listed from the last one on. What a program changes without an actor is none. A change is at most 1 kB long: if
// the setting before and the one after do not fit, they are left out.
func TestChangesAreBounded(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	c, _ := client(t, server.Addr, 0)
	for name, f := range map[string]*fleet.Fleet{"server": of(c, "p"), "process": fleet.NewLocal(time.Now, nil)} {
		t.Run(name, func(t *testing.T) {
			for i := range fleet.MaxChanges + 5 {
				if err := f.Note(t.Context(), fleet.Change{By: "kim", What: "reset", Rule: "r", Key: fmt.Sprint(i)}); err != nil {
					t.Fatal(err)
				}
			}
			set(t, f, "", override("r", "", 1))
			if err := f.Note(t.Context(), fleet.Change{What: "reset", Rule: "r"}); err != nil {
				t.Fatal(err)
			}
			all, err := f.Changes(t.Context())
			if err != nil || len(all) != fleet.MaxChanges {
				t.Fatalf("%d changes, %v", len(all), err)
			}
			for i, change := range all {
				if want := fmt.Sprint(fleet.MaxChanges + 4 - i); change.Key != want || change.By != "kim" || change.At.IsZero() {
					t.Fatalf("change %d is %+v, want key %s", i, change, want)
				}
			}
		})
	}
	if n := c.LLen(t.Context(), "p.fleet:{p}:changes").Val(); n != fleet.MaxChanges {
		t.Errorf("%d changes are kept", n)
	}
	f, long := of(c, "q"), strings.Repeat("k", 128)
	for i := range 2 {
		e := fleet.Edit{Actor: fleet.Actor{By: "kim", Reason: strings.Repeat("because ", 25)}, What: "set", Settings: []*fleet.Setting{override(long, long, int64(i))}}
		if _, err := f.Change(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	quoted := strings.Repeat(`"<`, 100)
	if err := f.Note(t.Context(), fleet.Change{By: quoted, Reason: quoted, What: "reset", Rule: "r"}); err != nil {
		t.Fatal(err)
	}
	for _, text := range c.LRange(t.Context(), "q.fleet:{q}:changes", 0, -1).Val() {
		if len(text) > fleet.MaxText {
			t.Errorf("a change of %d bytes is kept: %s", len(text), text)
		}
	}
	all, err := f.Changes(t.Context())
	if err != nil || len(all) != 3 || !strings.HasPrefix(all[0].Reason, `"<"<`) || all[0].Rule != "r" {
		t.Fatalf("got %+v, %v", all, err)
	}
	if all = all[1:]; all[0].After != nil || all[1].After == nil || all[0].Rule != long {
		t.Errorf("got %+v", all)
	}
}
