package operate_test

import (
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/operate"
	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
)

// Who may not read something is told so: what cannot be read is never well, also if something else is worth a note.
func TestUnreadIsNotWell(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.process(nil, login)
	s.word("a", fleet.Process{Host: "web-1", Program: "shop", Build: "v1"})
	s.word("b", fleet.Process{Host: "web-2", Program: "shop", Build: "v2"})
	unread := 0
	for _, command := range []string{"hscan", "mget", "hmget", "hget", "zrangebyscore", "time", "hlen", "info"} {
		s.Do("ACL SETUSER reader on >secret ~* +@all -" + command)
		c := redis.NewClient(&redis.Options{Addr: s.Addr, Username: "reader", Password: "secret", DialerRetries: 1})
		store := redisstore.New(c, redisstore.WithTimeout(time.Minute), redisstore.WithoutFunctions())
		store.Fleet("shop").Hide()
		judged := operate.New(ratelimit.New(store, ratelimit.WithPrefix("shop")), time.Minute).Judge(t.Context())
		if judged.At.Err != nil {
			unread++
			if !slices.ContainsFunc(judged.Problems, func(p operate.Problem) bool { return p.Level > operate.Note }) {
				t.Errorf("without %s, %v, but the problems are %+v", command, judged.At.Err, judged.Problems)
			}
		}
		_ = c.Close()
	}
	if unread == 0 {
		t.Error("everything was read")
	}
}

