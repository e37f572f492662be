package browser

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/console"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
)

var pictures = flag.String("pictures", "", "write a picture of every screen to this `folder`")

const needs = "run: sh scripts/test-needs.sh chromium axe"

// axe is the text of axe-core.
var axe = sync.OnceValues(func() (string, error) {
	text, err := os.ReadFile("node_modules/axe-core/axe.min.js")
	return string(text), err
})

// shop is a console over a Redis that is in use.
type shop struct {
	url     string
	handler http.Handler
	limiter *ratelimit.Limiter
	redis   *redistest.Server
	delay   *slow
}

// slow is a hook that delays the commands of a client.
type slow struct{ atomic.Int64 }

func (s *slow) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s *slow) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		time.Sleep(time.Duration(s.Load()))
		return next(ctx, cmd)
	}
}

func (s *slow) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		time.Sleep(time.Duration(s.Load()))
		return next(ctx, cmds)
	}
}

var (
	sms    = ratelimit.Rule{Name: "sms", Key: "{phone}", Limit: 10, Per: time.Hour}
	login  = ratelimit.Rule{Name: "login", Key: "{clientIP(ctx)}", Limit: 100, Per: time.Hour}
	export = ratelimit.Rule{Name: "export", Algorithm: ratelimit.LeakyBucket, Limit: 3, Per: time.Minute}
	upload = ratelimit.Rule{Name: "upload", Key: "{tenant}", Limit: 40, Per: time.Minute, Mode: ratelimit.ModeShadow}
)

func open(t *testing.T) *shop {
	t.Helper()
	server := redistest.Start(t, "--slowlog-log-slower-than", "1000000") // a busy machine is no finding
	client := redis.NewClient(&redis.Options{Addr: server.Addr, MaxRetries: -1})
	t.Cleanup(func() { _ = client.Close() })
	delay := new(slow)
	client.AddHook(delay)
	l := ratelimit.New(redisstore.New(client, redisstore.WithTimeout(time.Minute), redisstore.WithStats()), ratelimit.WithPrefix("shop"))
	rules := []ratelimit.Rule{sms, login, export, upload}
	if err := l.Check(rules...); err != nil {
		t.Fatal(err)
	}
	ctx, limit := ratelimit.WithActor(t.Context(), "ada", "ticket 7"), int64(500)
	for _, err := range []error{
		l.Overrides().Set(ctx, "login", ratelimit.Override{Limit: &limit, Until: time.Now().Add(3 * time.Hour)}),
		l.Block(ctx, 2*time.Hour, ratelimit.Request{Rule: sms, Key: "+8613800000007"}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	fillFleet(t, client, rules)
	keepBusy(t, l, client, rules)
	h := console.New(l, console.WithWrites(func(*http.Request) (string, error) { return "kim", nil }))
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	waitFor(t, s.URL+"/rule?name=login", "Heaviest keys")
	return &shop{s.URL + "/", h, l, server, delay}
}

// fillFleet writes what processes have counted in the last ten minutes.
func fillFleet(t *testing.T, client *redis.Client, rules []ratelimit.Rule) {
	t.Helper()
	slot := time.Now().Unix() / 5
	_, err := client.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		for n := slot - 121; n <= slot+1; n++ {
			for i, r := range rules {
				calls := 50 + 4*float64(i) + 14*math.Sin(float64(n)/float64(9+i)) + float64(n*7%6)
				refused := max(0, calls-60)
				p.HSet(t.Context(), fmt.Sprint("shop.seen:{shop}:history:", n/24),
					fmt.Sprintf("%d calls %s 1h", n, r.Name), int(calls), fmt.Sprintf("%d refused %s 1h", n, r.Name), int(refused))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// keepBusy calls the limiter, and writes what other processes say of themselves, until the test ends.
func keepBusy(t *testing.T, l *ratelimit.Limiter, client *redis.Client, rules []ratelimit.Rule) {
	started := time.Now().UTC().Add(-50 * time.Hour)
	ctx, stop := context.WithCancel(context.Background())
	var done sync.WaitGroup
	t.Cleanup(func() { stop(); done.Wait() })
	done.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			r := ratelimit.Request{Rule: rules[i%len(rules)]}
			if r.Rule.Key != "" {
				r.Key = fmt.Sprintf("+86138000000%02d", i%20)
			}
			_, _ = l.Allow(ctx, r) // the store may be paused
			if host := i % 100; host < 3 {
				word, _ := json.Marshal(fleet.Process{ // texts and numbers: it never fails
					Host: []string{"shop-1", "shop-2", "worker-1"}[host], PID: 7 + host, Program: "example.com/shop", Build: "v1.4.2", Start: started,
					At: time.Now().UTC(), Version: 2, Stats: true,
				})
				client.HSet(ctx, "shop.seen:{shop}:processes", fmt.Sprint("other", host), word)
			}
			select {
			case <-ctx.Done():
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
}

// waitFor waits until a page has a text.
func waitFor(t *testing.T, url, text string) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		response, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		page, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(page), text) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s lacks %q", url, text)
		}
	}
}

// tab opens a tab of a new browser. A message in the console of the browser, or an exception, fails the test at its end, unless it has one of the
// allowed texts. The host limits.test is this machine.
func tab(t *testing.T, allowed ...string) context.Context {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.WSURLReadTimeout(time.Minute),
		chromedp.Flag("host-resolver-rules", "MAP limits.test 127.0.0.1"))
	ctx, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	t.Cleanup(cancel)
	ctx, closeTab := chromedp.NewContext(ctx)
	t.Cleanup(closeTab)
	var mu sync.Mutex
	var said []string
	chromedp.ListenTarget(ctx, func(event any) {
		mu.Lock()
		defer mu.Unlock()
		switch e := event.(type) {
		case *runtime.EventConsoleAPICalled:
			said = append(said, fmt.Sprint("console: ", e.Args))
		case *runtime.EventExceptionThrown:
			said = append(said, e.ExceptionDetails.Error())
		case *log.EventEntryAdded:
			said = append(said, e.Entry.Text+" "+e.Entry.URL)
		}
	})
	t.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		for _, line := range said {
			if !slices.ContainsFunc(append(allowed, "422"), func(text string) bool { return strings.Contains(line, text) }) {
				t.Errorf("the browser says: %s", line)
			}
		}
	})
	if err := chromedp.Run(ctx, log.Enable()); errors.Is(err, exec.ErrNotFound) {
		t.Fatalf("%v; %s", err, needs)
	} else if err != nil {
		t.Fatal(err)
	}
	return ctx
}

