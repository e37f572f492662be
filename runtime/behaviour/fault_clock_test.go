package behaviour_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
)

// The calls of a program whose clock is decades wrong are decided by the server's time, even when a calendar window begins.
func TestFault_ClientClockAtABoundary(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	load(t, connect(t, server.Addr))
	synctest.Test(t, func(t *testing.T) { // time.Now is in the year 2000 here, and stands still
		client := redis.NewClient(&redis.Options{Addr: server.Addr})
		defer client.Close()
		defer time.Sleep(time.Minute) // on the virtual clock: until the store's background work has ended
		s := &subject{limiter: ratelimit.New(bare{redisstore.New(client, redisstore.WithTimeout(time.Minute))})}
		day := ratelimit.Rule{Name: "day", Limit: 3, Cron: "0 0 0 * * *", TZ: "Asia/Shanghai"}
		w := newModel()
		for range 5 {
			d := s.allow(t, ratelimit.Request{Rule: day, Key: "k"})
			if d.At.Year() < 2020 {
				t.Fatalf("decided at %v, by the program's clock", d.At)
			}
			want, _ := w.allow(d.At.UnixMicro(), []ask{{rule: day, key: "k", cost: 1}})
			if d.Allowed != want.allowed() || d.RetryAfter != micros(want.retryAfter) {
				t.Errorf("got %+v, want %+v", d, want)
			}
		}
	})
}

func TestFault_DaysHave24HoursAndMonths30Days(t *testing.T) {
	tests := []struct {
		cron, zone, from, to string
	}{
		{"0 0 0 * * *", "Asia/Shanghai", "2026-03-07T15:59:59.999999Z", "2026-03-07T16:00:00Z"},
		{"@daily", "", "2026-03-07T16:00:00Z", "2026-03-08T00:00:00Z"},
		{"0 0 0 * * *", "America/New_York", "2026-03-08T05:00:00Z", "2026-03-09T04:00:00Z"},    // 23 hours
		{"0 0 0 * * *", "America/New_York", "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z"},    // 25 hours
		{"0 0 0 * * *", "Australia/Lord_Howe", "2026-04-04T13:00:00Z", "2026-04-05T13:30:00Z"}, // 24 hours and a half
		{"0 0 0 1 * *", "UTC", "2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z"},
		{"0 0 1 * *", "UTC", "2028-02-01T00:00:00Z", "2028-03-01T00:00:00Z"}, // a leap year
		{"0 0 0 31 * ?", "UTC", "2026-03-31T00:00:00Z", "2026-05-31T00:00:00Z"},
		{"0 0 0/1 * * ?", "Asia/Kolkata", "2026-03-07T15:31:00Z", "2026-03-07T16:30:00Z"},
	}
	for _, test := range tests {
		from, to := instant(t, test.from), instant(t, test.to)
		s := inMemory(&clock{t: from})
		q := ratelimit.Request{Rule: ratelimit.Rule{Name: "r", Limit: 1, Cron: test.cron, TZ: test.zone}, Key: "k"}
		s.admit(t, q)
		if d := s.refuse(t, q); d.RetryAfter != to.Sub(from) {
			t.Errorf("%s %s: retry after %v, want %v", test.cron, test.zone, d.RetryAfter, to.Sub(from))
		}
		s.pass(to.Sub(from) - time.Microsecond)
		s.refuse(t, q)
		s.pass(time.Microsecond)
		s.admit(t, q)
	}
}

func instant(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// A clock that is set back neither admits more nor forgets anything.
func TestFault_ClockSetBack(t *testing.T) {
	for name, rule := range algorithms() {
		if rule.Cron != "" {
			rule.Cron = "0 0 0 * * *"
		}
		rule.Name = name
		c := newClock()
		s, q := inMemory(c), ratelimit.Request{Rule: rule, Key: "k"}
		for range 3 {
			s.admit(t, q)
		}
		c.pass(-30 * time.Minute)
		s.refuse(t, q)
		c.pass(30 * time.Minute)
		s.refuse(t, q)
	}
}
