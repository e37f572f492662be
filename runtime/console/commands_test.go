package console_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"testing"
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

// The first page of a new console takes at most 20 commands, also of a fleet of 300 processes that publish statistics.
func TestCommands(t *testing.T) {
	addr := redistest.Start(t).Addr
	rules := fillFleet(t, addr)
	for path, form := range map[string]url.Values{
		"/": nil, "/rules": nil, "/rule?name=" + rules[7].Name: nil, "/live": nil, "/changes": nil, "/subject": {"key": {"k7"}},
	} {
		client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})
		defer client.Close()
		hook := new(sent)
		client.AddHook(hook)
		h := console.New(ratelimit.New(redisstore.New(client), ratelimit.WithPrefix("shop")))
		method := http.MethodGet
		if form != nil {
			method = http.MethodPost
		}
		for _, which := range []string{"first", "second"} {
			code, page := send(h, method, path, form)
			if names := hook.take(); code != http.StatusOK || len(names) > 20 {
				t.Errorf("the %s page %s: %d, %d commands: %q", which, path, code, len(names), names)
			}
			requireSmall(t, path, page)
		}
		if path == "/live" {
			requireText(t, h, path, nil, "Sums of 300 processes")
		}
	}
}

// fillFleet writes what 300 processes with statistics say of themselves, and returns the rules of all.
func fillFleet(t *testing.T, addr string) (rules []ratelimit.Rule) {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})
	defer client.Close()
	for i := range 990 {
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
		for i := range 300 {
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
	keepAlive(t, addr)
	waitForRules(t, l, len(rules))
	return rules
}

// keepAlive writes the words of 300 processes once a second until the test ends.
func keepAlive(t *testing.T, addr string) {
	client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})
	ctx, stop := context.WithCancel(context.Background())
	var beats sync.WaitGroup
	t.Cleanup(func() { stop(); beats.Wait(); _ = client.Close() })
	beats.Go(func() {
		for ctx.Err() == nil {
			_, _ = client.Pipelined(ctx, func(p redis.Pipeliner) error {
				for i := range 300 {
					id := fmt.Sprintf("process%d", i)
					word, err := json.Marshal(fleet.Process{Host: "host" + id, PID: i, Program: "example.com/shop", At: time.Now(), Stats: true})
					if err != nil {
						return err
					}
					p.HSet(ctx, "shop.seen:{shop}:processes", id, word)
				}
				return nil
			})
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		}
	})
}

// waitForRules waits until the limiter's beat has declared its rules.
func waitForRules(t *testing.T, l *ratelimit.Limiter, n int) {
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
