package console_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/console"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
)

// sent is a hook that notes the commands of a client, without those that open a connection.
type sent struct {
	mu    sync.Mutex
	names []string
}

func (s *sent) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (s *sent) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		s.note(cmd)
		return next(ctx, cmd)
	}
}

func (s *sent) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		s.note(cmds...)
		return next(ctx, cmds)
	}
}

func (s *sent) note(cmds ...redis.Cmder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, cmd := range cmds {
		if name := cmd.Name(); name != "hello" && name != "client" {
			s.names = append(s.names, name)
		}
	}
}

// take returns the commands since the last take.
func (s *sent) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := s.names
	s.names = nil
	return names
}

// The first page of a new console takes at most 30 commands, that of a subject 40, and the first screen 250, also of a fleet of 2,000 processes that publish statistics of 1,000 rules.
func TestCommands(t *testing.T) {
	t.Parallel()
	addr := redistest.Start(t).Addr
	rules := fillFleet(t, addr, fleet.MaxProcesses)
	for path, form := range map[string]url.Values{
		"/": nil, "/rules": nil, "/rule?name=" + rules[7].Name: nil, "/live": nil, "/changes": nil, "/refusing": nil, "/subject": {"key": {"k7"}},
	} {
		synctest.Test(t, func(t *testing.T) { // no time passes, so that a busy machine reads nothing twice, and no page ends early
			client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})
			defer client.Close()
			hook := new(sent)
			client.AddHook(hook)
			h := console.New(ratelimit.New(redisstore.New(client, patient), ratelimit.WithPrefix("shop")))
			method, most := http.MethodGet, 30
			switch {
			case path == "/":
				most = 250 // every ten seconds, the judgement tries what the server permits
			case form != nil:
				method, most = http.MethodPost, 40
			}
			for _, which := range []string{"first", "second"} {
				code, page := send(h, method, path, form)
				if names := hook.take(); code != http.StatusOK || len(names) > most {
					t.Errorf("the %s page %s: %d, %d commands: %q", which, path, code, len(names), names)
				}
				requireSmall(t, path, page)
				if path == "/live" && which == "first" && !strings.Contains(plain(page), "Sums of 200 of 2,000 processes") {
					t.Errorf("%s shows %s", path, plain(page))
				}
			}
		})
	}
}

// A console looks at a subject without a beat: nothing is sent when nobody looks.
func TestLooksWithoutABeat(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	fillFleet(t, server.Addr, 1)
	synctest.Test(t, func(t *testing.T) {
		client := redis.NewClient(&redis.Options{Addr: server.Addr, MaxRetries: -1})
		defer client.Close()
		hook := new(sent)
		client.AddHook(hook)
		h := console.New(ratelimit.New(redisstore.New(client, patient), ratelimit.WithPrefix("shop")))
		if code, page := send(h, http.MethodPost, "/subject", url.Values{"key": {"k7"}}); code != http.StatusOK || !slices.Contains(hook.take(), "fcall") {
			t.Errorf("the page asks for no quotas: %d, %s", code, page)
		}
		time.Sleep(time.Minute)
		if names := hook.take(); len(names) > 0 {
			t.Errorf("%d commands are sent when nobody looks: %q", len(names), names)
		}
	})
}

// A report is read once. When its process says something new, it is read again.
func TestReportsAreReadOnce(t *testing.T) {
	t.Parallel()
	addr := redistest.Start(t).Addr
	client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})
	defer client.Close()
	hook := new(sent)
	client.AddHook(hook)
	h := console.New(ratelimit.New(redisstore.New(client, patient), ratelimit.WithPrefix("shop")))
	writer := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})
	defer writer.Close()
	report := func(calls int64) fleet.Report {
		return fleet.Report{Rules: []fleet.RuleCounts{{Name: "r", Tag: "1h", Counts: fleet.Counts{Calls: calls}}}}
	}
	say(t, writer, report(30))
	requireText(t, h, "/live", nil, "r per hour 30 ")
	hook.take()
	for names := []string(nil); !slices.Contains(names, "hscan"); time.Sleep(50 * time.Millisecond) {
		send(h, http.MethodGet, "/live", nil)
		if names = hook.take(); slices.Contains(names, "mget") {
			t.Fatalf("the reports were read again: %q", names)
		}
	}
	say(t, writer, report(70))
	requireText(t, h, "/live", nil, "r per hour 70 ")
}

