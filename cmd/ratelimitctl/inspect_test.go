package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/operate"
	"github.com/ratelimit-go/ratelimit/internal/redistest"
	"github.com/ratelimit-go/ratelimit/internal/traffic"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// program is a program whose limits the tool inspects.
type program struct {
	*ratelimit.Limiter
	client *redis.Client
	t      *testing.T
}

// newFleet returns a program that runs until the test ends.
func newFleet(t *testing.T, addr string, options ...redisstore.Option) *program {
	client := redis.NewClient(&redis.Options{Addr: addr})
	options = append(options, redisstore.WithTimeout(20*time.Second))
	p := &program{ratelimit.New(redisstore.New(client, options...)), client, t}
	t.Cleanup(func() {
		_ = client.Close()
		runtime.KeepAlive(p)
	})
	return p
}

// waitUntilSeen waits until the process and its rules are listed.
func (f *program) waitUntilSeen(t *testing.T) {
	t.Helper()
	redistest.Eventually(t, "the process is listed", func() bool {
		return f.client.HLen(t.Context(), "ratelimit.seen:{ratelimit}:processes").Val() > 0 && f.client.HLen(t.Context(), "ratelimit.seen:{ratelimit}:rules").Val() > 0
	})
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
		redistest.Eventually(f.t, "the call has a place", func() bool { return f.state(rule, key) != before })
		giveUp = append(giveUp, func() { cancel(); <-done })
	}
	return giveUp
}

// state returns all that the server keeps for a key under a rule.
func (f *program) state(rule ratelimit.Rule, key string) string {
	f.t.Helper()
	states, err := f.StateKeys(ratelimit.Request{Rule: rule, Key: key})
	if err != nil {
		f.t.Fatal(err)
	}
	text, err := f.client.Dump(f.t.Context(), states[0]).Result()
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
func declare(t *testing.T, client redis.UniversalClient, prefix string, texts ...string) {
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
	t.Parallel()
	server := redistest.Start(t)
	f := newFleet(t, server.Addr)
	f.known(map[string]string{"login 1h": `{"name":"login","key":"{user}","limit":5,"per":3600000000000}`})
	f.allow(1, ratelimit.Rule{Name: "login", Key: "{user}", Limit: 5, Per: time.Hour}, "a{b")
	require(t, server.Addr, done, "→ blocked until", "block", "login", "a%7Bb", "-shown", "-for", "1h")
	if blocked := f.client.HKeys(t.Context(), "ratelimit.fleet:{ratelimit}:settings").Val(); !slices.Equal(blocked, []string{"block:login:{a%7Bb}"}) {
		t.Errorf("blocked are %q", blocked)
	}
	require(t, server.Addr, done, "1 count forgotten", "reset", "-shown", "login", "a%7Bb")
}

// inspect shows how many permits are held by calls that run.
func TestInspectShowsRunningCalls(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	f := newFleet(t, server.Addr)
	rule := ratelimit.Rule{Name: "make", Key: "{team}", Algorithm: ratelimit.Concurrency, Limit: 4, Per: time.Minute}
	f.known(map[string]string{"make": ruleText(rule)})
	d, err := f.Allow(t.Context(), ratelimit.Request{Rule: rule, Key: "red", Cost: 2})
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * time.Millisecond) // so that its permits end later, if the process is gone
	f.allow(1, rule, "red")
	require(t, server.Addr, done, "3 of 4", "inspect", "make", "red")
	text, _ := ctl(t, server.Addr, "inspect", "make", "red")
	if lines := strings.Count(text, "calls that run"); lines != 1 || !regexp.MustCompile(`: 3 permits of calls that run in .*, of which the first ends in [0-9.]+s and the last in [0-9.]+s if`).MatchString(text) {
		t.Errorf("%d lines of calls that run: %s", lines, text)
	}
	if err := d.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	require(t, server.Addr, done, "1 of 4", "inspect", "make", "red")
}