func run(t *testing.T, ctx context.Context, actions ...chromedp.Action) {
	t.Helper()
	if err := chromedp.Run(ctx, actions...); err != nil {
		t.Fatal(err)
	}
}

// noPage is the code of the browser's error while it leaves a page for another one.
const noPage = -32000

// text returns the text of the page as people see it, or "" while the browser leaves it, or has not read it to its end.
func text(t *testing.T, ctx context.Context) (text string) {
	t.Helper()
	err := chromedp.Run(ctx, chromedp.Evaluate(`document.readyState === "complete" ? document.body.innerText.replace(/\s+/g, " ") : ""`, &text))
	if leaves, ok := errors.AsType[*cdproto.Error](err); err != nil && (!ok || leaves.Code != noPage) {
		t.Fatal(err)
	}
	return text
}

// requireText waits until the page shows texts.
func requireText(t *testing.T, ctx context.Context, texts ...string) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		shown, missing := text(t, ctx), ""
		for _, wanted := range texts {
			if !strings.Contains(shown, wanted) {
				missing = wanted
			}
		}
		if missing == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the page lacks %q:\n%s", missing, shown)
		}
	}
}

// screens are all pages. do goes on from the path, for a page that only a form shows.
var screens = []struct {
	name, path string
	do         chromedp.Action
	texts      []string
}{
	{"now", "", nil, []string{"Store up", "Traffic of all processes", "Failures", "block", "ada: ticket 7", "upload (shadow)"}},
	{"rules", "rules", nil, []string{"login", "500", "per hour"}},
	{"rule", "rule?name=login", nil, []string{"Heaviest keys", "limit=500", "Override"}},
	{"refusing", "refusing", nil, []string{"block", "+8613800000007", "ada: ticket 7"}},
	{"subject", "subject", look("+8613800000007"), []string{"blocked for", "ticket 7", "permits taken", "Reset the count"}},
	{"live", "live", nil, []string{"Decisions/s", "Hold the picture"}},
	{"changes", "changes", nil, []string{"ada", "limit=500", "Undo the last change"}},
}

