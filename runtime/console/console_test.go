package console_test

import (
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/console"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
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

// Every screen shows what is declared, what is in force, and what a subject has used.
func TestScreens(t *testing.T) {
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
			requireText(t, h, "/", nil, "All is well", "override sms all keys limit 500", "block sms eve refused", "ada: ticket 7", "Processes")
			requireText(t, h, "/rules", nil, "sms {phone} per hour 10 500")
			requireText(t, h, "/rule?name=sms", nil, "per hour {phone} 10 500 enforce", "limit 500")
			requireText(t, h, "/subject", url.Values{"key": {"ann"}}, "3 of 500", "override of all keys: limit 500")
			requireText(t, h, "/subject", url.Values{"key": {"eve"}}, "blocked for 59 min", "blocked by ada, ticket 7, until")
			requireText(t, h, "/subject", url.Values{"key": {"zoe"}}, "paused by ada, ticket 7, until")
			requireText(t, h, "/subject", url.Values{"key": {"bob"}}, "0 of 500")
			requireText(t, h, "/subject", url.Values{"all": {"1"}}, "Everybody", "0 of 5")
			requireText(t, h, "/changes", nil, "ada block sms eve nothing → refused until", "ada set sms all keys nothing → limit 500 until", "ada pause sms zoe nothing → paused until")
			requireText(t, h, "/live", nil, "Live")
			if code, page := send(h, http.MethodGet, "/rule?name=none", nil); code != http.StatusNotFound || !strings.Contains(page, "No process has declared") {
				t.Errorf("an unknown rule: %d", code)
			}
		})
	}
}

// A subject's page shows when its permits were taken, how many calls wait and until when, and how many run.
func TestSubjectInTime(t *testing.T) {
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
	page := requireText(t, h, "/subject", url.Values{"key": {"ann"}}, "3 permits taken", "calls wait for 1 permit, the first in 29 min", "2 of 4 running")
	requireClean(t, page)
	if strips := strings.Count(page, `class="strip"`); strips != 2 {
		t.Errorf("%d strips", strips)
	}
}

// A subject's page works for a user of the server who may not read the times of permits, and says so.
func TestTimesAreDenied(t *testing.T) {
	client := startRedis(t)
	client.Do(t.Context(), "ACL", "SETUSER", "default", "-lrange")
	l, h := open(t, redisstore.New(client, redisstore.WithTimeout(time.Minute)))
	if _, err := l.Allow(t.Context(), ratelimit.Request{Rule: sms, Key: "ann"}); err != nil {
		t.Fatal(err)
	}
	requireText(t, h, "/subject", url.Values{"key": {"ann"}}, "1 of 10", "When permits were taken cannot be read: ")
}

// Traffic is that of all processes that publish statistics.
func TestTraffic(t *testing.T) {
	l, h := open(t, stores["redis"](t))
	for i := range 20 {
		if _, err := l.Allow(t.Context(), ratelimit.Request{Rule: sms, Key: "ann"}); err != nil {
			t.Fatalf("call %d: %v", i, err)
		}
	}
	requireText(t, h, "/live", nil, "sms per hour", "ann sms", "Sums of 1 process")
	requireText(t, h, "/live?q=none", nil, "No rule matches", "No key matches")
	requireText(t, h, "/rule?name=sms", nil, "Heaviest keys Read", "Key Decisions/s Refused/s ann")
}

// Without statistics, pages say how to turn them on.
func TestNoStatistics(t *testing.T) {
	_, h := open(t, redisstore.New(startRedis(t)))
	for _, path := range []string{"/", "/rules", "/rule?name=sms", "/live"} {
		requireText(t, h, path, nil, "redisstore.WithStats()")
	}
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
			require(422, "write how long it holds", "do", "set", "limit", "1", "for", "")
			require(422, "write how long it holds", "do", "set", "limit", "1", "for", "-1h")
			require(422, "a block needs an end", "do", "block", "for", "forever")
			require(422, "found no change", "do", "set", "for", "1h")
			require(422, "write the limit as a number", "do", "set", "for", "1h", "limit", "many")
			require(422, "the rule is unknown", "do", "block", "for", "1h", "rule", "other 1h {phone}")
			require(422, "expected one of the forms", "do", "drop")
			requireText(t, h, "/changes", nil, "kim clear sms ann factor 2 → nothing ticket 8", "kim reset sms ann – ticket 8")
			page = requireText(t, h, "/changes", nil, "Undo the last change")
			last := html.UnescapeString(regexp.MustCompile(`name="change" value="([^"]*)"`).FindStringSubmatch(page)[1])
			_, page = send(h, http.MethodPost, "/change", url.Values{"page": {"changes"}, "do": {"undo"}, "change": {last}, "reason": {"wrong"}})
			if !strings.Contains(plain(page), "kim undo sms ann nothing → factor 2 wrong") {
				t.Errorf("after an undo:\n%s", plain(page))
			}
			if code, _ := send(h, http.MethodPost, "/change", url.Values{"page": {"changes"}, "do": {"undo"}, "change": {last}, "reason": {"again"}}); code != 422 {
				t.Errorf("undone twice: %d", code)
			}
			requireText(t, h, "/subject", url.Values{"key": {"ann"}}, "0 of 20")
		})
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
			"Content-Security-Policy": "default-src 'none'", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff",
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
		requireClean(t, first(send(h, http.MethodGet, "/rules?q="+url.QueryEscape(text), nil)))
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
		"/rules?q=part":          {"1 to 100 of 250 rules", "part000", `href="?from=100&amp;q=part"`},
		"/rules?q=part&from=100": {"101 to 200 of 250 rules", "part100", `href="?from=0&amp;q=part"`, `href="?from=200&amp;q=part"`},
		"/rules?q=part&from=999": {"201 to 250 of 250 rules", "part249", `href="?from=100&amp;q=part"`},
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

func requireSmall(t *testing.T, what, page string) {
	t.Helper()
	if rows := strings.Count(page, "<tr>"); rows > 130 || len(page) > 60_000 {
		t.Errorf("%s: %d bytes, %d rows", what, len(page), rows)
	}
}

// A store that is lost leaves the last figures on the page, with their age.
func TestLostStore(t *testing.T) {
	server := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr, MaxRetries: -1})
	t.Cleanup(func() { _ = client.Close() })
	_, h := open(t, redisstore.New(client))
	requireText(t, h, "/rules", nil, "sms {phone}")
	server.Stop()
	requireText(t, h, "/", nil, "The store does not answer")
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
