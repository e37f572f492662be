package main

import (
	"context"
	"fmt"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/redistest"
	"github.com/ratelimit-go/ratelimit/runtime/console"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
)

// ahead is a hook that makes the clock of this process wrong by so much, by those of servers.
type ahead time.Duration

func (ahead) DialHook(next redis.DialHook) redis.DialHook { return next }

func (a ahead) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if clock, ok := cmd.(*redis.TimeCmd); ok {
			clock.SetVal(time.Now().Add(-time.Duration(a)))
		}
		return err
	}
}

func (ahead) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// ofServer is what the first page of the console says of the server, and of its clock.
var ofServer = regexp.MustCompile(`<dt>Memory</dt><dd>[^<]*|the server&#39;s clock is [^:]*`)

// views returns what a tool reads of statistics, and what top and the console make of it.
func views(t *testing.T, s *session) map[string]string {
	f, err := readFrame(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{"top": f.text(0)}
	for _, path := range []string{"/", "/live", "/rule?name=login"} {
		w := httptest.NewRecorder()
		console.New(s.limiter).ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		all[path] = ofServer.ReplaceAllString(w.Body.String(), "")
	}
	of := s.store.Fleet(s.prefix.Name())
	processes, err := of.Processes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	reports, err := of.Reports(t.Context(), processes)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range reports {
		all["reports"] += fmt.Sprintln(r.Process.Ahead, r)
	}
	slots, err := of.History(t.Context(), time.Time{})
	for _, slot := range slots {
		all["history"] += fmt.Sprintln(slot.At.UnixMilli(), slot.Rules)
	}
	if err != nil || len(slots) != 120 || len(slots[118].Rules) != 1 || slots[118].Rules[0].Counts != (fleet.Counts{Calls: 40, Refused: 35}) {
		t.Errorf("%v; the history is %s", err, all["history"])
	}
	return all
}

// Statistics go by the server's clock. Processes with wrong clocks count in the same slots and sums as a right one, and a machine with a wrong clock
// shows what a right one shows.
func TestStatisticsByTheServersClock(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--slowlog-log-slower-than", "1000000")
	const calling = 8 * time.Second                                    // a process publishes after four to five
	start := time.Now().Add(24 * time.Hour).Truncate(fleet.SlotLength) // by the server's clock, which the hook makes
	clocks := []time.Duration{-2 * time.Hour, 0, 10 * time.Minute, 2 * time.Hour}
	synctest.Test(t, func(t *testing.T) {
		for _, off := range clocks {
			time.Sleep(time.Until(start.Add(off)))
			p := newFleet(t, server.Addr, redisstore.WithStats())
			p.client.AddHook(ahead(off))
			p.allow(10, login, "ann")
			time.Sleep(calling)
			for _, key := range p.client.Keys(t.Context(), "ratelimit.seen:*").Val() {
				p.client.Persist(t.Context(), key)
			}
			_ = p.client.Close()
		}
	})
	shown := map[string]string{}
	synctest.Test(t, func(t *testing.T) {
		for _, off := range clocks {
			time.Sleep(time.Until(start.Add(off + calling)))
			s := &session{input: &input{env: env("redis://" + server.Addr)}, output: new(output)}
			if err := s.connect(t.Context()); err != nil {
				t.Fatal(err)
			}
			defer s.client.Close()
			s.client.AddHook(ahead(off))
			for name, text := range views(t, s) {
				if before, known := shown[name]; known && text != before {
					t.Errorf("%s ahead, %s shows\n%s\nwith another clock it shows\n%s", off, name, text, before)
					return
				}
				shown[name] = text
			}
		}
	})
	for name, wanted := range map[string][]string{
		"top":     {start.Add(calling).Local().Format("15:04:05 MST"), "  4 processes", "ann"},
		"/":       {"its clock is 2h ahead of the store", "its clock is 10m ahead of the store", ">right<"},
		"/live":   {"4 processes", "ann"},
		"reports": {"-2h", "ann"},
	} {
		for _, text := range wanted {
			if !strings.Contains(shown[name], text) {
				t.Errorf("%s lacks %q:\n%s", name, text, shown[name])
			}
		}
	}
}