func look(key string) chromedp.Action {
	return chromedp.Tasks{chromedp.SendKeys("#key", key, chromedp.ByID), chromedp.Click(`form[role=search] button`), chromedp.WaitVisible("#used-title", chromedp.ByID),
		chromedp.Poll(`document.readyState === "complete"`, nil)} // the forms come later
}

// requireUsable requires that axe-core finds no serious fault, that the page does not scroll sideways, and that no zero is red.
func requireUsable(t *testing.T, ctx context.Context, what string) {
	t.Helper()
	script, err := axe()
	if err != nil {
		t.Fatalf("%v; %s", err, needs)
	}
	var found []string
	var width []int64
	run(t, ctx,
		chromedp.Evaluate(script, nil),
		chromedp.Evaluate(`axe.run().then(r => r.violations.filter(v => v.impact === "serious" || v.impact === "critical")
			.flatMap(v => v.nodes.map(n => v.id + ": " + n.html + " " + n.failureSummary)))`, &found, awaited),
		chromedp.Evaluate(`[document.documentElement.scrollWidth, innerWidth]`, &width))
	for _, fault := range found {
		t.Errorf("%s: %s", what, fault)
	}
	var zeros []string
	run(t, ctx, chromedp.Evaluate(`{ const probe = document.body.appendChild(document.createElement("p")); probe.className = "bad";
		const red = getComputedStyle(probe).color; probe.remove();
		[...document.querySelectorAll("main *")].filter((e) => /^0\b/.test(e.innerText) && getComputedStyle(e).color === red).map((e) => e.outerHTML) }`, &zeros))
	for _, zero := range zeros {
		t.Errorf("%s: a zero is red: %s", what, zero)
	}
	if width[0] > width[1] {
		t.Errorf("%s: the page is %d px wide in a window of %d", what, width[0], width[1])
	}
}

func awaited(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }

// Every screen, in both themes and three widths, says what it should, and everybody can use it.
func TestScreens(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), tab(t)
	for _, theme := range []string{"light", "dark"} {
		for _, width := range []int64{360, 1024, 2000} {
			for _, screen := range screens {
				what := fmt.Sprintf("%s-%s-%d", screen.name, theme, width)
				run(t, ctx, emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}),
					chromedp.EmulateViewport(width, 900), chromedp.Navigate(s.url+screen.path))
				if screen.do != nil {
					run(t, ctx, screen.do)
				}
				requireText(t, ctx, screen.texts...)
				requireUsable(t, ctx, what)
				if *pictures != "" {
					var picture []byte
					run(t, ctx, chromedp.FullScreenshot(&picture, 100))
					if err := os.WriteFile(filepath.Join(*pictures, what+".png"), picture, 0o666); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
}

// On a phone, nothing of a page is off the screen, and no table has to be moved sideways: every cell of every row is in view, with its column's name.
func TestPhone(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), tab(t)
	long := ratelimit.WithActor(t.Context(), "somebody@a-rather-long-name.example", "a reason that says at length why this key is blocked, for ticket 4711")
	if err := s.limiter.Block(long, time.Hour, ratelimit.Request{Rule: login, Key: "2001:db8:0000:0000:0000:0000:1234:5678"}); err != nil {
		t.Fatal(err)
	}
	for _, screen := range screens {
		run(t, ctx, chromedp.EmulateViewport(390, 844), chromedp.Navigate(s.url+screen.path))
		if screen.do != nil {
			run(t, ctx, screen.do)
		}
		var off []string
		run(t, ctx, chromedp.Evaluate(`for (const details of document.querySelectorAll("details")) details.open = true;
			[...document.querySelectorAll("main *, nav *")].filter((e) => e.checkVisibility() && !e.closest("thead, .skip, svg"))
				.filter((e) => e.getBoundingClientRect().right > innerWidth || e.getBoundingClientRect().left < 0 || e.scrollWidth > e.clientWidth + 1 && e.matches(".scroll, td"))
				.map((e) => e.outerHTML.slice(0, 200))`, &off))
		for _, element := range off {
			t.Errorf("%s: off the screen: %s", screen.name, element)
		}
		var unnamed int
		run(t, ctx, chromedp.Evaluate(`document.querySelectorAll("tbody td:not([data-label], .name, [colspan])").length`, &unnamed))
		if unnamed > 0 {
			t.Errorf("%s: %d cells do not name their column", screen.name, unnamed)
		}
	}
}

