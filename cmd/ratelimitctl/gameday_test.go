package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
)

var hung = flag.Duration("hung", time.Second, "how long the server hangs on a game day")

// gameDay is a fault of docs/operating.md, and what an operator reads. The texts are regular expressions.
type gameDay struct {
	begin, end []string          // commands to the server
	again      time.Duration     // how often the fault begins anew, or 0 for once
	hang       bool              // the server hangs
	do         func(*service)    // what programs do
	sentence   string            // of Ping and the log while decisions fail, or "" if they do not
	says       map[string]string // what commands of the tool print meanwhile
	then       map[string]string // what they print afterwards
}

var gameDays = map[string]gameDay{
	"an empty server": {
		begin: []string{"FLUSHALL"},
		says: map[string]string{
			"rules":     "login +1,000 per hour +- ",
			"processes": "2 that the store lost",
			"doctor":    "warning +settings-lost +- +the store lost its settings; \\d process(es)? still appl",
		},
		end:  []string{"ratelimitctl settings recover"},
		then: map[string]string{"inspect login ann": "900 per hour", "processes": "current", "doctor": "server +version"},
	},
	"a rotated password": {
		begin:    []string{"ACL SETUSER shop resetpass >new", "CLIENT KILL USER shop"},
		sentence: `the server does not know the user "shop", or the password is wrong`,
		says:     map[string]string{"doctor": `shop to sign in \(`},
		end:      []string{"ACL SETUSER shop resetpass >old"},
		then:     map[string]string{"processes": "current +right +-\n"},
	},
	"a read-only server": {
		begin:    []string{"REPLICAOF 127.0.0.1 1"},
		sentence: "the server is a read-only replica: connect to its master",
		says:     map[string]string{"doctor": "bad +store-down +- +this server is a replica: calls fail. To do: connect to its master 127.0.0.1:1"},
		end:      []string{"REPLICAOF NO ONE"},
		then:     map[string]string{"processes": "current +right +-\n", "doctor": "server +version"},
	},
	"full memory": {
		begin:    []string{"CONFIG SET maxmemory 1"},
		sentence: "the server's memory is full: raise its maxmemory",
		says:     map[string]string{"doctor": "bad +memory-full .*calls fail. To do: raise maxmemory"},
		end:      []string{"CONFIG SET maxmemory 0"},
		then:     map[string]string{"processes": "current +right +-\n", "doctor": "server +version"},
	},
	"hung for 60 s": {
		hang:     true,
		sentence: "the server did not answer in time",
		says: map[string]string{
			"doctor":            "^bad +store-down +- +the store does not answer: the server did not answer in time.*\nratelimitctl: 1 problem, of which 1 bad\n$",
			"inspect login ann": "^ratelimitctl: the server did not answer in time.*\n$",
		},
		then: map[string]string{"processes": "current +right +-\n", "doctor": "server +version"},
	},
	"stalls of 300 ms": {
		begin: []string{"CLIENT PAUSE 300 ALL"}, again: 450 * time.Millisecond,
		sentence: "the server did not answer in time",
		says:     map[string]string{"doctor": "bad +store-slow +- +round trip .* decisions wait, and such calls fail", "processes": "at 20.* UTC: the server did not answer in time", "top -once": "FAILED +RULE"},
		then:     map[string]string{"processes": "current +right +-\n", "doctor": "server +version"},
	},
	"skewed clocks": {
		do:   func(s *service) { s.forged = []string{fmt.Sprintf(`"program":"desk","ahead":%d`, 2*time.Hour)} },
		says: map[string]string{"processes": " desk .* 2h0m0s ahead", "doctor": "warning +clock-off +desk 7 on afar +its clock is 2h ahead of the store's", "inspect login ann": "900 per hour"},
	},
	"mixed builds": {
		do: func(s *service) {
			s.forged = []string{`"program":"desk","build":"v1.0.0"`, `"program":"desk","build":"v1.1.0","unheardOf":true`}
			newService(s.t, s.server, 20*time.Second, 2000).call()
		},
		says: map[string]string{
			"rules":             `1,000 \(1 process\), 2,000 \(1\) per hour +900 per hour`,
			"inspect login ann": `declared 1,000 \(1 process\), 2,000 \(1\) per hour`,
			"doctor":            `warning +limits-differ +login .* has 1,000 per hour; .* has 2,000 per hour(.|\n)*note +builds-differ +desk +several builds run: v1.0.0 \(1 process\), v1.1.0 \(1 process\)`,
		},
	},
	"a shared prefix": {
		do: func(s *service) {
			for _, program := range []string{"shop", "desk"} {
				s.write("sets", program, map[string]any{"at": time.Now().UTC(), "program": program, "rules": []string{}, "unnamed": []string{"x"}})
			}
		},
		says: map[string]string{"doctor": `warning +program-shared +desk and shop +.* a rule without a name .*ratelimit\.WithPrefix`},
	},
	"random keys": {
		do:   func(s *service) { s.random = true },
		says: map[string]string{"doctor": `growth +-?[0-9,]+ keys? and (.|\n)*keys +login \d\d+ keys of `},
	},
}

