package operate_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/decide"
	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/internal/operate"
	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/limittest"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
)

var login = ratelimit.Rule{Name: "login", Key: "{user}", Limit: 5, Per: time.Hour}

// shop is a server, and what operators of the prefix "shop" on it do.
type shop struct {
	*testing.T
	*redistest.Server
}

func open(t *testing.T, args ...string) *shop {
	t.Helper()
	return &shop{t, redistest.Start(t, append([]string{"--slowlog-log-slower-than", "100000000"}, args...)...)}
}

// client returns a client as a process of its own has one.
func (s *shop) client() *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: s.Addr, DialerRetries: 1})
	s.Cleanup(func() { _ = c.Close() })
	return c
}

// process starts a process that uses rules.
func (s *shop) process(options []ratelimit.Option, rules ...ratelimit.Rule) *ratelimit.Limiter {
	s.Helper()
	before := s.listed()
	l := ratelimit.New(redisstore.New(s.client(), redisstore.WithTimeout(time.Minute)), append(options, ratelimit.WithPrefix("shop"))...)
	if err := l.Check(rules...); err != nil {
		s.Fatal(err)
	}
	redistest.Eventually(s.T, "the process is listed with its rules", func() bool { return s.listed() > before })
	s.Cleanup(func() { runtime.KeepAlive(l) })
	return l
}

// listed returns how many processes have said which rules they use.
func (s *shop) listed() (n int) {
	all, _ := s.prefix().Processes(s.Context())
	for _, p := range all {
		if p.Rules != "" {
			n++
		}
	}
	return n
}

// prefix returns the prefix as a tool sees it now.
func (s *shop) prefix(options ...ratelimit.Option) *operate.Prefix {
	store := redisstore.New(s.client(), redisstore.WithTimeout(time.Minute), redisstore.WithoutFunctions())
	store.Fleet("shop").Hide()
	return operate.New(ratelimit.New(store, append(options, ratelimit.WithPrefix("shop"))...), time.Minute)
}

// judge returns what is wrong now, by a fresh look.
func (s *shop) judge() []operate.Problem { return s.prefix().Judge(s.Context()).Problems }

// eventually waits until there is a problem, or until there is none, of an ID and with a text.
func (s *shop) eventually(is bool, id, text string) {
	s.Helper()
	var all []operate.Problem
	redistest.Eventually(s.T, fmt.Sprintf("%s: %t", id, is), func() bool {
		all = s.judge()
		return is == slices.ContainsFunc(all, func(p operate.Problem) bool { return p.ID == id && strings.Contains(p.Subject+": "+p.Text, text) })
	})
	for _, p := range all {
		if p.Text == "" || p.Advice == "" {
			s.Errorf("it does not say what is wrong and what to do: %+v", p)
		}
	}
}

// word stores what another process would say of itself.
func (s *shop) word(id string, p fleet.Process) {
	if p.Start = time.Now().UTC(); p.At.IsZero() {
		p.At = p.Start
	}
	text, _ := json.Marshal(p)
	s.client().HSet(s.Context(), "shop.seen:{shop}:processes", id, text)
}

// A prefix without a fault has no problem, on each store.
func TestAllIsWell(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.process(nil, login)
	if all := s.judge(); len(all) > 0 {
		t.Errorf("got %+v", all)
	}
	l := ratelimit.New(memstore.New())
	if err := l.Check(login); err != nil {
		t.Fatal(err)
	}
	if all := operate.New(l, time.Minute).Judge(t.Context()).Problems; len(all) > 0 {
		t.Errorf("in memory: got %+v", all)
	}
}

// A process without calls goes on saying why its last one failed. That is bad at first, then a note, and after an hour nothing. A word that does not say
// when it was is bad.
func TestFailureOfLongAgo(t *testing.T) {
	t.Parallel()
	s := open(t)
	for ago, want := range map[time.Duration]string{
		2 * time.Second: "bad", 50 * time.Second: "bad", 70 * time.Second: "note", 50 * time.Minute: "note", 2 * time.Hour: "", -1: "bad",
	} {
		for _, failure := range []string{"EOF", "OOM command not allowed"} {
			word := fleet.Process{Host: "web-1", Program: "shop", PID: 7, Store: failure}
			if ago > 0 {
				word.Store = time.Now().Add(-ago).UTC().Format("at 2006-01-02 15:04:05 MST: ") + failure
			}
			s.word("a", word)
			got := ""
			for _, p := range s.judge() {
				got += p.Level.String()
				if isNote := p.Level == operate.Note; p.Subject != "shop 7 on web-1" || isNote != strings.HasSuffix(p.Text, failure+"; no decision has failed since, and the store answers the process") {
					t.Errorf("%s ago: got %+v", ago, p)
				}
			}
			if got != want {
				t.Errorf("%s ago, %s: got %q, want %q", ago, failure, got, want)
			}
		}
	}
}