// Each form does what its button says.
func TestForms(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), tab(t)
	press := func(button, fields, wanted string) {
		t.Helper()
		run(t, ctx, chromedp.Evaluate(fmt.Sprintf(`for (const [name, value] of Object.entries(%s)) document.querySelector(".change [name=" + name + "]").value = value`, fields), nil),
			chromedp.Click(fmt.Sprintf(`button[value=%s]`, button)))
		requireText(t, ctx, wanted)
	}
	run(t, ctx, chromedp.Navigate(s.url+"subject"), look("+8613800000003"))
	press("block", `{reason: "ticket 8", for: "2h"}`, "Blocked for 2h")
	requireText(t, ctx, "blocked by kim, ticket 8")
	press("unblock", `{reason: "ticket 8"}`, "Not blocked any more")
	press("pause", `{reason: "ticket 8", for: "1h"}`, "Paused for 1h")
	press("resume", `{reason: "ticket 8"}`, "Not paused any more")
	press("give", `{reason: "ticket 8", permits: "2"}`, "Permits given back:")
	press("set", `{reason: "ticket 9", for: "1d", limit: "70"}`, "Set, everywhere")
	press("clear", `{reason: "ticket 9"}`, "As declared again")
	press("reset", `{reason: "ticket 9"}`, "forgotten.")
	press("block", `{reason: "ticket 9"}`, "Nothing changed: write how long")
	var typed string
	run(t, ctx, chromedp.Poll(`document.activeElement.name === "for"`, nil), chromedp.Value("[name=reason]", &typed))
	if typed != "ticket 9" {
		t.Errorf("after a form that lacks the end, the reason is %q", typed)
	}
	press("block", `{for: "3h"}`, "Blocked for 3h, everywhere within 2s. Rule login, key +8613800000003.")
	run(t, ctx, chromedp.Click(`.banner button`))
	requireText(t, ctx, "Undone", "Rule login, key +8613800000003.")
	run(t, ctx, chromedp.Navigate(s.url+"rule?name=login"))
	press("set", `{reason: "ticket 10", for: "forever", factor: "2"}`, "Set, everywhere")
	run(t, ctx, chromedp.Navigate(s.url+"changes"))
	requireText(t, ctx, "kim", "factor=2", "ticket 10")
	press("undo", `{reason: "wrong rule"}`, "Undone")
	requireText(t, ctx, "undo")
	run(t, ctx, chromedp.Navigate(s.url+"rule?name=login"))
	requireText(t, ctx, "limit=500")
}

// The pages work by keyboard: Tab reaches the search, and Enter sends it. The focus can be seen.
func TestKeyboard(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), tab(t)
	run(t, ctx, chromedp.Navigate(s.url+"subject"))
	focused := ""
	for range 20 {
		var outline string
		run(t, ctx, chromedp.KeyEvent("\t"), chromedp.Evaluate(`document.activeElement.id`, &focused),
			chromedp.Evaluate(`getComputedStyle(document.activeElement).outlineStyle`, &outline))
		if outline == "none" {
			t.Errorf("the focus on %q cannot be seen", focused)
		}
		if focused == "key" {
			break
		}
	}
	if focused != "key" {
		t.Fatal("Tab does not reach the search")
	}
	run(t, ctx, chromedp.KeyEvent("+8613800000009\r"))
	requireText(t, ctx, "Change this subject")
	fields := map[string]string{"reason": "by keyboard", "for": "1h", "limit": "7"}
	for _, name := range strings.Fields("rule reason for permits give reset block unblock pause resume limit factor mode set") {
		for range 20 {
			run(t, ctx, chromedp.KeyEvent("\t"), chromedp.Evaluate(`document.activeElement.name === "do" ? document.activeElement.value : document.activeElement.name ?? ""`, &focused))
			if focused == name {
				break
			}
		}
		if focused != name {
			t.Fatalf("Tab does not reach %s, but %s", name, focused)
		}
		if field := fields[name]; field != "" {
			run(t, ctx, chromedp.KeyEvent(field))
		}
	}
	run(t, ctx, chromedp.KeyEvent("\r"))
	requireText(t, ctx, "Set, everywhere", "override of this key: limit=7", "by kim, by keyboard")
}

