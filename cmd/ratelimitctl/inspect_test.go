package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
)

// program is a program whose limits the tool inspects.
type program struct {
	*ratelimit.Limiter
	client *redis.Client
	t      *testing.T
}

func newFleet(t *testing.T, addr string, options ...redisstore.Option) *program {
	client := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { _ = client.Close() })
	options = append(options, redisstore.WithTimeout(20*time.Second))
	return &program{ratelimit.New(redisstore.New(client, options...)), client, t}
}

// allow makes calls under a rule.
func (f *program) allow(n int, rule ratelimit.Rule, key string) {
	f.t.Helper()
	for range n {
		if _, err := f.Allow(f.t.Context(), ratelimit.Request{Rule: rule, Key: key}); err != nil {
			f.t.Fatal(err)
		}
	}
}

// wait makes waiting calls, one after the other, and returns functions that make each of them give up.
func (f *program) wait(n int, rule ratelimit.Rule, key string) (giveUp []func()) {
	for range n {
		ctx, cancel := context.WithCancel(f.t.Context())
		done := make(chan struct{})
		before := f.state(rule, key)
		go func() {
			defer close(done)
			_, _ = f.Wait(ctx, ratelimit.Request{Rule: rule, Key: key})
		}()
		for f.state(rule, key) == before {
			time.Sleep(time.Millisecond)
		}
		giveUp = append(giveUp, func() { cancel(); <-done })
	}
	return giveUp
}

// state returns all that the server keeps for a key under a rule.
func (f *program) state(rule ratelimit.Rule, key string) string {
	f.t.Helper()
	state, err := f.StateKey(ratelimit.Request{Rule: rule, Key: key})
	if err != nil {
		f.t.Fatal(err)
	}
	text, err := f.client.Dump(f.t.Context(), state).Result()
	if err != nil && err != redis.Nil {
		f.t.Fatal(err)
	}
	return text
}

// known writes the rules to the store, as limiters do after their first calls.
func (f *program) known(texts map[string]string) {
	f.t.Helper()
	declare(f.t, f.client, "ratelimit", slices.Collect(maps.Values(texts))...)
}