// TestGameDays breaks things, compares what the tools say with what is true, mends them, and compares again.
func TestGameDays(t *testing.T) {
	t.Parallel()
	rows := pageRows(t)
	for name := range rows {
		if _, ok := gameDays[name]; !ok {
			t.Errorf("no game day is %q", name)
		}
	}
	for name, day := range gameDays {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			timeout := 20 * time.Second // so that decisions fail for no other reason
			if day.hang || day.again > 0 {
				timeout = 250 * time.Millisecond
			}
			s := newService(t, redistest.Start(t, "--slowlog-log-slower-than", "1000000"), timeout, 1000)
			s.prepare()
			hangs, end := time.Now(), s.begin(&day)
			if day.sentence != "" {
				s.requireOutage(&day)
			}
			s.require(day.says)
			if day.hang {
				s.until("the server has hung long enough", func() bool { return time.Since(hangs) > *hung })
			}
			if end(); day.sentence != "" {
				s.requireBack()
			}
			s.require(day.then)
			s.compare(&day, rows[name])
		})
	}
}

// pageRows returns the cells of those rows of the page that name this test, by the first cell.
func pageRows(t *testing.T) map[string][]string {
	text, err := os.ReadFile("../../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		if cells := strings.Split(line, " | "); len(cells) == 5 && strings.Contains(cells[4], "`TestGameDays`") {
			rows[strings.TrimPrefix(cells[0], "| ")] = cells
		}
	}
	return rows
}

// service is a program that makes calls, and what an operator has read about it.
type service struct {
	*ratelimit.Limiter
	t              *testing.T
	server         *redistest.Server
	client         *redis.Client
	limit          int64
	random         bool     // each call has a key of its own
	forged         []string // what processes on another machine say
	exported       string   // the settings before the fault
	ran            []string
	read           strings.Builder
	log            redistest.Log
	failed, passed int
	keys           int
}

func newService(t *testing.T, server *redistest.Server, timeout time.Duration, limit int64) *service {
	server.Do("ACL SETUSER shop on >old ~* &* +@all")
	client := redis.NewClient(&redis.Options{Addr: server.Addr, Username: "shop", Password: "old", DialerRetries: 1})
	t.Cleanup(func() { _ = client.Close() })
	s := &service{t: t, server: server, client: client, limit: limit}
	s.Limiter = ratelimit.New(redisstore.New(client, redisstore.WithStats(), redisstore.WithTimeout(timeout)), ratelimit.WithLogger(slog.New(slog.NewTextHandler(&s.log, nil))))
	return s
}

// call makes a call under a rule that denies while the store fails, and one under a rule that allows. It reports whether the first was decided.
func (s *service) call() bool {
	key := "ann"
	if s.random {
		s.keys++
		key = fmt.Sprint("key", s.keys)
	}
	_, err := s.Allow(s.t.Context(), ratelimit.Request{Rule: ratelimit.Rule{Name: "login", Key: "{user}", Limit: s.limit, Per: time.Hour}, Key: key})
	if err != nil {
		s.failed++
	}
	d, other := s.Allow(s.t.Context(), ratelimit.Request{Rule: ratelimit.Rule{Name: "search", Limit: 1_000_000, Per: time.Hour, OnError: ratelimit.FailOpen}})
	if other != nil || !d.Allowed {
		s.t.Fatalf("a call under on-error=allow ends with %v", other)
	}
	if d.Source == ratelimit.SourcePolicy {
		s.passed++
	}
	return err == nil
}

// until makes calls until something is so.
func (s *service) until(what string, is func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(time.Minute + *hung); !is(); time.Sleep(20 * time.Millisecond) {
		s.forge()
		if s.call(); time.Now().After(deadline) {
			s.t.Fatalf("it does not come about that %s\nlog:\n%s", what, s.log.String())
		}
	}
}

// ctl runs a command of the tool.
func (s *service) ctl(line string) string {
	text, _ := ctlWith(s.t, env("redis://"+s.server.Addr+"?dial_timeout=1s&read_timeout=1s"), s.exported, strings.Fields(line)...)
	s.ran = append(s.ran, line)
	s.read.WriteString(text)
	return text
}

// require waits until commands print what is true.
func (s *service) require(says map[string]string) {
	s.t.Helper()
	for line, want := range says {
		pattern, last := regexp.MustCompile(want), ""
		s.until("ratelimitctl "+line+" prints "+want, func() bool { last = s.ctl(line); return pattern.MatchString(last) })
	}
}

// prepare waits until the tools know the service, which has an override and a block.
func (s *service) prepare() {
	s.call()
	s.until("its rules are known", func() bool { return strings.Contains(s.ctl("rules"), "login") })
	for _, line := range []string{"override set login -limit 900 -for 1h", "block login eve -for 1h"} {
		if text := s.ctl(line); !strings.Contains(text, "→") {
			s.t.Fatal(text)
		}
	}
	s.require(map[string]string{"processes": "current +right", "rules": "900 per hour; 1 key blocked"})
	s.until("it has all settings, and no error", func() bool { return s.Status().Settings == 2 && s.Status().StoreUp && s.Ping(s.t.Context()) == nil })
	s.exported = s.ctl("settings export")
}

