package console_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/operate"
	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/console"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

var sms = ratelimit.Rule{Name: "sms", Key: "{phone}", Limit: 10, Per: time.Hour}

func kim(*http.Request) (string, error) { return "kim", nil }

// stores are the stores that a console shows.
var stores = map[string]func(testing.TB) ratelimit.Store{
	"redis": func(t testing.TB) ratelimit.Store {
		return redisstore.New(startRedis(t), redisstore.WithStats(), redisstore.WithTimeout(time.Minute))
	},
	"memory": func(testing.TB) ratelimit.Store { return memstore.New() },
}

func startRedis(t testing.TB) *redis.Client {
	client := redis.NewClient(&redis.Options{Addr: redistest.Start(t).Addr, MaxRetries: -1})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

var patient = redisstore.WithTimeout(time.Minute) // long enough for a busy machine

// open returns a limiter with the rule sms, and its console.
func open(t testing.TB, store ratelimit.Store, options ...console.Option) (*ratelimit.Limiter, http.Handler) {
	t.Helper()
	l := ratelimit.New(store, ratelimit.WithPrefix("shop"))
	if err := l.Check(sms, ratelimit.Rule{Name: "all", Limit: 5, Per: time.Minute}); err != nil {
		t.Fatal(err)
	}
	return l, console.New(l, options...)
}

// send sends a request as a browser does.
func send(h http.Handler, method, path string, form url.Values) (int, string) {
	r := httptest.NewRequest(method, path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// requireText waits until a page has a text.
func requireText(t testing.TB, h http.Handler, path string, form url.Values, texts ...string) string {
	t.Helper()
	method := http.MethodGet
	if form != nil {
		method = http.MethodPost
	}
	var page string
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		_, page = send(h, method, path, form)
		text := plain(page)
		if !slices.ContainsFunc(texts, func(wanted string) bool { return !strings.Contains(text, wanted) }) {
			return page
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s lacks one of %q:\n%s", path, texts, text)
		}
	}
}

var tags = regexp.MustCompile(`<[^>]*>`)

// plain returns the text of a page.
func plain(page string) string {
	return strings.Join(strings.Fields(html.UnescapeString(tags.ReplaceAllString(page, " "))), " ")
}

// stored is what the first screen says of each store, after three settings.
var stored = map[string]string{
	"redis":  "Store up asked just now Round trip",
	"memory": "All is well Store up asked just now, in this process Round trip – of one command Memory not known that of this process Decided by policy not known no statistics Processes 1",
}

// Every screen shows what is declared, what is in force, and what a subject has used.
func TestScreens(t *testing.T) {
	t.Parallel()
	for name, store := range stores {
		t.Run(name, func(t *testing.T) {
			l, h := open(t, store(t))
			ctx := ratelimit.WithActor(t.Context(), "ada", "ticket 7")
			limit := int64(500)
			for _, err := range []error{
				l.Overrides().Set(ctx, "sms", ratelimit.Override{Limit: &limit, Until: time.Now().Add(time.Hour)}),
				l.Pause(ctx, time.Hour, ratelimit.Request{Rule: sms, Key: "zoe"}),
				l.Block(ctx, time.Hour, ratelimit.Request{Rule: sms, Key: "eve"}),
			} {
				if err != nil {
					t.Fatal(err)
				}
			}
			for range 3 {
				if _, err := l.Allow(t.Context(), ratelimit.Request{Rule: sms, Key: "ann"}); err != nil {
					t.Fatal(err)
				}
			}
			requireText(t, h, "/", nil, stored[name], "override sms all keys limit=500", "block sms eve blocked", "ada: ticket 7", "Processes")
			requireText(t, h, "/rules", nil, "sms {phone} 10 per hour 500 per hour; 1 key blocked; 1 key paused")
			requireText(t, h, "/rule?name=sms", nil, "10 per hour {phone} 500 per hour; 1 key blocked; 1 key paused enforce", "limit=500", "block sms eve")
			requireText(t, h, "/subject", url.Values{"key": {"ann"}}, "3 of 500", "override of all keys: limit=500")
			requireText(t, h, "/subject", url.Values{"key": {"eve"}}, "blocked for 59m", "blocked by ada, ticket 7, since")
			requireText(t, h, "/subject", url.Values{"key": {"zoe"}}, "paused by ada, ticket 7, since")
			requireText(t, h, "/subject", url.Values{"key": {"bob"}}, "0 of 500")
			requireText(t, h, "/subject", url.Values{"all": {"1"}}, "Everybody", "0 of 5")
			requireText(t, h, "/changes", nil, "ada block sms eve not blocked → blocked until", "ada set sms all keys no override → limit=500 until", "ada pause sms zoe not paused → paused until")
			requireText(t, h, "/live", nil, "Live")
			if code, page := send(h, http.MethodGet, "/rule?name=none", nil); code != http.StatusNotFound || !strings.Contains(page, "No process has declared") {
				t.Errorf("an unknown rule: %d", code)
			}
		})
	}
}

// A subject's page shows when its permits were taken, how many calls wait and until when, and how many run.
func TestSubjectInTime(t *testing.T) {
	t.Parallel()
	l, h := open(t, stores["redis"](t))
	queue := ratelimit.Rule{Name: "queue", Key: "{user}", Algorithm: ratelimit.LeakyBucket, Limit: 2, Per: time.Hour, Wait: 2 * time.Hour}
	report := ratelimit.Rule{Name: "report", Key: "{user}", Algorithm: ratelimit.Concurrency, Limit: 4}
	if err := l.Check(queue, report); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	defer func() { stop(); waiting.Wait() }()
	for _, rule := range []ratelimit.Rule{sms, sms, sms, queue, report, report} {
		if _, err := l.Allow(ctx, ratelimit.Request{Rule: rule, Key: "ann"}); err != nil {
			t.Fatal(err)
		}
	}
	waiting.Go(func() { _, _ = l.Wait(ctx, ratelimit.Request{Rule: queue, Key: "ann"}) })
	page := requireText(t, h, "/subject", url.Values{"key": {"ann"}}, "3 permits taken", "1 of 1 in 59m", "calls wait for 1 permit, the first in 29m", "2 of 4 running", "1 permit of ", "if the process is gone")
	requireClean(t, page)
	if strips := strings.Count(page, `class="strip"`); strips != 2 {
		t.Errorf("%d strips", strips)
	}
}

// A subject's page says when the open window of a rule with Every ends, whatever the anchor of a later call is. Without one, it says nothing.
func TestSubjectOfAnAnchor(t *testing.T) {
	t.Parallel()
	for name, store := range stores {
		l, h := open(t, store(t))
		quota := ratelimit.Request{Rule: ratelimit.Rule{Name: "quota", Key: "{user}", Limit: 2, Every: "1mo"}, Key: "ann"}
		if err := l.Check(quota.Rule); err != nil {
			t.Fatal(err)
		}
		if page := requireText(t, h, "/subject", url.Values{"key": {"ann"}}, "quota"); strings.Contains(plain(page), "ends at") {
			t.Errorf("%s: a window ends that is not open: %s", name, plain(page))
		}
		quota.Anchor = time.Now().Add(30 * time.Hour).Truncate(time.Second)
		end := quota.Anchor.UTC().Format("2006-01-02T15:04:05.000Z07:00")
		for range 2 {
			if d, err := l.Allow(t.Context(), quota); err != nil || !d.Allowed {
				t.Fatal(d, err)
			}
			if page := requireText(t, h, "/subject", url.Values{"key": {"ann"}}, "ends at"); !strings.Contains(page, `ends at <time datetime="`+end) {
				t.Errorf("%s: want the end %s: %s", name, end, page)
			}
			quota.Anchor = quota.Anchor.Add(time.Hour)
		}
	}
}

// No page says that a permit is there now if the key is refused, or if nobody knows: the limit comes with the call. If a process reports the limit of
// the last call, the page shows what is left of it.
func TestSubjectOfARefusedKey(t *testing.T) {
	t.Parallel()
	l, h := open(t, redisstore.New(startRedis(t), patient, redisstore.WithStats()))
	running := ratelimit.Rule{Name: "running", Key: "{user}", Algorithm: ratelimit.Concurrency, Limit: 1, Per: time.Hour}
	if d, err := l.Allow(t.Context(), ratelimit.Request{Rule: running, Key: "ann"}); err != nil || !d.Allowed {
		t.Fatal(d, err)
	}
	plan := wrap.NewRules("p.T.M", ratelimit.Rule{Name: "plan", Key: "{user}", Computed: true, Per: time.Hour})
	take := func() error {
		return wrap.TakeCharges(t.Context(), plan.On(l), plan, wrap.Charge{Key: "ann", Cost: 20_000, Limit: 20_000})
	}
	if err := take(); err != nil {
		t.Fatal(err)
	}
	requireText(t, h, "/subject", url.Values{"key": {"ann"}}, "1 of 1 running when a call ends", "20,000 the call brings its limit")
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if err := take(); !errors.Is(err, ratelimit.ErrTooManyRequests) {
			t.Fatal(err)
		}
		_, page := send(h, http.MethodPost, "/subject", url.Values{"key": {"ann"}})
		if text := plain(page); strings.Contains(text, "20,000 of 20,000 in 59m") && strings.Contains(text, "declared: computed, 20,000 as of ") {
			break
		} else if time.Now().After(deadline) {
			t.Fatal(text)
		}
	}
}

// While a parameter that a key names is renamed, processes declare two rules of one count. The subject's page shows the count at both.
func TestRulesOfOneCount(t *testing.T) {
	t.Parallel()
	client, renamed := startRedis(t), sms
	renamed.Key = "{to}"
	l, h := open(t, redisstore.New(client, redisstore.WithTimeout(time.Minute)))
	newer := ratelimit.New(redisstore.New(client, redisstore.WithTimeout(time.Minute)), ratelimit.WithPrefix("shop"))
	if err := newer.Check(renamed); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if _, err := l.Allow(t.Context(), ratelimit.Request{Rule: sms, Key: "ann"}); err != nil {
			t.Fatal(err)
		}
	}
	requireText(t, h, "/subject", url.Values{"key": {"ann"}}, "sms {phone} per hour 10 of 10 in 59m", "sms {to} per hour 10 of 10 in 59m")
}