// The command that ends a setting has the key as one word, whatever is in it: people copy it into a shell.
func TestCommandsAreForAShell(t *testing.T) {
	t.Parallel()
	keys := []string{"ann", "$(touch x)", "`id`", "a;b", "it's", "a b", "-x", "~root", "*", "a>b", "#a", "é", "!1", `\`, "203.0.113.7"}
	for _, do := range map[string]func(*operate.Prefix, operate.Target) error{
		"override": func(p *operate.Prefix, target operate.Target) error {
			_, err := p.Override(t.Context(), fleet.Actor{By: "kim"}, target, operate.Wish{Limit: new(int64(9)), Forever: true})
			return err
		},
		"block": func(p *operate.Prefix, target operate.Target) error {
			_, err := p.Block(t.Context(), fleet.Actor{By: "kim"}, target, time.Hour)
			return err
		},
	} {
		p := operate.New(ratelimit.New(memstore.New()), time.Minute)
		if err := do(p, operate.Target{Rule: "no;program", Keys: keys, Force: true}); err != nil {
			t.Fatal(err)
		}
		var found []string
		for _, problem := range p.Judge(t.Context()).Problems {
			_, command, _ := strings.Cut(problem.Advice, "clear it by ratelimitctl ")
			words, err := exec.Command("sh", "-c", `printf '%s\n' `+command).Output()
			if err != nil || !strings.Contains(string(words), "\nno;program\n") {
				t.Errorf("%s: %q, %v", command, words, err)
			}
			for _, key := range keys {
				if strings.Contains(string(words), "\n"+key+"\n") {
					found = append(found, key)
				}
			}
		}
		slices.Sort(found)
		if want := slices.Sorted(slices.Values(keys)); !slices.Equal(found, want) {
			t.Errorf("got the keys %q, want %q", found, want)
		}
	}
}

// A block that has ended is in no list, also if the list was read before its end.
func TestWhatHasEndedRefusesNobody(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	t.Cleanup(func() { _ = client.Close() })
	for name, store := range map[string]ratelimit.Store{"memory": memstore.New(), "Redis": redisstore.New(client, redisstore.WithTimeout(time.Minute))} {
		l := ratelimit.New(store)
		p := operate.New(l, time.Minute)
		once := ratelimit.Rule{Name: "once", Key: "{user}", Limit: 1, Per: time.Second, Block: 2 * time.Second}
		for range 2 {
			if _, err := l.Allow(t.Context(), ratelimit.Request{Rule: once, Key: "eve"}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := p.Block(t.Context(), fleet.Actor{By: "kim"}, operate.Target{Rule: "once", Keys: []string{"ann"}, Force: true}, 2*time.Second); err != nil {
			t.Fatal(err)
		}
		redistest.Eventually(t, name+": nothing refuses any more", func() bool {
			now, refusing := p.Now(), p.Refusing(t.Context(), "")
			for _, one := range refusing.All {
				if !one.Until.After(now) {
					t.Errorf("%s: %+v has ended at %s", name, one, now)
				}
			}
			return len(refusing.All) == 0
		})
	}
}

// An override of limit 0 refuses nobody in shadow mode, be it the mode of the rule or of the override.
func TestLimitOfZeroInShadowMode(t *testing.T) {
	t.Parallel()
	l := ratelimit.New(memstore.New())
	shadow := ratelimit.Rule{Name: "shadow", Key: "{user}", Limit: 1, Per: time.Hour, Mode: ratelimit.ModeShadow}
	if err := l.Check(login, shadow); err != nil {
		t.Fatal(err)
	}
	p := operate.New(l, time.Minute)
	enforce := ratelimit.ModeEnforce
	for _, one := range []struct {
		rule, key string
		mode      *ratelimit.Mode
	}{{"login", "", nil}, {"login", "ann", &shadow.Mode}, {"shadow", "", nil}, {"shadow", "ann", &enforce}} {
		target := operate.Target{Rule: one.rule}
		if one.key != "" {
			target.Keys = []string{one.key}
		}
		if _, err := p.Override(t.Context(), fleet.Actor{By: "kim"}, target, operate.Wish{Limit: new(int64(0)), Mode: one.mode, Forever: true}); err != nil {
			t.Fatal(err)
		}
	}
	got := map[string]string{}
	for _, one := range p.Refusing(t.Context(), "").All {
		got[one.Rule+" "+one.Key] = one.Mode
	}
	if want := map[string]string{"login ": "", "login ann": "shadow", "shadow ": "shadow", "shadow ann": ""}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// Who cannot sign in is not told alone to see whether the server runs.
func TestAdviceOnAWrongPassword(t *testing.T) {
	t.Parallel()
	s := open(t)
	c := redis.NewClient(&redis.Options{Addr: s.Addr, Username: "nobody", Password: "wrong", DialerRetries: 1})
	t.Cleanup(func() { _ = c.Close() })
	p := operate.New(ratelimit.New(redisstore.New(c, redisstore.WithTimeout(time.Minute))), time.Minute)
	found := p.Judge(t.Context()).Problems
	if len(found) == 0 || !strings.Contains(found[0].Text, "WRONGPASS") || strings.HasSuffix(found[0].Text, ".") || !strings.Contains(found[0].Advice, "password") {
		t.Errorf("got %+v", found)
	}
}

// A setting for keys that begin with a text has no effect where all keys are hashed.
func TestTextOfHashedKeys(t *testing.T) {
	t.Parallel()
	for hashes, options := range map[bool][]ratelimit.Option{false: nil, true: {ratelimit.WithSubjectHash([]byte(strings.Repeat("s", 32)))}} {
		s := open(t)
		s.process(options, login)
		for _, match := range []string{"203.0.113.0/24", "5*"} {
			if _, err := s.prefix(options...).Block(t.Context(), fleet.Actor{By: "kim"}, operate.Target{Rule: "*", Match: match}, time.Hour); err != nil {
				t.Fatal(err)
			}
		}
		var got []string
		for _, p := range s.prefix(options...).Judge(t.Context()).Problems {
			got = append(got, p.ID+" "+p.Subject)
		}
		if want := map[bool][]string{true: {operate.SettingUnusable + " * 5*"}}[hashes]; !slices.Equal(got, want) {
			t.Errorf("hashes: %v, got %q, want %q", hashes, got, want)
		}
	}
}

// Who looks as a user that may not ask for all is no problem to others who look, nor they to it.
func TestToolsAreNoProblem(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.process(nil, login)
	s.Do("ACL SETUSER operator on >secret ~* +@all -config -slowlog -acl -latency -cluster")
	c := redis.NewClient(&redis.Options{Addr: s.Addr, Username: "operator", Password: "secret", DialerRetries: 1})
	t.Cleanup(func() { _ = c.Close() })
	store := redisstore.New(c, redisstore.WithTimeout(time.Minute), redisstore.WithoutFunctions())
	store.Fleet("shop").Hide()
	operator := operate.New(ratelimit.New(store, ratelimit.WithPrefix("shop")), time.Minute)
	_ = c.Do(t.Context(), "cluster", "slots").Err() // as ratelimitctl asks first
	admin := s.prefix()
	for range 3 {
		for _, p := range []*operate.Prefix{operator, admin} {
			p.Observe(t.Context(), time.Millisecond)
			if judged := p.Judge(t.Context()); len(judged.Problems) > 0 {
				t.Errorf("got %+v", judged.Problems)
			}
		}
	}
}

// A number of paused keys that is not known whole says so.
func TestPausesBeyondTheBound(t *testing.T) {
	t.Parallel()
	for want, rule := range map[string]operate.Rule{
		"3 keys paused": {Paused: 3}, "": {MorePaused: true}, "1 key blocked; 3 keys paused or more": {Blocked: 1, Paused: 3, MorePaused: true},
	} {
		if got := rule.InWords(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