// Times are shown in the reader's zone, which stands beside them. Those of another day have a date.
func TestTimeZone(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), tab(t)
	for zone, name := range map[string]string{"Asia/Kolkata": "GMT+5:30", "Pacific/Honolulu": "HST"} {
		location, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		run(t, ctx, emulation.SetTimezoneOverride(zone), emulation.SetLocaleOverride().WithLocale("en-US"), chromedp.Navigate(s.url+"changes"), chromedp.WaitVisible("td time"))
		var written, shown string
		run(t, ctx, chromedp.Evaluate(`document.querySelector("td time").dateTime`, &written), chromedp.Text("td time", &shown))
		at, err := time.Parse(time.RFC3339, written)
		if err != nil {
			t.Fatal(err)
		}
		at = at.In(location)
		if today := at.Format("15:04:05") + " " + name; shown != today && shown != at.Format("2006-01-02 15:04 ")+name { // midnight may have passed
			t.Errorf("in %s, %s is %q", zone, written, shown)
		}
		var old string
		run(t, ctx, chromedp.Evaluate(`{ const p = document.createElement("p"); p.innerHTML = '<time datetime="2026-01-31T23:59:00Z">x</time>'; localize(p); p.textContent }`, &old))
		if want := time.Date(2026, 1, 31, 23, 59, 0, 0, time.UTC).In(location).Format("2006-01-02 15:04 ") + name; old != want {
			t.Errorf("in %s, a time of another day is %q, want %q", zone, old, want)
		}
	}
}

// A browser shows a key that looks like markup as text, and runs no script in it.
func TestNastyKeys(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), tab(t)
	nasty := []string{
		`<script>window.hacked=1</script>`, `"><img src=x onerror=window.hacked=1>`, `' onfocus=window.hacked=1 autofocus x='`, `</title><svg onload=window.hacked=1>`,
		`</textarea><iframe src=javascript:parent.hacked=1>`, "\u202egnp.exe", `<base href=//evil.example>`, `<meta http-equiv=refresh content=0;url=//evil.example>`, `{{.}}${1}`,
	}
	for _, key := range nasty {
		if err := s.limiter.Block(ratelimit.WithActor(t.Context(), key, key), time.Hour, ratelimit.Request{Rule: login, Key: key}); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{"", "rule?name=login", "changes"} {
		run(t, ctx, chromedp.Navigate(s.url+path))
		requireText(t, ctx, `<script>window.hacked`, `onerror=window.hacked=1`)
	}
	run(t, ctx, chromedp.Navigate(s.url+"subject"), look(nasty[0]))
	requireText(t, ctx, "blocked by "+nasty[0])
	var hacked bool
	var at string
	run(t, ctx, chromedp.Evaluate(`"hacked" in window`, &hacked), chromedp.Location(&at))
	if hacked || !strings.HasPrefix(at, s.url) {
		t.Errorf("a key ran as script: %t; the browser is at %s", hacked, at)
	}
}

// Without script, pages show the same, and load themselves again.
func TestWithoutScript(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), tab(t)
	run(t, ctx, emulation.SetScriptExecutionDisabled(true))
	for _, screen := range screens {
		run(t, ctx, chromedp.Navigate(s.url+screen.path))
		var html string
		if screen.name == "subject" {
			run(t, ctx, look("+8613800000007"))
		}
		run(t, ctx, chromedp.OuterHTML("html", &html))
		if !strings.Contains(html, "UTC") {
			t.Errorf("%s: the times have no zone", screen.name)
		}
		if refreshes := strings.Contains(html, `http-equiv="refresh"`); refreshes != (screen.name != "subject" && screen.name != "changes") {
			t.Errorf("%s: it loads itself again: %t", screen.name, refreshes)
		}
	}
}

// The figures follow by themselves, unless the picture is held.
func TestFollows(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), tab(t)
	run(t, ctx, chromedp.Navigate(s.url))
	requireText(t, ctx, "Store up")
	if err := s.limiter.Block(ratelimit.WithActor(t.Context(), "eve", "later"), time.Hour, ratelimit.Request{Rule: sms, Key: "new"}); err != nil {
		t.Fatal(err)
	}
	run(t, ctx, chromedp.Evaluate(`document.querySelector("[data-of^=github]").open = false; document.querySelector("[data-of^=github] summary").focus()`, nil))
	requireText(t, ctx, "eve: later")
	run(t, ctx, chromedp.Evaluate(`var earlier = document.querySelector("footer time").dateTime`, nil),
		chromedp.Poll(`document.querySelector("footer time").dateTime !== earlier && document.activeElement.matches("[data-of^=github]:not([open]) summary")`, nil))
	var sent int
	run(t, ctx, chromedp.Navigate(s.url+"live"), chromedp.Click(".hold"))
	requireText(t, ctx, "Go on")
	run(t, ctx, chromedp.Evaluate(`var sent = 0, send = fetch; fetch = (...of) => { sent++; return send(...of); }; new Promise(done => setTimeout(() => done(sent), 3000))`, &sent, awaited))
	if sent > 0 {
		t.Errorf("a picture that is held was read %d times", sent)
	}
	run(t, ctx, chromedp.Click(".hold"), chromedp.Poll(`sent > 0`, nil))
}