// declare writes the texts of rules to the store, as processes of a prefix do.
func declare(t *testing.T, client *redis.Client, prefix string, texts ...string) {
	t.Helper()
	set := map[string]any{"at": time.Now().UTC(), "program": "test", "rules": texts}
	text, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	seen := prefix + ".seen:{" + prefix + "}:"
	if err := client.HSet(t.Context(), seen+"sets", rand.Text(), text).Err(); err != nil {
		t.Fatal(err)
	}
	for _, rule := range texts { // a text is its own identity here
		if err := client.HSet(t.Context(), seen+"rules", rule, rule).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

// With -shown, a key is given in the form that errors and top show.
func TestKeyAsItIsShown(t *testing.T) {
	server := redistest.Start(t)
	f := newFleet(t, server.Addr)
	f.known(map[string]string{"login 1h": `{"name":"login","key":"{user}","limit":5,"per":3600000000000}`})
	f.allow(1, ratelimit.Rule{Name: "login", Key: "{user}", Limit: 5, Per: time.Hour}, "a{b")
	require(t, server.Addr, done, "blocked until", "block", "login", "a%7Bb", "-shown", "-for", "1h")
	if blocked := f.client.HKeys(t.Context(), "ratelimit.fleet:{ratelimit}:settings").Val(); !slices.Equal(blocked, []string{"block:login:{a%7Bb}"}) {
		t.Errorf("blocked are %q", blocked)
	}
	require(t, server.Addr, done, "1 count forgotten", "reset", "-shown", "login", "a%7Bb")
}

// inspect shows waiting calls and free places, for all algorithms that let calls wait.
func TestInspectShowsWhoWaits(t *testing.T) {
	server := redistest.Start(t)
	f := newFleet(t, server.Addr)
	hourly := func(name string, algorithm ratelimit.Algorithm) ratelimit.Rule {
		return ratelimit.Rule{Name: name, Limit: 2, Per: time.Hour, Algorithm: algorithm}
	}
	for _, test := range []struct {
		rule ratelimit.Rule
		free bool // a place that is given up becomes free
		want []string
	}{
		{hourly("sliding", ratelimit.SlidingWindow), true, []string{"59m5", "59m5", "1h59m5"}},
		{hourly("fixed", ratelimit.FixedWindow), false, []string{"59m5", "59m5", "1h59m5"}},
		{hourly("leaky", ratelimit.LeakyBucket), true, []string{"29m5", "59m5", "1h29m5"}},
		{ratelimit.Rule{Name: "bucket", Limit: 2, Per: time.Hour, Algorithm: ratelimit.TokenBucket}, true, []string{"29m5", "59m5", "1h29m5"}},
		{ratelimit.Rule{Name: "yearly", Limit: 2, Cron: "@yearly"}, false, []string{"h", "h", "h"}},
	} {
		rule, used := test.rule, 2
		if rule.Algorithm == ratelimit.LeakyBucket {
			used = 1
		}
		f.known(map[string]string{rule.Name: ruleText(rule)})
		f.allow(used, rule, "")
		got := inspectedBy(t, server, rule.Name)
		if len(got.Waiting)+len(got.Free) > 0 {
			t.Errorf("%s: nobody waits, but it shows %+v", rule.Name, got)
		}
		giveUp := f.wait(3, rule, "")
		got = inspectedBy(t, server, rule.Name)
		permits := int64(0)
		for _, p := range got.Waiting {
			permits += p.Permits
		}
		if permits != 3 || len(got.Free) > 0 {
			t.Errorf("%s: three calls wait, but it shows %+v", rule.Name, got)
		}
		for i, want := range test.want {
			if i < len(got.Waiting) && got.Waiting[i].Permits == 1 && !strings.Contains(got.Waiting[i].In, want) {
				t.Errorf("%s: call %d waits for %s, want %s", rule.Name, i, got.Waiting[i].In, want)
			}
		}
		require(t, server.Addr, done, perWindow(rule.Window())+": calls wait for 3 permits", "inspect", rule.Name)
		giveUp[1]()
		got = inspectedBy(t, server, rule.Name)
		if test.free != (len(got.Free) == 1) {
			t.Errorf("%s: a call gave up, and it shows %+v", rule.Name, got)
		}
		giveUp[0]()
		giveUp[2]()
	}
}

// inspect shows no waiting calls for a rule whose calls do not wait, or if another program has overwritten the count.
func TestInspectShowsNobody(t *testing.T) {
	server := redistest.Start(t)
	f := newFleet(t, server.Addr)
	rule := ratelimit.Rule{Name: "counter", Limit: 2, Per: time.Hour, Algorithm: ratelimit.SlidingCounter}
	f.known(map[string]string{rule.Name: ruleText(rule)})
	f.allow(2, rule, "")
	if got := inspectedBy(t, server, rule.Name); got.Used != 2 || len(got.Waiting)+len(got.Free) > 0 {
		t.Errorf("got %+v", got)
	}
	bucket := ratelimit.Rule{Name: "bucket", Limit: 2, Per: time.Hour, Algorithm: ratelimit.TokenBucket}
	f.known(map[string]string{bucket.Name: ruleText(bucket)})
	for _, text := range []string{"damaged", "\x01" + strings.Repeat("\xff", 32), strings.Repeat("\x00", 32)} {
		state, err := f.StateKey(ratelimit.Request{Rule: bucket})
		if err != nil {
			t.Fatal(err)
		}
		if err := f.client.Set(t.Context(), state, text, time.Hour).Err(); err != nil {
			t.Fatal(err)
		}
		if got := inspectedBy(t, server, bucket.Name); len(got.Waiting) > 0 {
			t.Errorf("%q: got %+v", text, got)
		}
	}
}

// If an override raises the burst of a bucket, inspect does not take the missing permits for waiting calls.
func TestInspectUnderABurst(t *testing.T) {
	server := redistest.Start(t)
	f := newFleet(t, server.Addr)
	rule := ratelimit.Rule{Name: "bucket", Limit: 2, Per: time.Hour, Algorithm: ratelimit.TokenBucket}
	f.known(map[string]string{rule.Name: ruleText(rule)})
	if err := f.Overrides().Set(t.Context(), rule.Name, ratelimit.Override{Burst: 4}); err != nil {
		t.Fatal(err)
	}
	f.allow(4, rule, "")
	if got := inspectedBy(t, server, rule.Name); got.Used != 4 || len(got.Waiting) > 0 {
		t.Errorf("nobody waits, but it shows %+v", got)
	}
	require(t, server.Addr, done, "cleared burst=4", "override", "clear", rule.Name)
}

// inspect does not take permits of a lease for waiting calls.
func TestInspectTellsLeasesFromCalls(t *testing.T) {
	server := redistest.Start(t)
	f := newFleet(t, server.Addr)
	rule := ratelimit.Rule{Name: "leased", Limit: 1000, Per: time.Hour, Lease: time.Minute}
	f.known(map[string]string{rule.Name: ruleText(rule)})
	for leased := false; !leased; { // the first calls ask the server
		d, err := f.Allow(t.Context(), ratelimit.Request{Rule: rule})
		if err != nil || !d.Allowed {
			t.Fatal(d, err)
		}
		leased = d.Source == ratelimit.SourceLease
	}
	if got := inspectedBy(t, server, rule.Name); len(got.Waiting) > 0 || len(got.Ahead) == 0 {
		t.Errorf("nobody waits and a process took permits ahead, but it shows %+v", got)
	}
	require(t, server.Addr, done, "1000 per hour: processes took ahead ", "inspect", rule.Name)
}

// For a rule with distinct=, inspect shows the number of members, and the delay of a new member.
func TestInspectCountsMembers(t *testing.T) {
	server := redistest.Start(t)
	f := newFleet(t, server.Addr)
	rule := ratelimit.Rule{Name: "strangers", Limit: 2, Per: time.Hour, Distinct: "{friend}"}
	f.known(map[string]string{rule.Name: ruleText(rule)})
	for i, member := range []string{"ann", "bob"} {
		if _, err := f.Allow(t.Context(), ratelimit.Request{Rule: rule, Member: member}); err != nil {
			t.Fatal(err)
		}
		got := inspectedBy(t, server, rule.Name)
		if used := int64(i + 1); got.Used != used || got.Remaining != 2-used || (got.RetryAfter != "") != (used == 2) {
			t.Errorf("%d members called, and it shows %+v", used, got)
		}
	}
}

// ruleText returns a rule in the form that a limiter writes to the store.
func ruleText(r ratelimit.Rule) string {
	text, _ := json.Marshal(r)
	return string(text)
}

// inspectedBy returns the output of inspect for a rule without a key.
func inspectedBy(t *testing.T, server *redistest.Server, rule string) inspected {
	t.Helper()
	text, status := ctl(t, server.Addr, "-json", "inspect", rule)
	var shown []inspected
	if err := json.Unmarshal([]byte(text), &shown); err != nil || len(shown) != 1 || status != done {
		t.Fatalf("inspect %s: status %d, %s", rule, status, text)
	}
	return shown[0]
}
