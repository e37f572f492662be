package console_test

import (
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/console"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
)

// listenSilently returns the address of a server that accepts connections, and says nothing.
func listenSilently(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(io.Discard, c) }()
		}
	}()
	return l.Addr().String()
}

// pages are all screens, and a form for each change.
func pages() (all []struct {
	path string
	form url.Values
}) {
	add := func(path string, form url.Values) {
		all = append(all, struct {
			path string
			form url.Values
		}{path, form})
	}
	for _, path := range []string{"/", "/rules", "/rule?name=sms", "/refusing", "/live", "/changes"} {
		add(path, nil)
	}
	add("/subject", url.Values{"key": {"ann"}})
	for do := range strings.FieldsSeq("reset give block unblock pause resume set clear undo") {
		add("/change", url.Values{
			"do": {do}, "page": {"subject"}, "key": {"ann"}, "rule": {"sms 1h {phone}"}, "reason": {"ticket 8"}, "for": {"1h"}, "limit": {"5"},
			"permits": {"1"}, "change": {"any"},
		})
	}
	return all
}

// patienceOfReaders is far more than a page waits for a store that says nothing, and less than a client waits by itself.
const patienceOfReaders = 8 * time.Second

// sendWithin sends a request, and fails the test if no answer comes.
func sendWithin(t *testing.T, h http.Handler, path string, form url.Values) (code int, page string) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		method := http.MethodGet
		if form != nil {
			method = http.MethodPost
		}
		code, page = send(h, method, path, form)
	}()
	select {
	case <-done:
	case <-time.After(patienceOfReaders):
		t.Fatalf("%s %s: no page within %s", path, form.Get("do"), patienceOfReaders)
	}
	return code, plain(page)
}

// untrue is what a page must not say of a store that has never answered.
var untrue = []string{
	"All is well", "INFO", "WithStats", "Store up", "No process", "0 rules", "0 changes", "No override", "no limit is 0", "Nobody has changed", "Nothing was decided",
	"Every rule has a key", "No rule has a key", "Nothing is counted", "no statistics", "no bound",
}

// A page does not wait for a server that accepts connections and never replies. It says nothing that nobody was told.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{Addr: listenSilently(t)})
	t.Cleanup(func() { _ = client.Close() })
	h := console.New(ratelimit.New(redisstore.New(client, patient, redisstore.WithStats()), ratelimit.WithPrefix("shop")), console.WithWrites(kim))
	for _, p := range pages() {
		code, text := sendWithin(t, h, p.path, p.form)
		if !strings.Contains(text, "did not answer within") {
			t.Errorf("%s %s does not say that the store is silent: %d %s", p.path, p.form.Get("do"), code, text)
		}
		if p.path == "/change" && code != http.StatusServiceUnavailable {
			t.Errorf("%s: %d", p.form.Get("do"), code)
		}
		for _, claim := range untrue {
			if strings.Contains(text, claim) {
				t.Errorf("%s %s says %q: %s", p.path, p.form.Get("do"), claim, text)
			}
		}
	}
}

// Pages go on showing what they know of a server that hangs, and since when they know it. A form keeps what was typed.
func TestServerThatHangs(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	t.Cleanup(func() { _ = client.Close() })
	l, h := open(t, redisstore.New(client, patient), console.WithWrites(kim))
	if err := l.Block(ratelimit.WithActor(t.Context(), "ada", "abuse"), time.Hour, ratelimit.Request{Rule: sms, Key: "eve"}); err != nil {
		t.Fatal(err)
	}
	known := map[string][]string{
		"/": {"block sms eve blocked", "Processes 1"}, "/rules": {"sms {phone} 10 per hour"}, "/rule?name=sms": {"10 per hour {phone}", "block sms eve"},
		"/refusing": {"block sms eve", "ada: abuse"}, "/changes": {"ada block sms eve"}, "/live": nil, "/subject": nil,
	}
	for path, texts := range known {
		requireText(t, h, path, nil, texts...)
	}
	server.Pause()
	defer server.Resume()
	for _, p := range pages() {
		code, text := sendWithin(t, h, p.path, p.form)
		for _, wanted := range known[p.path] {
			if !strings.Contains(text, wanted) {
				t.Errorf("%s lacks %q: %d %s", p.path, wanted, code, text)
			}
		}
		if !strings.Contains(text, "did not answer within") || strings.Contains(text, "All is well") {
			t.Errorf("%s %s does not say that the store is silent: %d %s", p.path, p.form.Get("do"), code, text)
		}
	}
	form := pages()[len(pages())-1].form
	form.Set("do", "block")
	if _, page := send(h, http.MethodPost, "/change", form); !strings.Contains(page, `name="reason" required maxlength="200" autocomplete="off" value="ticket 8"`) {
		t.Errorf("the form lost the reason: %s", plain(page))
	}
}