// stuck is a console that stops answering.
type stuck struct {
	http.Handler
	how atomic.Pointer[http.HandlerFunc] // nil while it answers
}

func (s *stuck) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if how := s.how.Load(); how != nil && r.URL.Path == "/live" {
		(*how)(w, r)
		return
	}
	s.Handler.ServeHTTP(w, r)
}

// A page is grey and says so as soon as a refresh fails, however it fails. It recovers when a refresh succeeds.
func TestNoAnswer(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), tab(t, "Failed to load resource")
	console := &stuck{Handler: s.handler}
	server := httptest.NewServer(console)
	t.Cleanup(server.Close)
	grey := `getComputedStyle(document.getElementById("top")).filter`
	run(t, ctx, chromedp.Navigate(server.URL+"/live"))
	for name, how := range map[string]http.HandlerFunc{
		"502":               func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "Bad Gateway", http.StatusBadGateway) },
		"a page of a proxy": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<title>Log in</title>") },
		"another page":      func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/", http.StatusFound) },
		"nothing":           func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"silence":           func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	} {
		requireText(t, ctx, "Decisions/s")
		console.how.Store(&how)
		requireText(t, ctx, "No answer since ")
		var filter string
		if run(t, ctx, chromedp.Evaluate(grey, &filter)); filter != "grayscale(1)" {
			t.Errorf("after %s, the page has the filter %s", name, filter)
		}
		console.how.Store(nil)
		run(t, ctx, chromedp.Poll(grey+` === "none"`, nil))
		if strings.Contains(text(t, ctx), "No answer") {
			t.Errorf("after %s, the page says what is over", name)
		}
	}
	server.CloseClientConnections()
	server.Close()
	requireText(t, ctx, "No answer since ")
}

// Over plain http from another machine, where browsers send no Sec-Fetch-Site, searches and changes work.
func TestPlainHTTP(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), tab(t, "Cross-Origin-Opener-Policy header has been ignored")
	mux := http.NewServeMux()
	mux.Handle("/limits/", http.StripPrefix("/limits", s.handler))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	_, port, _ := strings.Cut(server.Listener.Addr().String(), ":")
	run(t, ctx, chromedp.Navigate("http://limits.test:"+port+"/limits/subject"), look("+8613800000005"),
		chromedp.SetValue("[name=reason]", "ticket 9"), chromedp.SetValue("[name=for]", "2h"), chromedp.Click("button[value=block]"))
	requireText(t, ctx, "Blocked for 2h")
}

// While the store is slow, pages show how slow it is, and everything else.
func TestSlowStore(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), tab(t)
	s.delay.Store(int64(150 * time.Millisecond))
	run(t, ctx, chromedp.Navigate(s.url))
	requireText(t, ctx, "Store up", "Round trip", "ada: ticket 7")
	var trip string
	run(t, ctx, chromedp.Text(".tiles div:nth-child(2) dd", &trip))
	if d, err := time.ParseDuration(trip); err != nil || d < 150*time.Millisecond {
		t.Errorf("the round trip is %s", trip)
	}
	run(t, ctx, chromedp.Navigate(s.url+"subject"), look("+8613800000007"))
	requireText(t, ctx, "blocked for")
}

// If the store hangs or is lost, pages say so, and keep what they have shown.
func TestLostStore(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), tab(t)
	run(t, ctx, chromedp.Navigate(s.url+"rules"))
	requireText(t, ctx, "login")
	s.redis.Pause()
	run(t, ctx, chromedp.Navigate(s.url))
	requireText(t, ctx, "did not answer within 1s")
	run(t, ctx, chromedp.Navigate(s.url+"rules"))
	requireText(t, ctx, "login", "Cannot be read now; this is from")
	s.redis.Resume()
	run(t, ctx, chromedp.Navigate(s.url))
	requireText(t, ctx, "Store up")
}