// fillFleet writes what processes with statistics say of themselves, and returns the rules of all.
func fillFleet(t testing.TB, addr string, processes int) (rules []ratelimit.Rule) {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})
	defer client.Close()
	for i := range fleet.MaxRules {
		rules = append(rules, ratelimit.Rule{Name: fmt.Sprintf("a.rather.long.name.of.a.rule.%d", i), Key: "{tenant}", Limit: 100, Per: time.Hour})
	}
	l := ratelimit.New(redisstore.New(client, redisstore.WithTimeout(time.Minute)), ratelimit.WithPrefix("shop"))
	if err := l.Check(rules...); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		if _, err := l.Allow(t.Context(), ratelimit.Request{Rule: rules[i], Key: "k7"}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, limit := ratelimit.WithActor(t.Context(), "ada", "r"), int64(50)
	for i := range 50 {
		if err := l.Overrides().Set(ctx, rules[i].Name, ratelimit.Override{Limit: &limit}); err != nil {
			t.Fatal(err)
		}
	}
	report, slot := fleet.Report{Seconds: 5}, map[string]any{}
	now := time.Now()
	for i := range 20 {
		r := fleet.RuleCounts{Name: rules[i].Name, Tag: "1h", Counts: fleet.Counts{Calls: 100}}
		for j := range 3 {
			r.Subjects = append(r.Subjects, fleet.Subject{Name: fmt.Sprintf("k%d", j), Counts: fleet.Counts{Calls: 5, Refused: 1, Failed: 1}})
		}
		report.Rules = append(report.Rules, r)
		for n := now.Unix()/5 - 120; n <= now.Unix()/5; n++ {
			slot[fmt.Sprintf("%d calls %s 1h", n, r.Name)] = 100
		}
	}
	text, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		for i := range processes {
			p.Set(t.Context(), fmt.Sprint("shop.seen:{shop}:report:process", i), text, time.Hour)
		}
		for field, n := range slot {
			var at int64
			fmt.Sscan(field, &at)
			p.HSet(t.Context(), fmt.Sprint("shop.seen:{shop}:history:", at/24), field, n)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	keepAlive(t, addr, processes)
	waitForRules(t, l, len(rules))
	return rules
}

// keepAlive writes the words of processes every five seconds, as they do, until the test ends.
func keepAlive(t testing.TB, addr string, processes int) {
	client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})
	ctx, stop := context.WithCancel(context.Background())
	var beats sync.WaitGroup
	t.Cleanup(func() { stop(); beats.Wait(); _ = client.Close() })
	say := func() {
		_, _ = client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i := range processes {
				id := fmt.Sprintf("process%d", i)
				word, err := json.Marshal(fleet.Process{Host: "host" + id, PID: i, Program: "example.com/shop", At: time.Now(), Stats: true})
				if err != nil {
					return err
				}
				p.HSet(ctx, "shop.seen:{shop}:processes", id, word)
			}
			return nil
		})
	}
	say()
	beats.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(5 * time.Second):
				say()
			}
		}
	})
}

// waitForRules waits until the limiter's beat has declared its rules.
func waitForRules(t testing.TB, l *ratelimit.Limiter, n int) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		rules, err := l.Rules(t.Context())
		if err == nil && len(rules) == n {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d rules, %v", len(rules), err)
		}
	}
}

// BenchmarkPages measures pages over 10,000 settings of keys of 128 odd bytes: the first page of a console, and one of those that follow when what
// was read is no longer fresh.
func BenchmarkPages(b *testing.B) {
	addr := redistest.Start(b).Addr
	rules := fillFleet(b, addr, 300)
	client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})
	defer client.Close()
	l := ratelimit.New(redisstore.New(client, patient), ratelimit.WithPrefix("shop"))
	var requests []ratelimit.Request
	for i := range 9_900 {
		requests = append(requests, ratelimit.Request{Rule: rules[7], Key: fmt.Sprintf("%s%05d", strings.Repeat(`"`, 123), i)})
	}
	if err := l.Block(ratelimit.WithActor(b.Context(), "ada", "r"), time.Hour, requests...); err != nil {
		b.Fatal(err)
	}
	for _, path := range []string{"/", "/?from=5000", "/rules", "/rule?name=" + rules[7].Name, "/live", "/changes", "/subject"} {
		method, form := http.MethodGet, url.Values(nil)
		if path == "/subject" {
			method, form = http.MethodPost, url.Values{"key": {requests[0].Key}}
		}
		show := func(b *testing.B, h http.Handler) {
			if code, page := send(h, method, path, form); code != http.StatusOK {
				b.Fatal(code, page)
			}
		}
		b.Run("first"+path, func(b *testing.B) {
			for b.Loop() {
				show(b, console.New(l))
			}
		})
		b.Run("later"+path, func(b *testing.B) {
			h := console.New(l)
			for range b.N + 2 { // after two, all reports are known
				b.StopTimer()
				time.Sleep(time.Second)
				b.StartTimer()
				show(b, h)
			}
		})
	}
}
