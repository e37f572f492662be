package behaviour_test

import (
	"context"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

const hour = int64(time.Hour / time.Microsecond)

// kinds returns rules of four permits an hour for which calls may wait, in the form that stores get.
func kinds() map[string]*engine.Rule {
	rules := map[string]*engine.Rule{
		"sliding": {Kind: engine.SlidingWindow}, "fixed": {Kind: engine.FixedWindow}, "bucket": {Kind: engine.TokenBucket},
		"prepaid": {Kind: engine.Prepaid}, "warm": {Kind: engine.Warmup, Warmup: hour},
		"calendar": {Kind: engine.Calendar, Schedule: engine.NewSchedule(nextHour, true, time.UTC)},
	}
	for name, rule := range rules {
		rule.Name, rule.Tag, rule.Per = "r", name, hour
	}
	return rules
}

// nextHour returns the next end of an hour, by a clock that showed half past when the test began.
func nextHour(t time.Time) time.Time {
	return t.Add(-phase).Truncate(time.Hour).Add(phase + time.Hour)
}

var phase = time.Since(time.Now().Truncate(time.Hour)).Truncate(time.Second) + time.Hour/2

// place makes a call of four permits that waits for them.
func place(t *testing.T, store ratelimit.Store, rule *engine.Rule) engine.Verdict {
	t.Helper()
	call := &engine.Call{Prefix: "p", Claims: []engine.Claim{{Ask: engine.Ask{Rule: rule, Subject: "k", Cost: 4, Limit: 4, Burst: 4, Wait: 1000 * hour}}}}
	if rule.Kind == engine.Warmup {
		call.Claims[0].Burst = 0
	}
	v, err := store.Decide(context.Background(), call)
	if err != nil || !v.Admitted {
		t.Errorf("got %+v, error %v", v, err)
	}
	return v
}

// A waiting call gets a place behind those that already wait: five calls of four permits each take five hours at four an hour.
func TestFault_WaitForgetsEarlierDebt(t *testing.T) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		for kind, rule := range kinds() {
			first := place(t, s.store, rule)
			for n := range 5 {
				v := place(t, s.store, rule)
				hours := n + 1
				switch rule.Kind {
				case engine.Prepaid, engine.Calendar: // the first call does not wait, or the first window is shorter
					hours = n
				}
				if after := micros(v.At - first.At); after < time.Duration(hours)*time.Hour {
					t.Errorf("%s: number %d passes %v after the first", kind, n+1, after)
				}
			}
		}
	})
}

// However far away its place is, a waiting call asks the server once. The request names as many calendar windows as are likely to matter.
func TestCallThatWaitsAsksOnce(t *testing.T) {
	t.Parallel()
	for by, options := range scriptedBy {
		client := connect(t, redistest.Start(t).Addr)
		load(t, client)
		for kind, rule := range kinds() {
			store := scripted(client, options...)
			for n := range 8 {
				before := scripts(t, client)
				if place(t, store, rule); scripts(t, client) != before+1 {
					t.Errorf("%s, %s: call number %d asked %d times", by, kind, n+1, scripts(t, client)-before)
				}
			}
		}
	}
}

// scripts returns how many scripts the server has run.
func scripts(t *testing.T, client *redis.Client) int {
	t.Helper()
	stats, err := client.Info(context.Background(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, calls := range regexp.MustCompile(`cmdstat_(?:fcall|evalsha|eval):calls=(\d+)`).FindAllStringSubmatch(stats, -1) {
		more, err := strconv.Atoi(calls[1])
		if err != nil {
			t.Fatal(err)
		}
		n += more
	}
	return n
}

// The expiry of a key is not the clock of a window: whatever happens to the expiry, the state says when permits come back.
func TestFault_ExpiryTakenForTheWindow(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s, client := onServer(t, server), connect(t, server.Addr)
	tamper := map[string]func(key string) error{
		"prolonged":  func(key string) error { return client.Expire(context.Background(), key, 1000*time.Hour).Err() },
		"shortened":  func(key string) error { return client.PExpire(context.Background(), key, 20*time.Second).Err() },
		"taken away": func(key string) error { return client.Persist(context.Background(), key).Err() },
	}
	for name, rule := range algorithms() {
		rule.Name = name
		q := ratelimit.Request{Rule: rule, Key: "k"}
		for range 3 {
			s.admit(t, q)
		}
		first := s.refuse(t, q)
		for what, change := range tamper {
			for _, key := range keysOn(t, client) {
				if err := change(key); err != nil {
					t.Fatal(err)
				}
			}
			d := s.refuse(t, q)
			if end, want := d.At.Add(d.RetryAfter), first.At.Add(first.RetryAfter); !end.Equal(want) {
				t.Errorf("%s, with its expiry %s: retry at %v, want %v", name, what, end, want)
			}
		}
	}
}

// If one rule refuses a call, no other rule is charged, whatever the order of the rules.
func TestFault_RefusalChargesTheOtherRules(t *testing.T) {
	onEveryAlgorithm(t, func(t *testing.T, s *subject, rule ratelimit.Rule) {
		full := ratelimit.Request{Rule: window("full", 1, s.window), Key: rule.Name}
		s.admit(t, full)
		before := ratelimit.Request{Rule: rule, Key: "before"}
		behind := ratelimit.Request{Rule: rule, Key: "behind"}
		for range 10 {
			s.refuse(t, before, full, behind)
		}
		for _, q := range []ratelimit.Request{before, behind} {
			if left := s.left(t, q); left != 3 {
				t.Errorf("%s: %d of 3 permits left", q.Key, left)
			}
		}
	})
}

// A day begins at midnight in the time zone of the rule, wherever the program and the server are.
func TestFault_CalendarsInUTC(t *testing.T) {
	for zone, midnight := range map[string]string{
		"Asia/Shanghai": "2026-03-07T16:00:00Z", "America/Los_Angeles": "2026-03-08T08:00:00Z", "Asia/Kathmandu": "2026-03-07T18:15:00Z",
		"Pacific/Kiritimati": "2026-03-07T10:00:00Z", "": "2026-03-08T00:00:00Z",
	} {
		from, to := instant(t, "2026-03-07T09:00:00Z"), instant(t, midnight)
		s := inMemory(&clock{t: from})
		q := ratelimit.Request{Rule: ratelimit.Rule{Name: "r", Limit: 1, Cron: "@daily", TZ: zone}, Key: "k"}
		s.admit(t, q)
		if d := s.refuse(t, q); d.RetryAfter != to.Sub(from) {
			t.Errorf("%s: retry after %v, want %v", zone, d.RetryAfter, to.Sub(from))
		}
	}
}

// Calls that compete for places in future windows each get a place of their own.
func TestWaitersCompeteForCalendarWindows(t *testing.T) {
	const callers = 40
	onEveryStore(t, func(t *testing.T, s *subject) {
		rule, taken := kinds()["calendar"], make(chan int64, callers)
		for range callers {
			go func() {
				v := place(t, s.store, rule)
				start, _ := rule.Schedule.Window(v.At)
				taken <- start
			}()
		}
		windows := make(map[int64]bool)
		for range callers {
			windows[<-taken] = true
		}
		if len(windows) != callers {
			t.Errorf("%d callers got %d windows of one call", callers, len(windows))
		}
	})
}