// inspect says when the open window of a rule with Every ends, or that none is open. It says neither while calls wait for a later window.
func TestInspectShowsTheEndOfAnAnchor(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	f := newFleet(t, server.Addr)
	rule := ratelimit.Rule{Name: "quota", Key: "{user}", Limit: 1, Every: "1mo"}
	f.known(map[string]string{"quota": ruleText(rule)})
	require(t, server.Addr, done, "no window is open for ann", "inspect", "quota", "ann")
	q := ratelimit.Request{Rule: rule, Key: "ann", Anchor: time.Now().Add(30 * time.Hour).Truncate(time.Second)}
	if d, err := f.Allow(t.Context(), q); err != nil || !d.Allowed {
		t.Fatal(d, err)
	}
	require(t, server.Addr, done, "the open window of ann ends at "+operate.LocalTime(q.Anchor), "inspect", "quota", "ann")
	if d, err := f.Reserve(t.Context(), q); err != nil || !d.At.Equal(q.Anchor) {
		t.Fatal(d, err)
	}
	if text, _ := ctl(t, server.Addr, "inspect", "quota", "ann"); strings.Contains(text, "window of") || strings.Contains(text, "window is") {
		t.Errorf("the end of which window? %s", text)
	}
}

// inspect shows waiting calls and free places, for all algorithms that let calls wait.
func TestInspectShowsWhoWaits(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	f := newFleet(t, server.Addr)
	hourly := func(name string, algorithm ratelimit.Algorithm) ratelimit.Rule {
		return ratelimit.Rule{Name: name, Limit: 2, Per: time.Hour, Algorithm: algorithm}
	}
	yearly := fmt.Sprintf("0 0 0 1 %d *", time.Now().AddDate(0, 6, 0).Month()) // ends months from now, whenever the test runs
	for _, test := range []struct {
		rule ratelimit.Rule
		free bool // a place that is given up becomes free
		want []string
	}{
		{hourly("sliding", ratelimit.SlidingWindow), true, []string{"59m", "59m", "1h59m"}},
		{hourly("fixed", ratelimit.FixedWindow), false, []string{"59m", "59m", "1h59m"}},
		{hourly("leaky", ratelimit.LeakyBucket), true, []string{"29m", "59m", "1h29m"}},
		{ratelimit.Rule{Name: "bucket", Limit: 2, Per: time.Hour, Algorithm: ratelimit.TokenBucket}, true, []string{"29m", "59m", "1h29m"}},
		{ratelimit.Rule{Name: "yearly", Limit: 2, Cron: yearly}, false, []string{"d", "d", "d"}},
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
		require(t, server.Addr, done, traffic.PerWindow(rule.Window())+": calls wait for 3 permits", "inspect", rule.Name)
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
	t.Parallel()
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
		states, err := f.StateKeys(ratelimit.Request{Rule: bucket})
		if err != nil {
			t.Fatal(err)
		}
		if err := f.client.Set(t.Context(), states[0], text, time.Hour).Err(); err != nil {
			t.Fatal(err)
		}
		if got := inspectedBy(t, server, bucket.Name); len(got.Waiting) > 0 {
			t.Errorf("%q: got %+v", text, got)
		}
	}
}

// If an override raises the burst of a bucket, inspect does not take the missing permits for waiting calls.
func TestInspectUnderABurst(t *testing.T) {
	t.Parallel()
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
	require(t, server.Addr, done, "bucket: burst=4 for ever → no override", "override", "clear", rule.Name)
}

// inspect does not take permits of a lease for waiting calls.
func TestInspectTellsLeasesFromCalls(t *testing.T) {
	t.Parallel()
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
	require(t, server.Addr, done, "1,000 per hour: processes took ahead ", "inspect", rule.Name)
}

