package operate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/redisinfo"
)

// says checks that there is a problem of a level with a text, or if that is "", that there is no problem.
func says(t *testing.T, f *findings, level Level, text string) {
	t.Helper()
	for _, p := range f.problems {
		if text != "" && p.Level == level && strings.Contains(p.Text, text) {
			return
		}
	}
	if text != "" || len(f.problems) > 0 {
		t.Errorf("want %s %q, got %+v", level, text, f.problems)
	}
}

// For states that no server on this machine can have, the test gives the server's reply itself.
func TestJudgeOfOtherServers(t *testing.T) {
	for _, test := range []struct {
		info  string
		level Level
		text  string
	}{
		{"redis_version:6.2.14", Bad, "Redis 6.2.14 is too old: calls fail"},
		{"redis_version:unstable", Bad, "Redis unstable is too old"},
		{"redis_version:10.0.0", Note, ""},
		{"redis_version:7.2.4\r\nvalkey_version:8.1.0", Note, ""},
		{"redis_version:7.2.4\r\naof_enabled:1\r\naof_last_write_status:err", Bad, "the append-only file cannot be written: the server refuses writes"},
	} {
		f, s := new(findings), &server{info: redisinfo.Fields(test.info + "\r\nrdb_last_bgsave_status:ok")}
		s.judgeVersion(f)
		s.judgePersistence(f)
		says(t, f, test.level, test.text)
	}
}

// Round trips are judged by their median, and by how many are later than decisions wait. A single late one is by chance.
func TestJudgeOfRoundTrips(t *testing.T) {
	of := func(n int, d time.Duration, late int) *trips {
		all := new(trips)
		for range n - late {
			all.add(d)
		}
		for range late {
			all.add(300 * time.Millisecond)
		}
		return all
	}
	for _, test := range []struct {
		trips *trips
		level Level
		text  string
	}{
		{of(100, time.Millisecond, 0), Note, ""},
		{of(100, time.Millisecond, 1), Note, ""},
		{of(5, time.Millisecond, 2), Note, ""},
		{of(100, time.Millisecond, 18), Bad, "18 took longer than the 250ms that decisions wait"},
		{of(10, 30*time.Millisecond, 0), Warning, "each call waits so long"},
		{new(trips), Note, ""},
	} {
		f := new(findings)
		test.trips.judge(f)
		says(t, f, test.level, test.text)
	}
}

// What a server counts is compared with what it counted before.
func TestJudgeOfGrowth(t *testing.T) {
	info := func(used, keys, evicted int) map[string]string {
		return map[string]string{
			"used_memory": fmt.Sprint(used), "used_memory_dataset": fmt.Sprint(used), "maxmemory": "10000000", "maxmemory_policy": "noeviction",
			"db0": fmt.Sprintf("keys=%d,expires=0", keys), "db1": "keys=1", "dbx": "keys=9", "evicted_keys": fmt.Sprint(evicted),
		}
	}
	now := time.Now()
	before := &server{at: now.Add(-2 * time.Second), info: info(1_000_000, 10, 0)}
	for _, test := range []struct {
		info       map[string]string
		text, fact string
	}{
		{info(1_000_000, 10, 0), "", "0 keys and 0.0 kB a second"},
		{info(1_020_000, 210, 0), "at this rate the memory is full in 15 minutes", "100 keys and 9.8 kB a second"},
		{info(1_000_200, 12, 0), "", "1 key and 0.1 kB a second"},
		{info(1_000_000, 10, 3), "3 keys were removed just now", "0 keys"},
	} {
		f, s := new(findings), &server{at: now, info: test.info, before: before}
		s.judgeMemory(f)
		s.judgeGrowth(f)
		says(t, f, Warning, test.text)
		if last := f.facts[len(f.facts)-1]; last.Check != "growth" || !strings.Contains(last.Text, test.fact) {
			t.Errorf("want %q, got %+v", test.fact, f.facts)
		}
	}
}

// A test cannot change the clock of the machine, so this one tests the arithmetic.
func TestSkew(t *testing.T) {
	sent := time.Now()
	for ahead, want := range map[time.Duration]string{
		0: "", 400 * time.Millisecond: "", -400 * time.Millisecond: "", 2 * time.Second: "2s ahead of", -time.Hour: "1h behind",
	} {
		for took := range 3 {
			d := time.Duration(took) * 10 * time.Millisecond
			f, s := new(findings), &server{ahead: skew(sent.Add(ahead+d/2), sent, d)}
			s.judgeClock(f)
			says(t, f, Warning, want)
		}
	}
}
