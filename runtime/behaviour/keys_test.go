package behaviour_test

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// keysOn returns all keys of a server, sorted.
func keysOn(t *testing.T, client *redis.Client) []string {
	t.Helper()
	var keys []string
	scan := client.Scan(context.Background(), 0, "*", 1000).Iterator()
	for scan.Next(context.Background()) {
		keys = append(keys, scan.Val())
	}
	if err := scan.Err(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(keys)
	return keys
}

// requireExpiries fails the test if any key on the server has no expiry.
func requireExpiries(t *testing.T, server *redistest.Server) {
	t.Helper()
	client := connect(t, server.Addr)
	for _, key := range keysOn(t, client) {
		// -1 means a key without an expiry; -2 means that the key has expired meanwhile.
		if ttl := client.Do(context.Background(), "PTTL", key).Val(); ttl == int64(-1) {
			t.Errorf("%q has no expiry", key)
		}
	}
}

func TestKeysFollowTheirPattern(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := connect(t, server.Addr)
	for _, prefix := range []string{"ratelimit", "shop"} {
		l := ratelimit.New(bare{scripted(client)}, ratelimit.WithPrefix(prefix))
		for _, rule := range algorithms() {
			rule.Name = "sms.Sender.SendCode"
			if _, err := l.Allow(context.Background(), ratelimit.Request{Rule: rule, Key: "+8613800000000"}); err != nil {
				t.Fatal(err)
			}
		}
		// prefix:name:{subject}:tag
		pattern := regexp.MustCompile(`^` + prefix + `:sms\.Sender\.SendCode:\{\+8613800000000\}:([^{}]+)$`)
		tags := map[string]bool{}
		for _, key := range keysOn(t, client) {
			if m := pattern.FindStringSubmatch(key); m != nil {
				tags[m[1]] = true
			} else {
				t.Errorf("key %q does not match %s", key, pattern)
			}
		}
		for _, rule := range algorithms() {
			if !tags[rule.Window()] {
				t.Errorf("no key ends with the window %q: %v", rule.Window(), tags)
			}
		}
		server.Do("FLUSHALL")
	}
}

// TestStateKey uses rules whose states are separated by their names or by their templates.
func TestStateKey(t *testing.T) {
	t.Parallel()
	const method, text = "sms.Sender.SendCode", "a{b}"
	server := redistest.Start(t)
	client := connect(t, server.Addr)
	l := ratelimit.New(bare{scripted(client)})
	window := func(name, template string) ratelimit.Rule {
		return ratelimit.Rule{Name: name, Key: template, Limit: 1, Per: time.Hour}
	}
	rules := []ratelimit.Rule{
		window(method, ""), window(method, "{phone}"), window("sms.Sender", "{phone}"), window("login", "{phone}"),
	}
	prepared := wrap.NewRules(method, rules...)
	if err := wrap.Take(context.Background(), prepared.On(l), prepared, "", text, text, text); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Allow(context.Background(), ratelimit.Request{Rule: window("", "{phone}"), Key: "requested"}); err != nil {
		t.Fatal(err)
	}
	stateOf := func(r ratelimit.Rule, method, subject string) string {
		return key.State(ratelimit.DefaultPrefix, r.Name, key.Subject(subject), key.Tag(r.Name, method, r.Window(), r.Key))
	}
	expected := []string{stateOf(rules[0], method, ""), stateOf(window("", "{phone}"), "", "requested")}
	for _, r := range rules[1:] {
		expected = append(expected, stateOf(r, method, text))
	}
	found := keysOn(t, client)
	slices.Sort(found)
	slices.Sort(expected)
	if !slices.Equal(found, expected) {
		t.Errorf("keys are\n%q, expected\n%q", found, expected)
	}
}

// subjects are keys that try to look like another key, to move the hash tag, or to break a terminal.
var subjects = []string{
	"", "a", "a:b", "a::b", ":a", "a:", "{a}", "a}", "{a", "}", "{", "{}", "a}:1m", "a}:1h:{a", "%", "%7B", "%7Ba%7D", "%257B", `\`, `\:`, "a\\:b",
	"a\x00", "a\x00b", "a\r\nDEL a", "\x1b[31mred", "\xff\xfe", "é", "e\u0301", "e", "É", "a b", " a", "a ", "A", "\u2028", "٣", "3",
	strings.Repeat("x", 127), strings.Repeat("x", 128), strings.Repeat("x", 129), strings.Repeat("x", 64<<10),
	strings.Repeat("x", 128) + "y", strings.Repeat("x", 64<<10-1) + "y", strings.Repeat("{", 128), strings.Repeat("%", 128),
}

func TestFault_KeysForgedByValues(t *testing.T) {
	onPlainToo(t, func(t *testing.T, s *subject) {
		rule := window("r", 1, s.window)
		for i, key := range subjects {
			q := ratelimit.Request{Rule: rule, Key: key}
			if d := s.allow(t, q); !d.Allowed {
				t.Errorf("subject %d, %.40q, has the budget of another", i, key)
			}
			s.refuse(t, q)
		}
	})
}

func TestForgedKeysStayInTheirPattern(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := onServer(t, server)
	s.limiter = ratelimit.New(bare{s.store})
	rule := ratelimit.Rule{Name: "r", Limit: 1, Per: time.Hour}
	for _, key := range subjects {
		s.admit(t, ratelimit.Request{Rule: rule, Key: key})
	}
	keys := keysOn(t, connect(t, server.Addr))
	if len(keys) != len(subjects) {
		t.Errorf("%d keys for %d subjects", len(keys), len(subjects))
	}
	pattern := regexp.MustCompile(`^ratelimit:r:\{[^{}\x00-\x1f\x7f]*\}:` + regexp.QuoteMeta(rule.Window()) + `$`)
	for _, key := range keys {
		if !pattern.MatchString(key) || len(key) > 512 {
			t.Errorf("key %.200q of %d bytes does not match %s", key, len(key), pattern)
		}
	}
}

// Name and subject are joined so that no part of one can be taken for a part of the other.
func TestFault_KeyPartsJoinedWithoutSeparators(t *testing.T) {
	onPlainToo(t, func(t *testing.T, s *subject) {
		for _, q := range []ratelimit.Request{
			{Rule: ratelimit.Rule{Name: "login", Limit: 1, Per: 15 * time.Hour, Algorithm: s.window}, Key: "5"},
			{Rule: ratelimit.Rule{Name: "login1", Limit: 1, Per: 5 * time.Hour, Algorithm: s.window}, Key: "5"},
			{Rule: ratelimit.Rule{Name: "login", Limit: 1, Per: 5 * time.Hour, Algorithm: s.window}, Key: "15"},
			{Rule: ratelimit.Rule{Name: "login", Limit: 1, Per: 5 * time.Hour, Algorithm: s.window}, Key: "1:5"},
			{Rule: ratelimit.Rule{Name: "login.1", Limit: 1, Per: 5 * time.Hour, Algorithm: s.window}, Key: "5"},
			{Rule: ratelimit.Rule{Name: "login", Limit: 1, Per: 5 * time.Hour, Algorithm: ratelimit.SlidingCounter}, Key: "5"},
			{Rule: ratelimit.Rule{Name: "login", Limit: 1, Per: 5 * time.Hour, Algorithm: ratelimit.FixedWindow}, Key: "5"},
			{Rule: ratelimit.Rule{Name: "login", Limit: 1, Per: 5 * time.Hour, Algorithm: ratelimit.TokenBucket}, Key: "5"},
			{Rule: ratelimit.Rule{Name: "login", Limit: 1, Cron: "0 0 5 1 1 *"}, Key: "5"},
			{Rule: ratelimit.Rule{Name: "login", Limit: 1, Cron: "0 0 5 1 1 *", TZ: "Asia/Shanghai"}, Key: "5"},
		} {
			if s.knows(q.Rule) && !s.allow(t, q).Allowed {
				t.Errorf("%+v has the budget of another", q)
			}
		}
	})
}

func TestFault_AccentsFolded(t *testing.T) {
	onPlainToo(t, func(t *testing.T, s *subject) {
		for _, key := range []string{"rené", "rene", "RENÉ", "rene\u0301", "ſ", "s"} {
			s.admit(t, ratelimit.Request{Rule: window("r", 1, s.window), Key: key})
		}
	})
}

func TestFault_TokenKeysCollideWithTheApplications(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server, s *subject) {
		s.limiter = ratelimit.New(bare{s.store})
		own := []string{"k", "r", "r:k", "{k}", "r:{k}", "r:{k}:1h", "1", "1h", "ratelimit", "ratelimit:r"}
		for _, key := range own {
			server.Do("SET " + key + " application")
		}
		for i := range 20 {
			s.allow(t, ratelimit.Request{Rule: ratelimit.Rule{Name: "r", Limit: 5, Per: time.Hour, Algorithm: s.window}, Key: "k"},
				ratelimit.Request{Rule: ratelimit.Rule{Name: "r", Limit: 5, Per: time.Minute, Algorithm: s.window}, Key: strconv.Itoa(i)})
		}
		for _, key := range own {
			if got := server.Do("GET " + key); got != "application" {
				t.Errorf("the application's %s is now %q", key, got)
			}
		}
		for _, key := range keysOn(t, connect(t, server.Addr)) {
			if !slices.Contains(own, key) && !strings.HasPrefix(key, "ratelimit:r:{") {
				t.Errorf("%q is outside the prefix", key)
			}
		}
	})
}

func TestEveryKeyHasAnExpiry(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server, s *subject) {
		for _, rule := range s.algorithms() {
			for _, per := range []time.Duration{time.Microsecond, time.Millisecond, time.Second, 365 * 24 * time.Hour} {
				if rule.Cron == "" {
					rule.Per = per
				}
				if !s.knows(rule) {
					continue
				}
				q := ratelimit.Request{Rule: rule, Key: per.String()}
				d := s.allow(t, q)
				s.allow(t, ratelimit.Request{Rule: rule, Key: per.String(), Cost: 3})
				requireExpiries(t, server)
				if err := d.Refund(context.Background()); err != nil {
					t.Fatal(err)
				}
				requireExpiries(t, server)
			}
		}
	})
}

// A refused call writes nothing on the server, not even for a new subject.
func TestRefusedCallWritesNothing(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server, s *subject) {
		s.limiter = ratelimit.New(bare{s.store}) // which writes no list of its rules
		full, rules := ratelimit.Request{Rule: window("full", 1, s.window), Key: "k"}, s.algorithms()
		s.admit(t, full)
		before := dump(t, server)
		for _, rule := range rules {
			s.refuse(t, full, ratelimit.Request{Rule: rule, Key: "k"}, ratelimit.Request{Rule: rule, Key: "new"})
			s.peek(t, ratelimit.Request{Rule: rule, Key: "k"}, ratelimit.Request{Rule: rule, Key: "new"})
		}
		if after := dump(t, server); after != before {
			t.Errorf("refused calls and peeks changed the server from\n%s\nto\n%s", before, after)
		}
	})
}

// dump returns all keys and values of a server as text.
func dump(t *testing.T, server *redistest.Server) string {
	t.Helper()
	client := connect(t, server.Addr)
	var all strings.Builder
	for _, key := range keysOn(t, client) {
		value, err := client.Dump(context.Background(), key).Result()
		if err != nil {
			t.Fatal(err)
		}
		all.WriteString(strconv.Quote(key) + " " + strconv.Quote(value) + "\n")
	}
	return all.String()
}

// The block of one subject is separate from the count of another subject whose text looks like the block's key.
func TestBlockIsNoCountOfAnotherSubject(t *testing.T) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		blocking := ratelimit.Rule{Name: "r", Limit: 1, Per: time.Hour, Block: time.Hour}
		plain := ratelimit.Rule{Name: "r", Limit: 1, Per: time.Hour}
		for _, subject := range []string{"555", "555:block", "block:555", "block:r:{555}"} {
			q := ratelimit.Request{Rule: blocking, Key: subject}
			s.admit(t, q)
			s.refuse(t, q) // begins the block
		}
		for _, subject := range []string{"556", "556:block", "block:556"} {
			s.admit(t, ratelimit.Request{Rule: plain, Key: subject})
		}

		phone := ratelimit.Rule{Key: "{phone}", Limit: 2, Per: time.Hour, Block: time.Hour}
		other := ratelimit.Rule{Key: "{phone}:block", Limit: 2, Per: time.Hour} // its template looks like the end of the block's key, too
		rules := wrap.NewRules("p.T.M", phone, other)
		for i, phone := range []string{"555", "555:block", "555:block", "555:block", "555"} {
			err := wrap.Take(t.Context(), rules.On(s.limiter), rules, phone, phone+":block")
			if refused := errors.Is(err, ratelimit.ErrTooManyRequests); refused != (i == 3) || err != nil && !refused {
				t.Errorf("call %d of %s: %v", i, phone, err)
			}
		}
	})
}