// The failure of the process that looks is judged like that of others.
func TestOwnFailureOfLongAgo(t *testing.T) {
	t.Parallel()
	clock := limittest.NewClock()
	store := limittest.NewOutage(clock)
	l := ratelimit.New(store, ratelimit.WithLogger(slog.New(slog.DiscardHandler)))
	store.Begin(errors.New("connection refused"))
	_, _ = l.Allow(t.Context(), ratelimit.Request{Rule: login, Key: "ann"})
	store.End()
	require := func(want ...operate.Level) {
		t.Helper()
		all := operate.New(l, time.Minute).Judge(t.Context()).Problems
		all = slices.DeleteFunc(all, func(p operate.Problem) bool { return p.ID == operate.ClockOff }) // that of the test stands still
		if !slices.EqualFunc(all, want, func(p operate.Problem, level operate.Level) bool {
			return p.ID == operate.StoreDown && p.Level == level
		}) {
			t.Errorf("got %+v, want levels %v", all, want)
		}
	}
	require(operate.Bad, operate.Bad) // of the store, and of the process
	clock.Advance(2 * time.Minute)
	require(operate.Note)
	clock.Advance(time.Hour)
	require()
}

// Each problem is there when it is true, and goes when it is not, on a real server.
func TestProblems(t *testing.T) {
	t.Parallel()
	for id, test := range map[string]func(*shop){
		operate.StoreDown: func(s *shop) {
			s.process(nil, login)
			s.word("a", fleet.Process{Host: "web-1", Program: "shop", PID: 7, Store: "OOM command not allowed"})
			p := s.prefix()
			p.Judge(s.Context())
			s.Stop()
			redistest.Eventually(s.T, "the last word of a process is no problem", func() bool {
				all := p.Judge(s.Context()).Problems
				return len(all) == 1 && all[0].ID == operate.StoreDown && all[0].Subject == ""
			})
			s.eventually(true, operate.StoreDown, "the store does not answer")
			s.Restart()
			s.eventually(false, operate.StoreDown, "")
		},
		operate.StoreSlow: func(s *shop) {
			s.Do("CONFIG SET slowlog-log-slower-than 0")
			s.Do("SET k v")
			s.eventually(true, operate.StoreSlow, "slow command")
			s.Do("CONFIG SET slowlog-log-slower-than -1")
			s.Do("SLOWLOG RESET")
			s.eventually(false, operate.StoreSlow, "")
		},
		operate.MemoryFull: func(s *shop) {
			s.process(nil, login)
			s.Do("CONFIG SET maxmemory 1")
			s.eventually(true, operate.MemoryFull, "calls fail")
			s.Do("CONFIG SET maxmemory 0")
			s.eventually(false, operate.MemoryFull, "")
			s.word("a", fleet.Process{Host: "web-1", Program: "shop", PID: 7, Store: "OOM command not allowed."})
			s.eventually(true, operate.MemoryFull, "not allowed: calls fail")
			s.word("a", fleet.Process{Host: "web-1", Program: "shop", PID: 7})
			s.eventually(false, operate.MemoryFull, "")
		},
		operate.Evicts: func(s *shop) {
			s.Do("CONFIG SET maxmemory-policy allkeys-lru")
			s.eventually(true, operate.Evicts, "allkeys-lru")
			s.Do("CONFIG SET maxmemory-policy noeviction")
			s.eventually(false, operate.Evicts, "")
		},
		operate.SettingsLost: func(s *shop) {
			l := s.process(nil, login)
			if err := l.Block(s.Context(), time.Hour, ratelimit.Request{Rule: login, Key: "eve"}); err != nil {
				s.Fatal(err)
			}
			p := s.prefix()
			has := func(id string) bool {
				all := p.Judge(s.Context()).Problems
				return slices.ContainsFunc(all, func(p operate.Problem) bool { return p.ID == id })
			}
			if has(operate.SettingUnusable) {
				s.Error("a block has no effect")
			}
			s.Do("CONFIG SET maxmemory 1") // nothing writes the rules again
			s.Do("FLUSHALL")
			redistest.Eventually(s.T, "the rules are lost", func() bool {
				rules, at := p.Rules(s.Context())
				return at.Err == nil && len(rules) == 0
			})
			if has(operate.SettingUnusable) {
				s.Error("a block counts as without effect, because the store lost the rules")
			}
			s.Do("CONFIG SET maxmemory 0")
			s.eventually(true, operate.SettingsLost, "1 process still applies its own (1)")
			p = s.prefix()
			known, err := p.Recover(s.Context())
			if err != nil || len(known.Settings) != 1 {
				s.Fatalf("got %+v, %v", known, err)
			}
			if _, err := p.Restore(s.Context(), fleet.Actor{By: "kim"}, known); err != nil {
				s.Fatal(err)
			}
			s.eventually(false, operate.SettingsLost, "")
		},
		operate.SettingsStale: func(s *shop) {
			s.word("a", fleet.Process{Host: "web-1", Program: "shop", PID: 7, Setting: "NOPERM"})
			s.eventually(true, operate.SettingsStale, "shop 7 on web-1: NOPERM")
			s.word("a", fleet.Process{Host: "web-1", Program: "shop", PID: 7})
			s.eventually(false, operate.SettingsStale, "")
			s.process(nil, login)
			s.override(operate.Target{Rule: "login"}, operate.Wish{Limit: new(int64(9)), For: time.Hour})
			s.word("a", fleet.Process{Host: "web-1", Program: "shop", PID: 7, At: time.Now().Add(-9 * time.Second)}) // it hangs
			if all := s.prefix().Judge(s.Context()).Problems; !slices.ContainsFunc(all, func(p operate.Problem) bool { return p.ID == operate.SettingsStale }) {
				s.Errorf("who looks for the first time finds %+v", all)
			}
			s.word("a", fleet.Process{Host: "web-1", Program: "shop", PID: 7, Version: 1})
			s.eventually(false, operate.SettingsStale, "")
		},
		operate.SettingUnusable: func(s *shop) {
			s.process(nil, login)
			s.override(operate.Target{Rule: "login", Force: true}, operate.Wish{Burst: 9, For: time.Hour})
			s.eventually(true, operate.SettingUnusable, "burst")
			s.clear("login")
			s.override(operate.Target{Rule: "logn", Force: true}, operate.Wish{Limit: new(int64(9)), For: time.Hour})
			s.eventually(true, operate.SettingUnusable, "no program has used a rule of this name")
			s.clear("logn")
			s.eventually(false, operate.SettingUnusable, "")
		},
		operate.SettingEndless: func(s *shop) {
			s.process(nil, login)
			s.override(operate.Target{Rule: "login"}, operate.Wish{Limit: new(int64(9)), Forever: true})
			s.eventually(true, operate.SettingEndless, "login: limit=9, set by kim")
			s.override(operate.Target{Rule: "login"}, operate.Wish{Limit: new(int64(9)), For: time.Hour})
			s.eventually(false, operate.SettingEndless, "")
		},
		operate.LimitsDiffer: func(s *shop) {
			s.process(nil, login)
			s.process(nil, login)
			s.eventually(false, operate.LimitsDiffer, "")
			hourly := login
			hourly.Per *= 24
			s.process(nil, login, hourly) // the others have not used that rule
			s.eventually(false, operate.LimitsDiffer, "")
			other := login
			other.Limit = 50
			s.process(nil, other)
			s.eventually(true, operate.LimitsDiffer, " and 5 per hour; ")
			s.eventually(true, operate.LimitsDiffer, " has 50 per hour")
		},
		operate.BuildsDiffer: func(s *shop) {
			s.word("a", fleet.Process{Host: "web-1", Program: "shop", Build: "v1"})
			s.eventually(false, operate.BuildsDiffer, "")
			s.word("b", fleet.Process{Host: "web-2", Program: "shop", Build: "v2"})
			s.eventually(true, operate.BuildsDiffer, "v1 (1 process), v2 (1 process)")
		},
		operate.ClockOff: func(s *shop) {
			s.word("a", fleet.Process{Host: "web-1", Program: "shop", PID: 7, Ahead: 2 * time.Hour})
			s.eventually(true, operate.ClockOff, "its clock is 2h ahead of")
			s.word("a", fleet.Process{Host: "web-1", Program: "shop", PID: 7, Ahead: 20 * time.Millisecond})
			s.eventually(false, operate.ClockOff, "")
		},
		operate.ProgramShared: func(s *shop) {
			for program, unnamed := range map[string][]string{"shop": {"x", "y"}, "desk": {"y"}} {
				s.eventually(false, operate.ProgramShared, "")
				set, _ := json.Marshal(map[string]any{"at": time.Now().UTC(), "program": program, "rules": []string{}, "unnamed": unnamed})
				s.client().HSet(s.Context(), "shop.seen:{shop}:sets", program, set)
			}
			s.eventually(true, operate.ProgramShared, "desk and shop")
		},
		operate.RefusesMost: func(s *shop) {
			l := ratelimit.New(redisstore.New(s.client(), redisstore.WithTimeout(time.Minute), redisstore.WithStats()), ratelimit.WithPrefix("shop"))
			for range 300 {
				if _, err := l.Allow(s.Context(), ratelimit.Request{Rule: login, Key: "eve"}); err != nil {
					s.Fatal(err)
				}
			}
			s.eventually(true, operate.RefusesMost, "login: 98 % of 300 calls")
			for i := range 300 {
				if _, err := l.Allow(s.Context(), ratelimit.Request{Rule: login, Key: fmt.Sprint("user", i)}); err != nil {
					s.Fatal(err)
				}
			}
			s.eventually(false, operate.RefusesMost, "")
			runtime.KeepAlive(l)
		},
		operate.PausedByFarSide: func(s *shop) {
			send := ratelimit.Rule{Name: "send", Key: "{to}", Limit: 5, Per: time.Hour, Pausable: true}
			l := s.process(nil, send)
			rules, err := ratelimit.Prepare("", send)
			if err != nil {
				s.Fatal(err)
			}
			(*decide.Limiter)(l).NotePause((*decide.Rules)(rules).All[0], key.Subject("ann"), time.Hour, "Retry-After: 3600")
			s.eventually(true, operate.PausedByFarSide, "send: the far side has paused 1 key, the last until ")
			if err := l.Resume(s.Context(), ratelimit.Request{Rule: send, Key: "ann"}); err != nil {
				s.Fatal(err)
			}
			s.eventually(false, operate.PausedByFarSide, "")
		},
		operate.SecretDiffers: func(s *shop) {
			secret := func(letter string) []ratelimit.Option {
				return []ratelimit.Option{ratelimit.WithSubjectHash(bytes.Repeat([]byte(letter), 32))}
			}
			s.process(secret("a"), login)
			s.eventually(true, operate.SecretDiffers, "with another secret than this tool")
			if all := s.prefix(secret("a")...).Judge(s.Context()).Problems; len(all) > 0 {
				s.Errorf("with the secret, got %+v", all)
			}
			s.process(secret("b"), login)
			s.eventually(true, operate.SecretDiffers, "one caller has several counts. They differ between ")
		},
		operate.LimitersMany: func(s *shop) {
			store := redisstore.New(s.client(), redisstore.WithTimeout(time.Minute))
			var all []*ratelimit.Limiter
			for range 101 {
				all = append(all, ratelimit.New(store, ratelimit.WithPrefix("shop")))
			}
			if err := all[0].Check(login); err != nil {
				s.Fatal(err)
			}
			s.eventually(true, operate.LimitersMany, "it has over 100 limiters")
			runtime.KeepAlive(all)
			clear(all[1:])
			redistest.Eventually(s.T, "they are collected", func() bool {
				runtime.GC()
				return !slices.ContainsFunc(s.judge(), func(p operate.Problem) bool { return p.ID == operate.LimitersMany })
			})
			runtime.KeepAlive(all[0])
		},
	} {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			s.eventually(false, id, "")
			test(s)
		})
	}
}

func (s *shop) override(t operate.Target, w operate.Wish) {
	s.Helper()
	if _, err := s.prefix().Override(s.Context(), fleet.Actor{By: "kim"}, t, w); err != nil {
		s.Fatal(err)
	}
}

func (s *shop) clear(rule string) {
	s.Helper()
	if _, err := s.prefix().ClearOverride(s.Context(), fleet.Actor{By: "kim"}, operate.Target{Rule: rule, Force: true}); err != nil {
		s.Fatal(err)
	}
}