// A subject's page says what a user of the server may not read.
func TestTimesAreDenied(t *testing.T) {
	t.Parallel()
	client := startRedis(t)
	client.Do(t.Context(), "ACL", "SETUSER", "default", "-lrange")
	l, h := open(t, redisstore.New(client, redisstore.WithTimeout(time.Minute)))
	if _, err := l.Allow(t.Context(), ratelimit.Request{Rule: sms, Key: "ann"}); err != nil {
		t.Fatal(err)
	}
	requireText(t, h, "/subject", url.Values{"key": {"ann"}}, "Cannot be read now: ", "can't run")
}

// Traffic is that of all processes that publish statistics.
func TestTraffic(t *testing.T) {
	t.Parallel()
	l, h := open(t, stores["redis"](t))
	for i := range 20 {
		if _, err := l.Allow(t.Context(), ratelimit.Request{Rule: sms, Key: "ann"}); err != nil {
			t.Fatalf("call %d: %v", i, err)
		}
	}
	requireText(t, h, "/live", nil, "sms per hour", "ann sms", "Sums of 1 process")
	requireText(t, h, "/live?q=none", nil, "No rule matches", "No key of such a rule")
	requireText(t, h, "/rule?name=sms", nil, "Heaviest keys Read", "Most refused keys Read", "Key Decisions/s Refused/s ann")
}

