package fleet_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/redistest"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
)

// No command of a beat moves more than 100 entries: of a process that reads all settings there can be, declares 990 rules beside those of another
// program, publishes statistics of 100 rules, and is listed beside 1,500 processes. The same when the server has lost all.
func TestBeatsMoveFewEntries(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	synctest.Test(t, func(t *testing.T) { // a loss is followed within ten seconds
		c, _ := client(t, server.Addr, 0)
		var settings []*fleet.Setting
		for i := range fleet.MaxSettings {
			settings = append(settings, override("r", fmt.Sprint("k", i), 1))
		}
		var processes []*fleet.Fleet
		for i := range 2 {
			c, e := client(t, server.Addr, 0)
			e.beats = true
			f := redisstore.New(c, redisstore.WithStats()).Fleet("p")
			f.Hide()
			register(f, fmt.Sprint("program", i), 990)
			processes = append(processes, f)
		}
		beats := func() {
			for range 12 {
				list(t, c, 1500, processes[0].Now())
				for _, f := range processes {
					for i := range fleet.MaxReportRules {
						f.Stats.Lock()
						f.Stats.Count(uint64(i), fmt.Sprint("rule", i), "1m", "ann", fleet.Counts{Calls: 4, Refused: 3, Shadow: 2, Failed: 1})
						f.Stats.Unlock()
					}
					f.Beat()
				}
				time.Sleep(time.Second)
			}
			rules, listed := server.Do("HLEN p.seen:{p}:rules"), server.Do("HLEN p.seen:{p}:processes")
			for _, f := range processes {
				if n := len(f.KnownTexts()); n != fleet.MaxSettings || f.Status().Lost > 0 || rules != "1980" || listed != "1502" {
					t.Fatalf("%d settings are known, %+v, %s rules are declared, %s processes are listed", n, f.Status(), rules, listed)
				}
			}
		}
		for range 2 {
			tool := of(c, "p")
			set(t, tool, "kim", settings...)
			beats()
			server.Do("FLUSHALL")
		}
	})
}

// twice is a hook that passes the first field of each part of a hash twice, as a server may do while the hash shrinks.
type twice struct{ *failing }

func (twice) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		if cmds[0].Name() == "hscan" {
			reply := cmds[0].(*redis.Cmd).Val().([]any)
			page := reply[1].([]any)
			reply[1] = append(page, page[:min(2, len(page))]...)
		}
		return err
	}
}

// A process is listed once, and a count is added to the sums once, also if the server passes them twice.
func TestFieldsThatComeTwice(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	c, _ := client(t, server.Addr, 0)
	c.AddHook(twice{new(failing)})
	list(t, c, 600, time.Now())
	f := of(c, "p")
	if all, err := f.Processes(t.Context()); err != nil || len(all) != 600 {
		t.Errorf("600 processes are listed %d times, %v", len(all), err)
	}
	slot := time.Now().Unix() / 5
	c.HSet(t.Context(), fmt.Sprint("p.seen:{p}:history:", slot/24), fmt.Sprintf("%d calls r 1m", slot), 5)
	slots, err := f.History(t.Context(), time.Time{})
	sum := int64(0)
	for _, s := range slots {
		for _, r := range s.Rules {
			sum += r.Calls
		}
	}
	if err != nil || sum != 5 {
		t.Errorf("5 calls are counted as %d, %v", sum, err)
	}
}

// A tool reads few entries at a time, too: also of all slots of the history with most rules, in which each count is found once.
func TestToolsReadInParts(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	c, _ := client(t, server.Addr, 0)
	list(t, c, 100, time.Now())
	f := of(c, "p")
	processes, err := f.Processes(t.Context())
	if err != nil || len(processes) != 100 {
		t.Fatalf("%d processes, %v", len(processes), err)
	}
	for _, p := range processes {
		c.Set(t.Context(), "p.seen:{p}:report:"+p.ID, fmt.Sprintf(`{"seconds":5,"rules":[{"name":"%s","tag":"1m","calls":1}]}`, p.ID), time.Minute)
	}
	reports, err := f.Reports(t.Context(), processes)
	if err != nil || len(reports) != 100 {
		t.Fatalf("%d reports, %v", len(reports), err)
	}
	for _, r := range reports {
		if r.Rules[0].Name != r.Process.ID {
			t.Errorf("the report of %s is that of %s", r.Process.ID, r.Rules[0].Name)
		}
	}
	now := time.Now().Unix()
	for slot := now/5 - 120; slot <= now/5; slot++ {
		fields := []any{}
		for rule := range fleet.MaxReportRules {
			for _, kind := range strings.Fields("calls refused shadow failed") {
				fields = append(fields, fmt.Sprintf("%d %s rule%d 1m", slot, kind, rule), 2)
			}
		}
		c.HSet(t.Context(), fmt.Sprint("p.seen:{p}:history:", slot/24), fields...)
	}
	slots, err := f.History(t.Context(), time.Time{})
	if err != nil || len(slots) != 120 {
		t.Fatalf("%d slots, %v", len(slots), err)
	}
	for _, slot := range slots {
		if n := len(slot.Rules); slot.At.Unix() <= now-5 && n != fleet.MaxReportRules {
			t.Fatalf("%d rules at %s", n, slot.At)
		}
		for _, r := range slot.Rules {
			if want := (fleet.Counts{Calls: 2, Refused: 2, Shadow: 2, Failed: 2}); r.Counts != want {
				t.Fatalf("%s at %s: got %+v", r.Name, slot.At, r.Counts)
			}
		}
	}
}