// begin begins the fault, and returns what ends it.
func (s *service) begin(day *gameDay) (end func()) {
	if day.do != nil {
		day.do(s)
	}
	all := func(commands []string) {
		for _, command := range commands {
			if line, ok := strings.CutPrefix(command, "ratelimitctl "); ok {
				s.ctl(line)
				continue
			}
			s.server.Do(command)
		}
	}
	if all(day.begin); day.hang {
		s.server.Pause()
	}
	stopped, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		for day.again > 0 {
			select {
			case <-stopped:
				return
			case <-time.After(day.again):
				all(day.begin)
			}
		}
	}()
	end = sync.OnceFunc(func() {
		close(stopped)
		if <-over; day.hang {
			s.server.Resume()
		}
		all(day.end)
	})
	s.t.Cleanup(end) // before the server ends
	return end
}

// requireOutage checks that Ping, the log and the gauges say that decisions fail, and why.
func (s *service) requireOutage(day *gameDay) {
	s.t.Helper()
	s.until("calls fail", func() bool { return !s.call() })
	s.until("Ping says "+day.sentence, func() bool {
		err := s.Ping(s.t.Context()) // it waits longer than calls, so short stalls do not matter
		return day.again > 0 || err != nil && strings.Contains(err.Error(), day.sentence)
	})
	if status := s.Status(); status.StoreUp || status.Settings != 2 {
		s.t.Errorf("while decisions fail, the status is %+v", status)
	}
	_, line, _ := strings.Cut(s.log.String(), "the rate limit store fails; failure policies decide")
	if line, _, _ = strings.Cut(line, "\n"); !strings.Contains(strings.ReplaceAll(line, `\"`, `"`), day.sentence) {
		s.t.Errorf("the first line of the outage has no %q:\n%s", day.sentence, s.log.String())
	}
}

var back = regexp.MustCompile(`the rate limit store is back" failed_for=\S+ calls_failed=(\d+) calls_passed=(\d+) calls_counted_here=0`)

// requireBack waits for the last line of the outage, and checks that it counts the calls.
func (s *service) requireBack() {
	s.t.Helper()
	s.until("all outages have ended", func() bool {
		text := s.log.String()
		return len(back.FindAllString(text, -1)) == strings.Count(text, "the rate limit store fails") && s.Status().StoreUp
	})
	failed, passed := 0, 0
	for _, m := range back.FindAllStringSubmatch(s.log.String(), -1) {
		var one, other int
		_, _ = fmt.Sscan(m[1]+" "+m[2], &one, &other)
		failed, passed = failed+one, passed+other
	}
	if failed != s.failed || passed != s.passed {
		s.t.Errorf("%d calls failed and %d passed; the log says\n%s", s.failed, s.passed, s.log.String())
	}
}

var (
	code   = regexp.MustCompile("`([^`]+)`")
	quoted = regexp.MustCompile(`"([^"]+)"`)
)

// compare checks that the page has the commands of the day, and that the texts which it quotes were read.
func (s *service) compare(day *gameDay, row []string) {
	if row == nil {
		s.t.Fatal("the page has no row for it")
	}
	for _, m := range code.FindAllStringSubmatch(row[1], -1) {
		if command, ok := strings.CutPrefix(m[1], "redis-cli "); ok && !slices.Contains(day.begin, command) {
			s.t.Errorf("the page says %s, which the test does not do", m[1])
		}
	}
	for _, m := range code.FindAllStringSubmatch(row[2]+row[3], -1) {
		line, ok := strings.CutPrefix(m[1], "ratelimitctl ")
		if ok && !slices.ContainsFunc(s.ran, func(ran string) bool { return strings.HasPrefix(ran, line) }) {
			s.t.Errorf("the page says %s, which the test does not run", m[1])
		}
	}
	all := s.read.String() + s.log.String()
	for _, m := range quoted.FindAllStringSubmatch(row[2], -1) {
		if !strings.Contains(all, m[1]) {
			s.t.Errorf("the page quotes %q, which nobody says", m[1])
		}
	}
}

// forge writes what processes on another machine say.
func (s *service) forge() {
	at := time.Now().UTC().Format(time.RFC3339Nano)
	for i, fields := range s.forged {
		s.write("processes", fmt.Sprint("forged", i), json.RawMessage(fmt.Sprintf(`{"host":"afar","pid":7,"start":"%s","at":"%s",%s}`, at, at, fields)))
	}
}

// write writes a field of what processes say.
func (s *service) write(key, field string, value any) {
	text, _ := json.Marshal(value)
	if err := s.client.HSet(s.t.Context(), "ratelimit.seen:{ratelimit}:"+key, field, text).Err(); err != nil {
		s.t.Fatal(err)
	}
}