// say writes what another process counted in the last second.
func say(t *testing.T, client *redis.Client, report fleet.Report) {
	t.Helper()
	report.Seconds = 1
	text, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	word, err := json.Marshal(fleet.Process{Host: "h", Program: "p", At: time.Now(), Stats: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(client.Set(t.Context(), "shop.seen:{shop}:report:a", text, 0).Err(), client.HSet(t.Context(), "shop.seen:{shop}:processes", "a", word).Err()); err != nil {
		t.Fatal(err)
	}
}

// The screen Rules shows which processes declare which limit, and which share of the calls is refused.
func TestRules(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for _, limit := range []int64{10, 2000} {
		client := redis.NewClient(&redis.Options{Addr: server.Addr, MaxRetries: -1})
		t.Cleanup(func() { _ = client.Close() })
		l := ratelimit.New(redisstore.New(client, patient), ratelimit.WithPrefix("shop"))
		if err := l.Check(ratelimit.Rule{Name: "sms", Key: "{phone}", Limit: limit, Per: time.Hour}); err != nil {
			t.Fatal(err)
		}
		if limit > 10 {
			say(t, client, fleet.Report{Rules: []fleet.RuleCounts{{Name: "sms", Tag: "1h", Counts: fleet.Counts{Calls: 40, Refused: 10}}}})
			requireText(t, console.New(l), "/rules", nil, "sms {phone} 10 (1 process), 2,000 (1) per hour as declared enforce 40 25.0 %")
			requireText(t, console.New(l), "/rule?name=sms", nil, "10 (1 process), 2,000 (1) per hour")
		}
	}
}

// Under an override of per, the screen Rules shows the window in force, and the rates that processes report of it.
func TestRulesInAnotherWindow(t *testing.T) {
	t.Parallel()
	client := startRedis(t)
	l, h := open(t, redisstore.New(client, patient))
	if err := l.Overrides().Set(t.Context(), "sms", ratelimit.Override{Per: time.Minute}); err != nil {
		t.Fatal(err)
	}
	say(t, client, fleet.Report{Rules: []fleet.RuleCounts{{Name: "sms", Tag: "1m", Counts: fleet.Counts{Calls: 40, Refused: 10}}}})
	requireText(t, h, "/rules", nil, "sms {phone} 10 per hour 10 per minute enforce 40 25.0 %")
	requireText(t, h, "/rule?name=sms", nil, "10 per hour {phone} 10 per minute enforce")
}

// Two unnamed rules of a method. An override of one is of both.
var unnamed = wrap.NewRules("p.T.M",
	ratelimit.Rule{Key: "{ip}", Limit: 10, Per: time.Hour}, ratelimit.Rule{Key: "{user}", Limit: 20, Per: time.Hour}).Rules()

// The charts of a rule show what it counted in all its windows. Those of an unnamed rule do not show what another one of the method counted.
func TestChartsOverWindows(t *testing.T) {
	t.Parallel()
	client := startRedis(t)
	l, h := open(t, redisstore.New(client, patient, redisstore.WithStats()))
	if err := l.Check(unnamed...); err != nil {
		t.Fatal(err)
	}
	slot := time.Now().Unix()/5 - 2
	for field, n := range map[string]int{"sms 1h": 500, "sms 2m": 250, "all 1m": 5000, "p.T.M 1h:{ip}": 1000, "p.T.M 1h:{user}": 2000} {
		key := fmt.Sprintf("shop.seen:{shop}:history:%d", slot/24)
		if err := client.HSet(t.Context(), key, fmt.Sprintf("%d calls %s", slot, field), n).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for _, rule := range []string{"sms", "p.T.M"} {
		if err := l.Overrides().Set(t.Context(), rule, ratelimit.Override{Per: time.Minute}); err != nil {
			t.Fatal(err)
		}
	}
	for rule, peak := range map[string]string{"sms": "150", "p.T.M": "200", "p.T.M%232": "400"} {
		requireText(t, h, "/rule?name="+rule, nil, "peak "+peak+"/s")
	}
}

// The page of a further unnamed rule shows the settings of its method, and changes them.
func TestSettingsOfAnUnnamedRule(t *testing.T) {
	t.Parallel()
	l, h := open(t, memstore.New(), console.WithWrites(kim))
	if err := l.Check(unnamed...); err != nil {
		t.Fatal(err)
	}
	form := url.Values{"page": {"rule"}, "name": {"p.T.M#2"}, "do": {"set"}, "rule": {"p.T.M#2 1h {user}"}, "limit": {"7"}, "for": {"1h"}, "reason": {"r"}}
	requireText(t, h, "/change", form, "Set, everywhere within 2s. p.T.M declares 10 per hour. p.T.M#2 declares 20 per hour. Rule p.T.M", "20 per hour {user} 7 per hour enforce", "override p.T.M all keys limit=7")
	requireText(t, h, "/rules", nil, "p.T.M#2 {user} 20 per hour 7 per hour enforce")
	requireText(t, h, "/subject", url.Values{"key": {"ann"}}, "limit=7")
	form.Set("do", "clear")
	requireText(t, h, "/change", form, "As declared again, everywhere", "20 per hour {user} as declared enforce")
}

// The list of changes says of how many rules a change is.
func TestChangeOfSeveralRules(t *testing.T) {
	t.Parallel()
	l, h := open(t, redisstore.New(startRedis(t), patient))
	if _, err := operate.New(l, time.Minute).Import(t.Context(), fleet.Actor{By: "ada", Reason: "empty"}, "", nil, true); err != nil {
		t.Fatal(err)
	}
	requireText(t, h, "/changes", nil, "ada import – empty") // it has no rule and no key
	ctx := ratelimit.WithActor(t.Context(), "kim", "abuse")
	if err := l.Block(ctx, time.Hour, ratelimit.Request{Rule: sms, Key: "ann"}, ratelimit.Request{Rule: ratelimit.Rule{Name: "all", Limit: 5, Per: time.Minute}}); err != nil {
		t.Fatal(err)
	}
	requireText(t, h, "/changes", nil, "kim block 2 rules 2 settings")
}

// Undo brings back what was in force before each change that can be undone.
func TestUndo(t *testing.T) {
	_, h := open(t, memstore.New(), console.WithWrites(kim))
	rows := regexp.MustCompile(`(?s)<tr><td class="name">(?:block|pause|override)</td>.*?<td class="why"`)
	inForce := func() string {
		return plain(strings.Join(rows.FindAllString(first(send(h, http.MethodGet, "/", nil)), -1), "\n"))
	}
	change := func(page string, fields url.Values) {
		t.Helper()
		fields.Set("page", page)
		fields.Set("key", "ann")
		fields.Set("rule", "sms 1h {phone}")
		fields.Set("reason", "r")
		if code, shown := send(h, http.MethodPost, "/change", fields); code != http.StatusOK {
			t.Fatalf("%v: %d %s", fields, code, plain(shown))
		}
	}
	for _, do := range []url.Values{
		{"do": {"block"}, "for": {"1h"}}, {"do": {"block"}, "for": {"2h"}}, {"do": {"unblock"}}, {"do": {"pause"}, "for": {"3h"}}, {"do": {"resume"}},
		{"do": {"set"}, "for": {"forever"}, "limit": {"7"}}, {"do": {"set"}, "for": {"1h"}, "factor": {"2"}}, {"do": {"clear"}},
	} {
		before := inForce()
		change("subject", do)
		if inForce() == before {
			t.Fatalf("%v changed nothing", do)
		}
		page := first(send(h, http.MethodGet, "/changes", nil))
		last := html.UnescapeString(regexp.MustCompile(`name="change" value="([^"]*)"`).FindStringSubmatch(page)[1])
		change("changes", url.Values{"do": {"undo"}, "change": {last}})
		if got := inForce(); got != before {
			t.Errorf("after an undo of %v, in force is %q, want %q", do, got, before)
		}
		change("subject", do) // the next change is made after this one
	}
}

// The rules and keys of the screen Live are sorted by the column that is asked for.
func TestLiveIsSorted(t *testing.T) {
	t.Parallel()
	client := startRedis(t)
	_, h := open(t, redisstore.New(client, patient))
	counts := map[string]fleet.Counts{
		"calls": {Calls: 400, Refused: 1, Failed: 1, Shadow: 1}, "fails": {Calls: 300, Refused: 2, Failed: 9, Shadow: 2},
		"refuses": {Calls: 200, Refused: 9, Failed: 2, Shadow: 3}, "shadow": {Calls: 100, Refused: 3, Failed: 3, Shadow: 9},
	}
	var report fleet.Report
	for name, n := range counts {
		report.Rules = append(report.Rules, fleet.RuleCounts{Name: name, Tag: "1h", Counts: n, Subjects: []fleet.Subject{{Name: "key." + name, Counts: n}}})
	}
	say(t, client, report)
	for by, want := range map[string]string{
		"": "calls", "decisions": "calls", "refused": "refuses", "failed": "fails", "shadow": "shadow", "rule": "calls", "none": "calls",
	} {
		page := plain(requireText(t, h, "/live?by="+by, nil, "key.calls", "key.fails", "key.refuses", "key.shadow"))
		if !strings.Contains(page, "Would refuse/s "+want+" per hour") || !strings.Contains(page, "Would refuse/s key."+want+" ") {
			t.Errorf("by %q, the first is not %s:\n%s", by, want, page)
		}
	}
}

// The first screen shows the epoch and the version of the settings, and how many decisions of rules the failure policies made in ten minutes.
func TestStoreTiles(t *testing.T) {
	t.Parallel()
	client := startRedis(t)
	l, h := open(t, redisstore.New(client, patient))
	slot := time.Now().Unix() / 5
	for n := slot - 130; n <= slot; n++ { // ten minutes are 120 of them
		client.HSet(t.Context(), fmt.Sprint("shop.seen:{shop}:history:", n/24), fmt.Sprintf("%d failed sms 1h", n), 10)
	}
	requireText(t, h, "/", nil, "MB no bound")
	if err := l.Block(t.Context(), time.Hour, ratelimit.Request{Rule: sms, Key: "ann"}); err != nil {
		t.Fatal(err)
	}
	epoch := client.Get(t.Context(), "shop.fleet:{shop}:epoch").Val()
	late := time.Now().Unix() / 5 // a report of five minutes
	client.HSet(t.Context(), fmt.Sprint("shop.seen:{shop}:history:", late/24), fmt.Sprintf("%d failed/60 sms 1h", late), 600)
	page := plain(requireText(t, h, "/", nil, "Version 1 of the settings, in the epoch "+epoch+" .", "decisions of rules in ten minutes", "10 min peak 4.0/s"))
	found := regexp.MustCompile(`Decided by policy ([0-9,]+) `).FindStringSubmatch(page)
	n, err := strconv.ParseInt(strings.ReplaceAll(found[1], ",", ""), 10, 64)
	if begun := time.Now().Unix()/5 - slot; err != nil || n > 1800 || n < 1800-10*begun { // slots may have begun meanwhile
		t.Errorf("the failure policies made %d decisions", n)
	}
}

// The first screen says if no process reports, and never that all is well if something cannot be read.
func TestNoProcessReports(t *testing.T) {
	t.Parallel()
	client := startRedis(t)
	writer := redis.NewClient(client.Options())
	h := console.New(ratelimit.New(redisstore.New(client, patient), ratelimit.WithPrefix("shop")))
	_, own := open(t, redisstore.New(writer, patient))
	requireText(t, own, "/", nil, "Processes 1")
	requireText(t, own, "/rules", nil, "sms {phone} 10 per hour")
	_ = writer.Close()
	client.Del(t.Context(), "shop.seen:{shop}:processes")
	requireText(t, h, "/rules", nil, "sms {phone} 10 per hour")
	requireText(t, h, "/", nil, "No process has said anything for 12s")
	client.Do(t.Context(), "ACL", "SETUSER", "default", "-hscan")
	requireText(t, h, "/", nil, "NOPERM", "Cannot be read now; this is from")
	if page := plain(first(send(h, http.MethodGet, "/", nil))); strings.Contains(page, "All is well") {
		t.Errorf("all is well: %s", page)
	}
}

// After the store lost the settings, the first screen says of itself and of each process what it keeps in force, and never that all is well.
func TestScreenOfLostSettings(t *testing.T) {
	t.Parallel()
	client := startRedis(t)
	l, h := open(t, redisstore.New(client, patient))
	if err := l.Block(t.Context(), time.Hour, ratelimit.Request{Rule: sms, Key: "ann"}); err != nil {
		t.Fatal(err)
	}
	requireText(t, h, "/", nil, "Store up", "block sms ann blocked")
	client.FlushAll(t.Context())
	page := plain(requireText(t, h, "/", nil, "the store lost its settings", "settings recover", "right 1 that the store lost none", "Settings in force 1"))
	if strings.Contains(page, "All is well") {
		t.Errorf("all is well: %s", page)
	}
	for _, path := range []string{"/rules", "/rule?name=sms", "/refusing", "/live", "/changes", "/subject"} {
		requireText(t, h, path, nil, "the store lost its settings; 1 process still applies its own (1): run ratelimitctl settings recover")
	}
	// A console that did not know the settings does not say that there are none.
	other := redis.NewClient(client.Options())
	t.Cleanup(func() { _ = other.Close() })
	h = console.New(ratelimit.New(redisstore.New(other, patient), ratelimit.WithPrefix("shop")))
	for path, form := range map[string]url.Values{"/": nil, "/rule?name=sms": nil, "/refusing": nil, "/refusing?kind=block": nil, "/subject": {"key": {"ann"}}} {
		page := plain(requireText(t, h, path, form, "the store lost its settings", "rocesses may apply"))
		for _, untrue := range []string{"is in force.", "Nothing of that kind", "No key of the rule", "Neither the rule", "nothing is set"} {
			if strings.Contains(page, untrue) {
				t.Errorf("%s says %q: %s", path, untrue, page)
			}
		}
	}
}

// The store is up, though somebody else has a wrong password.
func TestStoreThatRefusesAStranger(t *testing.T) {
	t.Parallel()
	client := startRedis(t)
	_, h := open(t, redisstore.New(client, patient))
	stranger := redis.NewClient(&redis.Options{Addr: client.Options().Addr, Username: "stranger", Password: "wrong", MaxRetries: -1, DialerRetries: 1})
	t.Cleanup(func() { _ = stranger.Close() })
	if err := stranger.Ping(t.Context()).Err(); err == nil {
		t.Fatal("the stranger may sign in")
	}
	requireText(t, h, "/", nil, "stranger to sign in", "Store up asked")
}

// The first screen groups the processes of a large fleet by program and build. A row shows each fault that it names.
func TestManyProcesses(t *testing.T) {
	t.Parallel()
	client := startRedis(t)
	_, h := open(t, redisstore.New(client, patient))
	faults := map[int]fleet.Process{
		77: {Store: "it fails"}, 78: {Store: time.Now().UTC().Add(-10*time.Minute).Format("at 2006-01-02 15:04:05 MST: ") + "it failed"}, 177: {Setting: "they fail"}, 277: {Ahead: time.Minute}, 377: {Lost: 3},
	}
	_, err := client.Pipelined(t.Context(), func(pipe redis.Pipeliner) error {
		for i := range 501 {
			p := faults[i]
			p.Host, p.Program, p.Build, p.At = fmt.Sprintf("host%03d", i), "shop", fmt.Sprint("v", 1+i/500), time.Now()
			word, err := json.Marshal(p)
			if err != nil {
				return err
			}
			pipe.HSet(t.Context(), "shop.seen:{shop}:processes", fmt.Sprint(i), word)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	page := requireText(t, h, "/", nil, "shop v1 500 processes 4 with a fault", "shop v2 1 process", "of 500 processes, those with faults first")
	for _, id := range []string{"store-down", "settings-stale", "clock-off", "settings-lost", "builds-differ"} {
		if !strings.Contains(page, `<li data-problem="`+id+`"`) {
			t.Errorf("the page does not list the problem %s: %s", id, plain(page))
		}
	}
	if !regexp.MustCompile(`<td class="text" data-label="Last error">store: at [^<]*: it failed </td>`).MatchString(page) {
		t.Error("a failure of long ago is not shown, or as a fault")
	}
	if headline := regexp.MustCompile(`<h2 id="state-title" class="state bad">shop 0 on host077: it fails</h2>`); !headline.MatchString(page) {
		t.Error("the headline is not the worst problem")
	}
	for host := range faults {
		if name := fmt.Sprintf("host%03d", host); !strings.Contains(page, name) {
			t.Errorf("the page names a fault of %s, and no row shows it", name)
		}
	}
	requireSmall(t, "/", page)
}

// A form does not say that its change is in force everywhere if it is known that a process does not follow, or not known whether it does.
func TestChangeBesidesAHungProcess(t *testing.T) {
	t.Parallel()
	client := startRedis(t)
	_, h := open(t, redisstore.New(client, patient), console.WithWrites(kim))
	requireText(t, h, "/rules", nil, "sms {phone} 10 per hour")
	form := url.Values{"page": {"subject"}, "key": {"ann"}, "rule": {"sms 1h {phone}"}, "reason": {"ticket 8"}, "for": {"2h"}, "limit": {"5"}}
	for silent, want := range map[time.Duration]string{
		8 * time.Second: "perhaps not everywhere in force soon: nothing is heard of shop 7 on web-1.",
		0:               "not everywhere in force soon: a process cannot read settings: shop 7 on web-1: NOPERM HGET.",
	} {
		p := fleet.Process{Host: "web-1", PID: 7, Program: "shop"}
		if silent == 0 {
			p.Setting = "NOPERM HGET"
		}
		for do, text := range map[string]string{"block": "Blocked for 2h", "set": "Set"} {
			p.At = time.Now().Add(-silent)
			word, err := json.Marshal(p)
			if err != nil {
				t.Fatal(err)
			}
			client.HSet(t.Context(), "shop.seen:{shop}:processes", "hung", word)
			form.Set("do", do)
			if _, page := send(h, http.MethodPost, "/change", form); !strings.Contains(plain(page), text+", but "+want) {
				t.Errorf("%s: want %q: %s", do, want, plain(page))
			}
		}
	}
}

// Each list says how old it is, also if the store is lost.
func TestAges(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr, MaxRetries: -1})
	t.Cleanup(func() { _ = client.Close() })
	_, h := open(t, redisstore.New(client, patient, redisstore.WithStats()))
	ages := map[string]int{"/": 3, "/rules": 1, "/rule?name=sms": 6, "/live": 2, "/changes": 1, "/refusing": 1}
	require := func(age string, paths ...string) {
		t.Helper()
		for _, path := range paths {
			var page string
			want := ages[path]
			for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
				_, page = send(h, http.MethodGet, path, nil)
				if strings.Count(page, `<p class="`+age) == want {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("%s has not %d times %q:\n%s", path, want, age, plain(page))
				}
			}
		}
	}
	require(`seen">Read `, slices.Collect(maps.Keys(ages))...)
	server.Stop()
	require(`seen bad">Cannot be read now; this is from `, "/rule?name=sms")
}

var methods = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions, "TRACE",
}

// A console without WithWrites changes nothing, whatever it is sent.
func TestReadOnly(t *testing.T) {
	l, h := open(t, memstore.New())
	_, _ = l.Allow(t.Context(), ratelimit.Request{Rule: sms, Key: "ann"})
	for _, path := range []string{"/", "/rules", "/rule?name=sms", "/subject", "/live", "/changes", "/change", "/asset/style.css", "/none"} {
		for _, method := range methods {
			for _, do := range []string{"reset", "give", "block", "unblock", "pause", "resume", "set", "clear", "undo"} {
				form := url.Values{"do": {do}, "rule": {"sms 1h {phone}"}, "key": {"ann"}, "for": {"1h"}, "reason": {"r"}, "limit": {"1"}, "permits": {"1"}}
				code, _ := send(h, method, path, form)
				reads := method == http.MethodGet || method == http.MethodHead || method == http.MethodPost && path == "/subject"
				if known := path != "/change" && path != "/none"; code == http.StatusOK != (reads && known) {
					t.Errorf("%s %s: %d", method, path, code)
				}
			}
		}
	}
	d, err := l.Peek(t.Context(), ratelimit.Request{Rule: sms, Key: "ann"})
	if err != nil || d.Quotas[0].Remaining != 9 {
		t.Errorf("after all requests: %+v, %v", d, err)
	}
	if blocked, _ := l.Blocked(t.Context()); len(blocked) > 0 {
		t.Errorf("blocked: %v", blocked)
	}
	requireText(t, h, "/subject", url.Values{"key": {"ann"}}, "1 of 10", "This console only reads.")
}

// A write needs a browser's word that it comes from the console's own pages.
func TestWritesComeFromHere(t *testing.T) {
	l, h := open(t, memstore.New(), console.WithWrites(kim))
	form := url.Values{"do": {"block"}, "rule": {"sms 1h {phone}"}, "key": {"ann"}, "for": {"1h"}, "reason": {"r"}}
	for header, want := range map[string]int{
		"": http.StatusForbidden, "Sec-Fetch-Site: cross-site": http.StatusForbidden, "Sec-Fetch-Site: same-site": http.StatusForbidden,
		"Origin: https://evil.example": http.StatusForbidden, "Origin: null": http.StatusForbidden,
		"Sec-Fetch-Site: same-origin": http.StatusOK, "Origin: http://example.com": http.StatusOK,
	} {
		r := httptest.NewRequest(http.MethodPost, "http://example.com/change", strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if name, value, ok := strings.Cut(header, ": "); ok {
			r.Header.Set(name, value)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%q: %d, want %d", header, w.Code, want)
		}
		blocked, err := l.Blocked(t.Context())
		if err != nil || len(blocked) > 0 != (want == http.StatusOK) {
			t.Errorf("%q: blocked %v, %v", header, blocked, err)
		}
		if err := l.Unblock(t.Context(), ratelimit.Request{Rule: sms, Key: "ann"}); err != nil {
			t.Fatal(err)
		}
	}
}

// Each form does what it says, needs a reason and an end, and is listed with its actor.
func TestWrites(t *testing.T) {
	t.Parallel()
	for name, store := range stores {
		t.Run(name, func(t *testing.T) {
			l, h := open(t, store(t), console.WithWrites(kim))
			page := requireText(t, h, "/subject", url.Values{"key": {"ann"}}, "0 of 10")
			rule := html.UnescapeString(regexp.MustCompile(`<option value="([^"]*)"`).FindStringSubmatch(page)[1])
			change := func(fields ...string) (int, string) {
				form := url.Values{"page": {"subject"}, "key": {"ann"}, "rule": {rule}, "reason": {"ticket 8"}}
				for i := 0; i < len(fields); i += 2 {
					form.Set(fields[i], fields[i+1])
				}
				code, page := send(h, http.MethodPost, "/change", form)
				return code, plain(page)
			}
			require := func(wantCode int, wanted string, fields ...string) {
				t.Helper()
				if code, text := change(fields...); code != wantCode || !strings.Contains(text, wanted) {
					t.Errorf("%q: %d, want %d and %q:\n%s", fields, code, wantCode, wanted, text)
				}
			}
			if _, err := l.Allow(t.Context(), ratelimit.Request{Rule: sms, Key: "ann"}); err != nil {
				t.Fatal(err)
			}
			require(200, "1 count forgotten.", "do", "reset")
			require(200, "blocked for", "do", "block", "for", "2h")
			require(200, "0 of 10", "do", "unblock")
			require(200, "paused by kim, ticket 8", "do", "pause", "for", "1h")
			require(200, "Not paused any more", "do", "resume")
			if _, err := l.Allow(t.Context(), ratelimit.Request{Rule: sms, Key: "ann"}, ratelimit.Request{Rule: sms, Key: "ann"}); err != nil {
				t.Fatal(err)
			}
			require(200, "1 of 10", "do", "give", "permits", "1")
			require(200, "0 of 10", "do", "give", "permits", "5")
			require(422, "write how many permits to give", "do", "give", "permits", "0")
			require(422, "a pause needs an end", "do", "pause", "for", "forever")
			require(200, "0 of 50", "do", "set", "limit", "50", "for", "1d")
			require(200, "0 of 20", "do", "set", "factor", "2", "for", "forever")
			require(200, "0 of 10", "do", "clear")
			require(422, "write a reason", "do", "clear", "reason", " ")
			require(422, "expected at most 200", "do", "clear", "reason", strings.Repeat("x", 201))
			require(422, "write how long", "do", "set", "limit", "1", "for", "")
			require(422, "write how long", "do", "set", "limit", "1", "for", "-1h")
			require(422, "a block needs an end", "do", "block", "for", "forever")
			require(422, "write a limit, a factor or a mode", "do", "set", "for", "1h")
			require(422, "write the limit as a number", "do", "set", "for", "1h", "limit", "many")
			require(422, "the rule is unknown", "do", "block", "for", "1h", "rule", "other 1h {phone}")
			require(422, "expected one of the forms", "do", "drop")
			requireText(t, h, "/changes", nil, "kim clear sms ann factor=2 → no override ticket 8", "kim reset sms ann – ticket 8",
				"kim give sms ann 1 permit given ticket 8")
			page = requireText(t, h, "/changes", nil, "Undo the last change")
			last := html.UnescapeString(regexp.MustCompile(`name="change" value="([^"]*)"`).FindStringSubmatch(page)[1])
			_, page = send(h, http.MethodPost, "/change", url.Values{"page": {"changes"}, "do": {"undo"}, "change": {last}, "reason": {"wrong"}})
			if !strings.Contains(plain(page), "kim undo sms ann no override → factor=2 wrong") {
				t.Errorf("after an undo:\n%s", plain(page))
			}
			if code, _ := send(h, http.MethodPost, "/change", url.Values{"page": {"changes"}, "do": {"undo"}, "change": {last}, "reason": {"again"}}); code != 422 {
				t.Errorf("undone twice: %d", code)
			}
			requireText(t, h, "/subject", url.Values{"key": {"ann"}}, "0 of 20")
		})
	}
}

// A rejected form keeps what was typed, and says at the field what is wrong. A form that was obeyed says what was done to which rule and key, and how to
// undo it.
func TestForms(t *testing.T) {
	l, h := open(t, memstore.New(), console.WithWrites(kim))
	if err := l.Check(ratelimit.Rule{Name: "abc", Key: "{user}", Limit: 10, Per: time.Hour}); err != nil {
		t.Fatal(err)
	}
	typed := url.Values{
		"page": {"subject"}, "key": {"ann"}, "rule": {"sms 1h {phone}"}, "reason": {"ticket <8>"}, "for": {"2h"}, "permits": {"3"}, "limit": {"50"},
		"mode": {"shadow"},
	}
	send := func(fields ...string) string {
		form := maps.Clone(typed)
		for i := 0; i < len(fields); i += 2 {
			form.Set(fields[i], fields[i+1])
		}
		return first(send(h, http.MethodPost, "/change", form))
	}
	for field, wrong := range map[string][]string{
		"reason": {"reason", " "}, "for": {"for", "soon"}, "permits": {"permits", "0", "do", "give"}, "limit": {"limit", "many"},
		"factor": {"factor", "twice", "limit", ""}, "rule": {"rule", "none"},
	} {
		page := send(append([]string{"do", "set"}, wrong...)...)
		if at := regexp.MustCompile(`name="` + field + `"[^>]*aria-invalid="true" aria-describedby="fault" autofocus`); !at.MatchString(page) {
			t.Errorf("%q: the field %s is not marked:\n%s", wrong, field, plain(page))
		}
		for name, value := range typed {
			kept := map[string]string{"mode": `selected>shadow<`, "rule": `value="sms 1h {phone}" selected`}[name]
			if kept == "" {
				kept = `name="` + name + `"[^>]* value="` + regexp.QuoteMeta(html.EscapeString(value[0])) + `"`
			}
			if !slices.Contains(wrong, name) && !regexp.MustCompile(kept).MatchString(page) {
				t.Errorf("%q: the page lost the field %s", wrong, name)
			}
		}
	}
	page := send("do", "block")
	if text := plain(page); !strings.Contains(text, "Blocked for 2h, everywhere within 2s. Rule sms , key ann .") || strings.Contains(page, `name="permits" value`) {
		t.Errorf("after a change: %s", text)
	}
	undo := regexp.MustCompile(`(?s)<form method="post" action="change">(.*?)</form>`).FindStringSubmatch(page)
	if undo == nil {
		t.Fatal("the page has no button to undo a block")
	}
	form := url.Values{"do": {"undo"}}
	for _, input := range regexp.MustCompile(`name="([a-z]*)" value="([^"]*)"`).FindAllStringSubmatch(undo[1], -1) {
		form.Set(input[1], html.UnescapeString(input[2]))
	}
	requireText(t, h, "/change", form, "Undone, everywhere within 2s. Rule sms , key ann .", "0 of 10")
	if page := send("do", "reset"); strings.Contains(page, `name="change"`) {
		t.Error("the page offers to undo what cannot be undone")
	}
}

// The screen Refusing lists everything that refuses besides counts, by whom, why and until when: also blocks that rules began, and pauses of rules with
// pause=. The page of a rule lists what refuses under it, and the page of a subject what refuses it.
func TestRefusing(t *testing.T) {
	t.Parallel()
	for name, store := range stores {
		t.Run(name, func(t *testing.T) {
			l, h := open(t, store(t))
			guess := ratelimit.Rule{Name: "guess", Key: "{ip}", Limit: 1, Per: time.Minute, Block: time.Hour}
			call := ratelimit.Rule{Name: "call", Key: "{host}", Limit: 9, Per: time.Minute, Pausable: true}
			trial := ratelimit.Rule{Name: "trial", Key: "{user}", Limit: 9, Per: time.Minute, Mode: ratelimit.ModeShadow}
			if err := l.Check(guess, call, trial); err != nil {
				t.Fatal(err)
			}
			ctx, none := ratelimit.WithActor(t.Context(), "ada", "ticket 7"), int64(0)
			for _, err := range []error{
				l.Block(ctx, time.Hour, ratelimit.Request{Rule: sms, Key: "eve"}, ratelimit.Request{Rule: trial, Key: "eve"}),
				l.Pause(ctx, time.Hour, ratelimit.Request{Rule: sms, Key: "zoe"}, ratelimit.Request{Rule: call, Key: "api.example"}),
				l.Overrides().Set(ctx, "all", ratelimit.Override{Limit: &none, Until: time.Now().Add(time.Hour)}),
			} {
				if err != nil {
					t.Fatal(err)
				}
			}
			for range 2 {
				if _, err := l.Allow(t.Context(), ratelimit.Request{Rule: guess, Key: "192.0.2.7"}); err != nil {
					t.Fatal(err)
				}
			}
			all := []string{"limit 0 all all keys", "pause call api.example", "block guess 192.0.2.7", "the rule's block=", "block sms eve", "pause sms zoe", "block trial eve"}
			requireText(t, h, "/refusing", nil, append(all, "ada: ticket 7", "trial is in mode shadow")...)
			for path, want := range map[string][]string{
				"/refusing?q=SMS": {"block sms eve", "pause sms zoe"}, "/refusing?kind=pause": {"pause call api.example", "pause sms zoe"},
				"/refusing?q=sms&kind=block": {"block sms eve"}, "/rule?name=guess": {"block guess 192.0.2.7"}, "/rule?name=call": {"pause call api.example"},
				"/refusing?q=none": {"Nothing of that kind refuses."},
			} {
				text := plain(requireText(t, h, path, nil, want...))
				for _, other := range all {
					if !slices.Contains(want, other) && strings.Contains(text, other) && other != "the rule's block=" {
						t.Errorf("%s has %q", path, other)
					}
				}
			}
			requireText(t, h, "/subject", url.Values{"key": {"192.0.2.7"}}, "blocked for 59m", "blocked by the rule's block=, since", "until")
			requireText(t, h, "/subject", url.Values{"key": {"api.example"}}, "paused for 59m", "paused by ada, ticket 7")
		})
	}
}

// Counts of keys under a rule that has no template of keys are found by their keys. What is used beyond a limit that was lowered is shown.
func TestKeysWithoutTemplate(t *testing.T) {
	t.Parallel()
	for name, store := range stores {
		t.Run(name, func(t *testing.T) {
			l, h := open(t, store(t), console.WithWrites(kim))
			uploads := ratelimit.Rule{Name: "uploads", Limit: 60_000, Per: time.Hour}
			if err := l.Check(uploads, ratelimit.Rule{Name: "idle", Limit: 5, Per: time.Hour}); err != nil {
				t.Fatal(err)
			}
			if _, err := l.Allow(t.Context(), ratelimit.Request{Rule: uploads, Key: "ann", Cost: 60_000}); err != nil {
				t.Fatal(err)
			}
			limit := int64(50_000)
			if err := l.Overrides().Set(t.Context(), "uploads", ratelimit.Override{Limit: &limit}); err != nil {
				t.Fatal(err)
			}
			ann := url.Values{"key": {"ann"}}
			page := requireText(t, h, "/subject", ann, "uploads per hour (sliding-window) 60,000 of 50,000 in 59m")
			if strings.Contains(plain(page), "idle per hour") {
				t.Error("the page shows a rule without a template under which nothing is counted for the key")
			}
			form := url.Values{"page": {"subject"}, "key": {"ann"}, "reason": {"r"}, "for": {"1h"}, "rule": {"idle 1h "}, "do": {"block"}}
			requireText(t, h, "/change", form, "Blocked for 1h", "idle per hour 0 of 5 blocked for 59m")
		})
	}
}

// The form of a subject begins with the rule that refuses.
func TestFormBeginsWithWhatRefuses(t *testing.T) {
	t.Parallel()
	l, h := open(t, memstore.New(), console.WithWrites(kim))
	mail := ratelimit.Rule{Name: "mail", Key: "{user}", Limit: 1, Per: time.Hour}
	for _, rule := range []ratelimit.Rule{{Name: "a", Key: "{user}", Limit: 2, Per: time.Hour}, mail, sms} {
		if _, err := l.Allow(t.Context(), ratelimit.Request{Rule: rule, Key: "ann"}); err != nil {
			t.Fatal(err)
		}
	}
	form := url.Values{"key": {"ann"}}
	if page := first(send(h, http.MethodPost, "/subject", form)); !strings.Contains(page, `<option value="mail 1h {user}" selected>`) {
		t.Errorf("the form does not begin with the rule that is used up: %s", plain(page))
	}
	if _, err := l.Reset(t.Context(), ratelimit.Request{Rule: mail, Key: "ann"}); err != nil {
		t.Fatal(err)
	}
	if err := l.Block(t.Context(), time.Hour, ratelimit.Request{Rule: sms, Key: "ann"}); err != nil {
		t.Fatal(err)
	}
	if page := first(send(h, http.MethodPost, "/subject", form)); !strings.Contains(page, `<option value="sms 1h {phone}" selected>`) {
		t.Errorf("the form does not begin with the rule under which the key is blocked: %s", plain(page))
	}
}

// The observers of the limiter are told of each change that the console makes.
func TestObserversAreTold(t *testing.T) {
	t.Parallel()
	var told []string
	l := ratelimit.New(memstore.New(), ratelimit.WithPrefix("shop"), ratelimit.WithObserver(func(_ context.Context, e *ratelimit.Event) {
		if e.Kind == ratelimit.EventChanged {
			told = append(told, fmt.Sprint(e.Change, " ", e.Settings[0].Rule, " ", e.Settings[0].Key))
		}
	}))
	if err := l.Check(sms); err != nil {
		t.Fatal(err)
	}
	h := console.New(l, console.WithWrites(kim))
	var want []string
	for i, do := range []string{"block", "unblock", "pause", "resume", "set", "clear", "block", "unblock", "undo"} {
		form := url.Values{"page": {"subject"}, "key": {"ann"}, "rule": {"sms 1h {phone}"}, "reason": {"r"}, "for": {"1h"}, "limit": {"7"}, "do": {do}}
		if i >= 6 {
			form.Set("shown", "1")
		}
		if do == "undo" {
			form = url.Values{"page": {"changes"}, "do": {"undo"}, "reason": {"r"}}
			page := first(send(h, http.MethodGet, "/changes", nil))
			form.Set("change", html.UnescapeString(regexp.MustCompile(`name="change" value="([^"]*)"`).FindStringSubmatch(page)[1]))
		}
		if code, page := send(h, http.MethodPost, "/change", form); code != http.StatusOK {
			t.Fatalf("%s: %d %s", do, code, plain(page))
		}
		want = append(want, do+" sms ann")
	}
	if !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}

// The screen Rules shows those of a mode, or with settings, and sorts them.
func TestRulesAreFilteredAndSorted(t *testing.T) {
	t.Parallel()
	client := startRedis(t)
	l := ratelimit.New(redisstore.New(client, patient), ratelimit.WithPrefix("shop"))
	rule := func(name string, mode ratelimit.Mode) ratelimit.Rule {
		return ratelimit.Rule{Name: name, Limit: 5, Per: time.Hour, Mode: mode}
	}
	if err := l.Check(rule("a.calm", 0), rule("b.busy", 0), rule("c.shadow", ratelimit.ModeShadow), rule("d.refusing", 0)); err != nil {
		t.Fatal(err)
	}
	waitForRules(t, l, 4)
	if err := l.Block(t.Context(), time.Hour, ratelimit.Request{Rule: rule("a.calm", 0)}); err != nil {
		t.Fatal(err)
	}
	count := func(name string, calls, refused int64) fleet.RuleCounts {
		return fleet.RuleCounts{Name: name, Tag: "1h", Counts: fleet.Counts{Calls: calls, Refused: refused}}
	}
	say(t, client, fleet.Report{Rules: []fleet.RuleCounts{count("a.calm", 1, 0), count("b.busy", 90, 2), count("d.refusing", 50, 40)}})
	h := console.New(l)
	requireText(t, h, "/rules", nil, "a.calm everybody 5 per hour 1 key blocked enforce 1.0")
	names := regexp.MustCompile(`rule\?name=([a-z.]*)`)
	for query, want := range map[string]string{
		"": "a.calm b.busy c.shadow d.refusing", "by=name": "a.calm b.busy c.shadow d.refusing", "by=decisions": "b.busy d.refusing a.calm c.shadow",
		"by=refused": "d.refusing b.busy a.calm c.shadow", "mode=shadow": "c.shadow", "mode=enforce&by=refused": "d.refusing b.busy a.calm",
		"settings=1": "a.calm", "settings=1&mode=shadow": "", "q=BUSY": "b.busy",
	} {
		var got []string
		for _, name := range names.FindAllStringSubmatch(first(send(h, http.MethodGet, "/rules?"+query, nil)), -1) {
			got = append(got, name[1])
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
}

// If the actor is unknown, nothing changes.
func TestActorIsUnknown(t *testing.T) {
	l, h := open(t, memstore.New(), console.WithWrites(func(*http.Request) (string, error) { return "", errors.New("log in first") }))
	code, page := send(h, http.MethodPost, "/change",
		url.Values{"do": {"block"}, "rule": {"sms 1h {phone}"}, "key": {"ann"}, "for": {"1h"}, "reason": {"r"}})
	if blocked, _ := l.Blocked(t.Context()); code != http.StatusForbidden || !strings.Contains(page, "log in first") || len(blocked) > 0 {
		t.Errorf("%d %q, blocked %v", code, page, blocked)
	}
}

// Responses allow browsers nothing but what the pages need.
func TestHeaders(t *testing.T) {
	_, h := open(t, memstore.New())
	for _, path := range []string{"/", "/none", "/asset/live.js", "/change"} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'", "Referrer-Policy": "same-origin", "X-Content-Type-Options": "nosniff",
			"X-Frame-Options": "DENY", "Cache-Control": "no-store",
		} {
			if got := w.Header().Get(name); !strings.HasPrefix(got, want) {
				t.Errorf("%s: %s: %q", path, name, got)
			}
		}
		if got := w.Header().Get("Content-Security-Policy"); strings.Contains(got, "unsafe") || !strings.Contains(got, "frame-ancestors 'none'") {
			t.Errorf("policy %q", got)
		}
		if cookies := w.Header().Values("Set-Cookie"); len(cookies) > 0 {
			t.Errorf("cookies: %q", cookies)
		}
	}
}

// A handler that is mounted without the slash sends browsers to the path with it, where relative links work.
func TestMounted(t *testing.T) {
	_, h := open(t, memstore.New())
	mux := http.NewServeMux()
	mux.Handle("/limits", http.StripPrefix("/limits", h))
	mux.Handle("/limits/", http.StripPrefix("/limits", h))
	server := httptest.NewServer(mux)
	defer server.Close()
	for _, path := range []string{"/limits", "/limits/", "/limits/rules", "/limits/asset/style.css"} {
		response, err := http.Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		if response.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", path, response.Status)
		}
	}
	for _, query := range []string{"", "?q=a/b", "?q=/https:evil.example"} {
		w := httptest.NewRecorder()
		if mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/limits"+query, nil)); w.Header().Get("Location") != "limits/" {
			t.Errorf("%s leads to %s", query, w.Header().Get("Location"))
		}
	}
}

// nasty are texts that people would send to break a page.
func nasty() (all []string) {
	seeds := []string{
		`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `'-alert(1)-'`, `javascript:alert(1)`, "\x00\x01\x02", "\u202egnp.exe", "</title><svg onload=1>",
		"{{.Title}}", "&lt;b&gt;", "a\r\nSet-Cookie: x=1", strings.Repeat("<", 300), "\xff\xfe", "%3Cscript%3E", "`${1}`", "]]>", "<!--", "\u2028", " onfocus=alert(1) autofocus x=",
	}
	for i := range 3 * len(seeds) {
		all = append(all, seeds[i%len(seeds)]+fmt.Sprint(i)+seeds[(i*7+i/len(seeds))%len(seeds)])
	}
	return all
}

var (
	element   = regexp.MustCompile(`^</?([a-z0-9]+)((?: [a-zA-Z-]+(?:="[^"<>]*")?)*)/?>$`)
	attribute = regexp.MustCompile(` ([a-zA-Z-]+)(?:="[^"<>]*")?`)
	elements  = strings.Fields("a body br button code dd details div dl dt fieldset figcaption figure footer form h1 h2 head header html input label legend li link main meta nav noscript " +
		"option p path polygon polyline script section select span strong summary svg table tbody td th thead time title tr ul")
)

// No key, reason or actor becomes part of a page's markup.
func TestNastyKeysAreEscaped(t *testing.T) {
	t.Parallel()
	l, h := open(t, memstore.New(), console.WithWrites(kim))
	for i, text := range nasty() {
		if i < 20 {
			ctx := ratelimit.WithActor(t.Context(), strings.ToValidUTF8(cutTo(text, 40), "?"), strings.ToValidUTF8(cutTo(text, 40), "?"))
			if err := l.Block(ctx, time.Hour, ratelimit.Request{Rule: sms, Key: text}); err != nil {
				t.Fatal(err)
			}
		}
		_, page := send(h, http.MethodPost, "/subject", url.Values{"key": {text}})
		requireClean(t, page)
		if i%10 == 0 {
			requireClean(t, first(send(h, http.MethodGet, "/rules?q="+url.QueryEscape(text), nil)))
		}
	}
	for _, path := range []string{"/", "/changes", "/rule?name=sms"} {
		requireClean(t, first(send(h, http.MethodGet, path, nil)))
	}
}

func first(_ int, page string) string { return page }

func cutTo(text string, n int) string { return text[:min(len(text), n)] }

// requireClean requires that a page consists of elements of the templates.
func requireClean(t *testing.T, page string) {
	t.Helper()
	for _, tag := range tags.FindAllString(page, -1) {
		parts := element.FindStringSubmatch(tag)
		switch {
		case tag == "<!doctype html>":
			continue
		case parts == nil || !slices.Contains(elements, parts[1]):
			t.Fatalf("found %q in the page:\n%s", tag, page)
		case parts[1] == "script" && tag != `</script>` && tag != `<script src="asset/live.js" defer>`:
			t.Fatalf("found %q in the page", tag)
		}
		for _, name := range attribute.FindAllStringSubmatch(parts[2], -1) {
			if strings.HasPrefix(strings.ToLower(name[1]), "on") || name[1] == "style" {
				t.Fatalf("found %q in the page", tag)
			}
		}
	}
	if strings.Contains(page, "\x00") {
		t.Fatal("the page has a zero byte")
	}
}

// No link and no form puts a key into a URL, and no search that is in a URL finds one.
func TestSubjectsAreInNoURL(t *testing.T) {
	t.Parallel()
	l, h := open(t, stores["redis"](t), console.WithWrites(kim))
	if err := l.Block(ratelimit.WithActor(t.Context(), "ada", "r"), time.Hour, ratelimit.Request{Rule: sms, Key: "ann"}); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Allow(t.Context(), ratelimit.Request{Rule: sms, Key: "ann"}); err != nil {
		t.Fatal(err)
	}
	address := regexp.MustCompile(` (?:href|src|action)="[^"]*ann|method="get"[^>]*>[^/]*ann`)
	for _, path := range []string{"/", "/rule?name=sms", "/live", "/changes"} {
		if page := requireText(t, h, path, nil, " ann "); address.MatchString(page) {
			t.Errorf("%s has a key in a URL: %s", path, address.FindString(page))
		}
	}
	requireText(t, h, "/live?q=ann", nil, "No rule matches")
	requireText(t, h, "/changes?q=ann", nil, "No change has")
}

// The console shows nothing of other prefixes on the same store.
func TestOtherPrefixes(t *testing.T) {
	t.Parallel()
	client := startRedis(t)
	_, h := open(t, redisstore.New(client, patient, redisstore.WithStats()))
	var others []http.Handler
	for _, prefix := range []string{"shop2", "sho", "shop:sms", "*"} {
		l := ratelimit.New(redisstore.New(client, patient, redisstore.WithStats()), ratelimit.WithPrefix(prefix))
		other := ratelimit.Rule{Name: "other", Key: "{phone}", Limit: 10, Per: time.Hour}
		ctx := ratelimit.WithActor(t.Context(), "mallory", "other")
		if err := l.Block(ctx, time.Hour, ratelimit.Request{Rule: other, Key: "bob"}, ratelimit.Request{Rule: sms, Key: "bob"}); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Allow(t.Context(), ratelimit.Request{Rule: sms, Key: "ann"}); err != nil {
			t.Fatal(err)
		}
		others = append(others, console.New(l))
	}
	for _, other := range others {
		requireText(t, other, "/live", nil, " ann ")
	}
	for _, path := range []string{"/", "/rules", "/rule?name=sms", "/live", "/changes"} {
		if page := requireText(t, h, path, nil, "Read just now."); strings.Contains(page, "other") || strings.Contains(page, "mallory") || strings.Contains(page, "bob") ||
			strings.Contains(page, "ann<") {
			t.Errorf("%s shows another prefix:\n%s", path, plain(page))
		}
	}
	for _, key := range []string{"ann", "bob"} {
		requireText(t, h, "/subject", url.Values{"key": {key}}, "0 of 10", "Nothing is counted for this key")
	}
}

// Hashed keys stay hashed. A search by text finds them, and so does the link of a hash.
func TestHashedKeys(t *testing.T) {
	l := ratelimit.New(memstore.New(), ratelimit.WithSubjectHash([]byte(strings.Repeat("s", 32))))
	if err := l.Check(sms); err != nil {
		t.Fatal(err)
	}
	h := console.New(l)
	if err := l.Block(ratelimit.WithActor(t.Context(), "ada", "r"), time.Hour, ratelimit.Request{Rule: sms, Key: "ann"}); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/", "/changes", "/rule?name=sms"} {
		if _, page := send(h, http.MethodGet, path, nil); strings.Contains(page, "ann") {
			t.Errorf("%s shows the key", path)
		}
	}
	requireText(t, h, "/subject", url.Values{"key": {"ann"}}, "blocked for")
	page := first(send(h, http.MethodGet, "/", nil))
	hash := html.UnescapeString(regexp.MustCompile(`name="key" value="([^"]*)"`).FindStringSubmatch(page)[1])
	requireText(t, h, "/subject", url.Values{"key": {hash}, "shown": {"1"}}, "blocked for")
}

// A console without the programs' secret changes nothing for a key that is given as text, and is sure of that.
func TestChangeWithAnotherSecret(t *testing.T) {
	t.Parallel()
	client := startRedis(t)
	program := ratelimit.New(redisstore.New(client, patient), ratelimit.WithPrefix("shop"), ratelimit.WithSubjectHash([]byte(strings.Repeat("s", 32))))
	if err := program.Check(sms); err != nil {
		t.Fatal(err)
	}
	waitForRules(t, program, 1)
	other := redis.NewClient(client.Options())
	t.Cleanup(func() { _ = other.Close() })
	h := console.New(ratelimit.New(redisstore.New(other, patient), ratelimit.WithPrefix("shop")), console.WithWrites(kim))
	form := url.Values{"page": {"subject"}, "rule": {"sms 1h {phone}"}, "key": {"ann"}, "do": {"block"}, "for": {"1h"}, "reason": {"abuse"}}
	code, page := 0, ""
	redistest.Eventually(t, "the program has said which secret it has", func() bool {
		code, page = send(h, http.MethodPost, "/change", form)
		return code != http.StatusOK
	})
	if text := plain(page); code != http.StatusUnprocessableEntity || !strings.Contains(text, "Nothing changed: the programs hash keys with another secret") {
		t.Errorf("got %d, %s", code, text)
	}
	waitForRules(t, program, 1) // it is still in use
}

// A fleet at its bounds, with the longest keys: pages stay small.
func TestLargeFleet(t *testing.T) {
	l, h := open(t, memstore.New(), console.WithWrites(kim))
	ctx := ratelimit.WithActor(t.Context(), strings.Repeat("<", 20), strings.Repeat(`"`, 20))
	var rules []ratelimit.Rule
	for i := range 990 {
		rules = append(rules, ratelimit.Rule{Name: fmt.Sprintf("a.rather.long.name.of.a.rule/%d", i), Key: "{tenant}", Limit: 100, Per: time.Hour})
	}
	if err := l.Check(rules...); err != nil {
		t.Fatal(err)
	}
	var requests []ratelimit.Request
	for i := range 10_000 {
		requests = append(requests, ratelimit.Request{Rule: sms, Key: fmt.Sprintf("%s%05d", strings.Repeat(`"`, 123), i)})
	}
	if err := l.Block(ctx, time.Hour, requests...); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/", "/?from=5000", "/rules", "/rules?from=100", "/rule?name=sms", "/live", "/changes"} {
		requireSmall(t, path, first(send(h, http.MethodGet, path, nil)))
	}
	requireSmall(t, "a subject", first(send(h, http.MethodPost, "/subject", url.Values{"key": {requests[0].Key}})))
}

// The links of a long table lead to its other parts, and keep the search.
func TestParts(t *testing.T) {
	l, h := open(t, memstore.New())
	var rules []ratelimit.Rule
	for i := range 250 {
		rules = append(rules, ratelimit.Rule{Name: fmt.Sprintf("part%03d", i), Limit: 1, Per: time.Hour})
	}
	if err := l.Check(rules...); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string][]string{
		"/rules?q=part":          {"1 to 100 of 250 rules", "part000", `href="rules?from=100&amp;q=part"`},
		"/rules?q=part&from=100": {"101 to 200 of 250 rules", "part100", `href="rules?from=0&amp;q=part"`, `href="rules?from=200&amp;q=part"`},
		"/rules?q=part&from=999": {"201 to 250 of 250 rules", "part249", `href="rules?from=100&amp;q=part"`},
		"/rules?q=part&from=-7":  {"1 to 100 of 250 rules"},
	} {
		page := first(send(h, http.MethodGet, path, nil))
		for _, text := range want {
			if !strings.Contains(page, text) && !strings.Contains(plain(page), text) {
				t.Errorf("%s lacks %q", path, text)
			}
		}
	}
}

// The links of a long table also work on the page that answers a form, and lead to all settings of a rule.
func TestPartsAfterAChange(t *testing.T) {
	l, h := open(t, memstore.New(), console.WithWrites(kim))
	var requests []ratelimit.Request
	for i := range 60 {
		requests = append(requests, ratelimit.Request{Rule: sms, Key: fmt.Sprintf("key%02d", i)})
	}
	for _, r := range requests {
		if err := l.Block(ratelimit.WithActor(t.Context(), "ada", "r"), time.Hour, r); err != nil {
			t.Fatal(err)
		}
	}
	form := url.Values{"do": {"set"}, "name": {"sms"}, "rule": {"sms 1h {phone}"}, "limit": {"7"}, "for": {"1h"}, "reason": {"r"}}
	for page, want := range map[string]string{"rule": "key59", "changes": "key00"} {
		form.Set("page", page)
		next, found := 0, false
		for _, shown := send(h, http.MethodPost, "/change", form); !found && next < 3; next++ {
			link := regexp.MustCompile(`<a href="([^"]*)">next</a>`).FindStringSubmatch(shown)
			if link == nil {
				break
			}
			_, shown = send(h, http.MethodGet, "/"+html.UnescapeString(link[1]), nil)
			found = strings.Contains(shown, want)
		}
		if !found {
			t.Errorf("after a change, the links of the page %s do not lead to %s", page, want)
		}
	}
}

func requireSmall(t *testing.T, what, page string) {
	t.Helper()
	if rows := strings.Count(page, "<tr>"); rows > 130 || len(page) > 80_000 {
		t.Errorf("%s: %d bytes, %d rows", what, len(page), rows)
	}
}

// A store that is lost leaves the last figures on the page, with their age.
func TestLostStore(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr, MaxRetries: -1, DialerRetries: 1})
	t.Cleanup(func() { _ = client.Close() })
	_, h := open(t, redisstore.New(client))
	requireText(t, h, "/rules", nil, "sms {phone}")
	requireText(t, h, "/", nil, "of one command", "heard of within 12s")
	server.Stop()
	requireText(t, h, "/", nil, "Store not answering", "the server cannot be reached", "of one command; read ", "heard of within 12s; read ", "everything that refuses ; read ")
	requireText(t, h, "/rules", nil, "sms {phone}", "Cannot be read now; this is from")
	requireText(t, h, "/subject", url.Values{"key": {"ann"}}, "Cannot be read now")
}

// New wants a limiter, and WithWrites a function.
func TestNil(t *testing.T) {
	for what, do := range map[string]func(){"New": func() { console.New(nil) }, "WithWrites": func() { console.WithWrites(nil) }} {
		func() {
			defer func() {
				if text, _ := recover().(string); !strings.Contains(text, "is nil") {
					t.Errorf("%s: %q", what, text)
				}
			}()
			do()
		}()
	}
}

// A page never waits longer than its patience for a store that hangs.
func TestContextEnds(t *testing.T) {
	_, h := open(t, memstore.New())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil).WithContext(ctx))
	if w.Code != http.StatusOK {
		t.Errorf("%d", w.Code)
	}
}