// For a rule with distinct=, inspect shows the number of members, and the delay of a new member.
func TestInspectCountsMembers(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	f := newFleet(t, server.Addr)
	rule := ratelimit.Rule{Name: "strangers", Limit: 2, Per: time.Hour, Distinct: "{friend}"}
	f.known(map[string]string{rule.Name: ruleText(rule)})
	for i, member := range []string{"ann", "bob"} {
		if _, err := f.Allow(t.Context(), ratelimit.Request{Rule: rule, Member: member}); err != nil {
			t.Fatal(err)
		}
		got := inspectedBy(t, server, rule.Name)
		if used := int64(i + 1); got.Used != used || *got.Remaining != 2-used || (got.RetryAfter != "") != (used == 2) {
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

// inspect says what is in force for a key, and why.
func TestInspectSaysWhy(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	f := newFleet(t, server.Addr)
	f.known(map[string]string{"login": ruleText(login), "bucket": ruleText(bucket), "guess": ruleText(guess)})
	f.allow(2, login, "ann")
	f.allow(2, guess, "ann")
	require(t, server.Addr, done, "nothing is counted for bob: it was not seen lately", "inspect", "login", "bob")
	for _, command := range []string{
		"override set login -factor 2 -for 1h -reason sale", "override set login -key ann -limit 500 -for 2h -reason partner", "block login ann -for 1d -reason abuse",
	} {
		require(t, server.Addr, done, "→", strings.Fields(command)...)
	}
	by := ", set by " + username() + " at 20"
	for want, args := range map[string]string{
		"login  500 per hour  enforce  2 of 500  498        59m":       "login ann",
		"login, 500 per hour: override of the rule: factor=2 until 20": "login ann",
		"login, 500 per hour: override of ann: limit=500 until 20":     "login ann",
		"login, 500 per hour: ann is blocked until 20":                 "login ann",
		by:            "login ann",
		": partner\n": "login ann",
		": abuse\n":   "login ann",
		"login, 500 per hour: declared 5 per hour, mode enforce\n": "login ann",
		"login, 500 per hour: last permits at ":                    "login ann",
		"login   10 per hour  enforce  0 of 10   10":               "-all bob",
		"bucket  5 per hour (token-bucket)":                        "-all ann",
		"a refusal of this rule began that, since it has block=":   "-all ann",
		"guess   1 per minute":                                     "-all ann",
	} {
		text, status := ctl(t, server.Addr, append([]string{"inspect"}, strings.Fields(args)...)...)
		if squeezed := strings.Join(strings.Fields(text), " "); status != done || !strings.Contains(squeezed+"\n"+text, strings.Join(strings.Fields(want), " ")) && !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	text, _ := ctl(t, server.Addr, "-json", "inspect", "login", "ann")
	var shown []inspected
	if err := json.Unmarshal([]byte(text), &shown); err != nil || len(shown) != 1 || len(shown[0].Overrides) != 2 || len(shown[0].Refusals) != 1 || len(shown[0].Last) != 2 || shown[0].Window != "1h" || shown[0].Used != 2 {
		t.Errorf("error %v, got %s", err, text)
	}
	// An override to shadow mode makes a block harmless, and its retry delay goes.
	require(t, server.Addr, done, "→", "override", "set", "login", "-key", "ann", "-mode", "shadow")
	if text, _ := ctl(t, server.Addr, "inspect", "login", "ann"); !strings.Contains(text, "ann would be blocked until 20") || strings.Contains(strings.SplitN(text, "\n", 3)[1], "23h") {
		t.Errorf("got %s", text)
	}
}

// A rule with pause= whose permits are used up pauses nobody.
func TestInspectTellsPausesFromDelays(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	f := newFleet(t, server.Addr)
	rule := ratelimit.Rule{Name: "carrier", Limit: 1, Per: time.Hour, Pausable: true}
	f.known(map[string]string{"carrier": ruleText(rule)})
	f.allow(1, rule, "")
	if text, status := ctl(t, server.Addr, "inspect", "carrier"); status != done || !strings.Contains(text, "59m") || strings.Contains(text, "paused") {
		t.Errorf("status %d: %s", status, text)
	}
	require(t, server.Addr, done, "→ paused until", "pause", "carrier", "-for", "2h")
	require(t, server.Addr, done, "everybody is paused until", "inspect", "carrier")
}

// During a rollout, inspect shows which limits processes declare.
func TestInspectShowsLimitsByProcess(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for i, limit := range []int64{10, 100, 100} {
		f := newFleet(t, server.Addr)
		f.allow(1, ratelimit.Rule{Name: "login", Key: "{user}", Limit: limit, Per: time.Minute}, fmt.Sprint("user", i))
	}
	text, deadline := "", time.Now().Add(time.Minute)
	for !strings.Contains(text, "declared 10 (1 process), 100 (2) per minute") {
		if text, _ = ctl(t, server.Addr, "inspect", "login", "ann"); time.Now().After(deadline) {
			t.Fatalf("it does not come about: %s", text)
		}
		time.Sleep(20 * time.Millisecond)
	}
	text, _ = ctl(t, server.Addr, "-json", "inspect", "login", "ann")
	var shown []inspected
	if err := json.Unmarshal([]byte(text), &shown); err != nil || len(shown) != 1 || !maps.Equal(shown[0].Limits, map[int64]int{10: 1, 100: 2}) {
		t.Errorf("error %v, got %s", err, text)
	}
}

// inspect shows the times of the last permits of each algorithm whose state has them.
func TestInspectShowsTheLastPermits(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	f := newFleet(t, server.Addr)
	for _, rule := range []ratelimit.Rule{
		{Name: "sliding", Limit: 50, Per: time.Hour}, {Name: "amounts", Limit: 1_000_000, Per: time.Hour}, {Name: "distinct", Limit: 50, Per: time.Hour, Distinct: "{m}"},
	} {
		f.known(map[string]string{rule.Name: ruleText(rule)})
		before := time.Now().Add(-time.Second)
		for i := range 7 {
			q := ratelimit.Request{Rule: rule, Cost: 3}
			if rule.Distinct != "" {
				q.Cost, q.Member = 1, fmt.Sprint(i)
			}
			if _, err := f.Allow(t.Context(), q); err != nil {
				t.Fatal(err)
			}
		}
		got := inspectedBy(t, server, rule.Name)
		if len(got.Last) != shownPermits || !got.Counted {
			t.Errorf("%s: got %+v", rule.Name, got)
		}
		for i, p := range got.Last {
			if p.At.Before(before) || p.At.After(time.Now().Add(time.Second)) || i > 0 && p.At.Before(got.Last[i-1].At) || (p.Permits == 3) != (rule.Name == "amounts") {
				t.Errorf("%s: got %+v", rule.Name, got.Last)
			}
		}
	}
}

// Only permits of another day than today are shown with their day.
func TestLastPermitsOfYesterday(t *testing.T) {
	now := time.Date(2026, 11, 24, 0, 0, 2, 0, time.Local)
	s := inspected{Last: []permits{{now.Add(-3 * time.Second).UTC(), 1}, {now.Add(-time.Second).UTC(), 2}}}
	if got, want := s.lastInWords(now), "2026-11-23 23:59:59.000, 00:00:01.000 (2)"+now.Format(" MST"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// With the secret of the programs, keys are given as text.
func TestSecret(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	secret := strings.Repeat("s3cret", 6)
	f := newFleet(t, server.Addr)
	f.Limiter = ratelimit.New(redisstore.New(f.client, redisstore.WithTimeout(20*time.Second)), ratelimit.WithSubjectHash([]byte(secret)))
	f.known(map[string]string{"login": ruleText(login)})
	f.allow(2, login, "ann")
	with := func(args ...string) string {
		text, _ := ctlWith(t, env("redis://"+server.Addr, "RATELIMIT_SECRET", secret), "", args...)
		return text
	}
	if text := with("inspect", "login", "ann"); !strings.Contains(text, "2 of 5") {
		t.Errorf("got %s", text)
	}
	with("block", "login", "ann", "-for", "1h")
	if err := f.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d, err := f.Allow(t.Context(), ratelimit.Request{Rule: login, Key: "ann"}); err != nil || d.Allowed {
		t.Errorf("got %+v, %v", d, err)
	}
	if text := with("blocked"); strings.Contains(text, "ann") || strings.Contains(text, secret) {
		t.Errorf("got %s", text)
	}
	short, status := ctlWith(t, env("redis://"+server.Addr, "RATELIMIT_SECRET", "s3cret"), "", "rules")
	if status != misuse || !strings.Contains(short, "RATELIMIT_SECRET has 6 bytes; expected at least 32") {
		t.Errorf("status %d, %s", status, short)
	}
}

// A report of a process has the limit that the last call of a key brought. inspect shows what is left of it, and as of when, in whichever count
// the key has. For a key that no report has, inspect says what is used.
func TestInspectShowsTheLimitOfTheLastCall(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	f := newFleet(t, server.Addr, redisstore.WithStats())
	rules := wrap.NewRules("p.T.M", ratelimit.Rule{Name: "plan", Key: "{user}", Computed: true, Per: 3000 * time.Hour})
	take := func(key string, limit, cost int64) {
		if err := wrap.TakeCharges(t.Context(), rules.On(f.Limiter), rules, wrap.Charge{Key: key, Cost: cost, Limit: limit}); err != nil {
			t.Fatal(err)
		}
	}
	take("bob", 100, 7)
	for key, limit := range map[string]int64{"ann": 20_000, "eve": 9000} {
		redistest.Eventually(t, "the limit of the last call is shown", func() bool {
			take(key, limit, 1)
			text, _ := ctl(t, server.Addr, "inspect", "plan", key)
			return regexp.MustCompile(fmt.Sprintf(`plan  %s per 125d.* enforce  [\d,]+ of %s +[\d,]+ `, operate.Number(limit), operate.Number(limit))).MatchString(text) &&
				strings.Contains(text, "each call brings its limit; the last one brought this limit as of ")
		})
		redistest.Eventually(t, "the same as JSON", func() bool { // a report that comes meanwhile has only the calls since the one before
			take(key, limit, 1)
			text, _ := ctl(t, server.Addr, "inspect", "plan", key, "-json")
			var all []inspected
			err := json.Unmarshal([]byte(text), &all)
			return err == nil && !all[0].AsOf.IsZero() && all[0].Computed && *all[0].Limit == limit && *all[0].Capacity == limit
		})
	}
	require(t, server.Addr, done, "the call brings its limit; 7 used", "inspect", "plan", "bob")
}

// If the limit depends on the call, or programs declare different ones, inspect says so.
func TestInspectSaysThatLimitsAreComputed(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	f := newFleet(t, server.Addr)
	f.known(map[string]string{"plan": `{"name":"plan","key":"{user}","limit":0,"computed":true,"per":60000000000}`})
	require(t, server.Addr, done, "plan  computed per minute  enforce  0     -          -", "inspect", "plan", "ann")
	require(t, server.Addr, done, "→ factor=2", "override", "set", "plan", "-factor", "2", "-for", "1h")
	require(t, server.Addr, done, "declared computed per minute", "inspect", "plan", "ann")
	require(t, server.Addr, done, "computed per minute  computed per minute, factor 2  {user}", "rules")
	for _, limit := range []int64{10, 100} {
		f := newFleet(t, server.Addr)
		f.allow(1, ratelimit.Rule{Name: "search", Key: "{user}", Limit: limit, Per: time.Minute}, "ann")
	}
	redistest.Eventually(t, "both limits are declared", func() bool {
		text, _ := ctl(t, server.Addr, "inspect", "search", "ann")
		return strings.Contains(text, "declared 10 (1 process), 100 (1) per minute, mode enforce")
	})
}
