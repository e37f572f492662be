package console_test

import (
	"bytes"
	"html"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/console"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
)

// The page of a rule blocks and overrides networks, every screen names them, and Undo brings back what was before.
func TestNetworks(t *testing.T) {
	l, h := open(t, memstore.New(), console.WithWrites(kim))
	_, _ = l.Allow(t.Context(), ratelimit.Request{Rule: sms, Key: "203.0.113.7"})
	change := func(want int, fields url.Values) string {
		t.Helper()
		fields["page"], fields["name"], fields["rule"] = []string{"rule"}, []string{"sms"}, []string{"sms 1h {phone}"}
		fields["for"], fields["reason"] = []string{"1h"}, []string{"one hoster"}
		code, page := send(h, http.MethodPost, "/change", fields)
		if code != want {
			t.Fatalf("%v: %d, want %d: %s", fields, code, want, plain(page))
		}
		return page
	}
	change(http.StatusUnprocessableEntity, url.Values{"do": {"block"}})
	wrong := change(http.StatusUnprocessableEntity, url.Values{"do": {"block"}, "match": {"203.0.113.7/24"}})
	if !regexp.MustCompile(`name="match"[^>]*value="203.0.113.7/24"[^>]*aria-invalid`).MatchString(wrong) {
		t.Errorf("the field is not marked, or forgets what was typed: %s", wrong)
	}
	change(http.StatusOK, url.Values{"do": {"block"}, "match": {"203.0.113.0/24"}})
	change(http.StatusOK, url.Values{"do": {"set"}, "match": {"203.0.0.0/16"}, "limit": {"7"}})
	if err := l.Overrides().Set(ratelimit.WithActor(t.Context(), "kim", "all"), "*", ratelimit.Override{Factor: 2, Until: time.Now().Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	requireText(t, h, "/refusing", nil, "203.0.113.0/24", "one hoster")
	requireText(t, h, "/rule?name=sms", nil, "203.0.113.0/24", "203.0.0.0/16", "* all keys factor=2")
	requireText(t, h, "/subject", url.Values{"key": {"203.0.113.7"}}, "1 of 7", "blocked as 203.0.113.0/24 by kim", "override of 203.0.0.0/16: limit=7", "override of *: factor=2")
	page := change(http.StatusOK, url.Values{"do": {"clear"}, "match": {"203.0.0.0/16"}})
	id := html.UnescapeString(regexp.MustCompile(`name="change" value="([^"]*)"`).FindStringSubmatch(page)[1])
	change(http.StatusOK, url.Values{"do": {"undo"}, "change": {id}})
	requireText(t, h, "/rule?name=sms", nil, "203.0.0.0/16")
	change(http.StatusOK, url.Values{"do": {"unblock"}, "match": {"203.0.113.0/24"}})
	requireText(t, h, "/changes", nil, "unblock sms 203.0.113.0/24", "undo sms 203.0.0.0/16")
	if blocked, err := l.Blocked(t.Context()); err != nil || len(blocked) > 0 {
		t.Errorf("blocked are %v, %v", blocked, err)
	}
}

// Who searches what refuses a rule also finds what refuses it by a glob.
func TestRefusingByGlob(t *testing.T) {
	l, h := open(t, memstore.New())
	_, _ = l.Allow(t.Context(), ratelimit.Request{Rule: sms, Key: "203.0.113.7"})
	if err := l.Block(t.Context(), time.Hour, ratelimit.Request{Rule: ratelimit.Rule{Name: "s*"}, Match: "203.0.113.0/24"}); err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]string{"sms": "block s* 203.0.113.0/24", "MS&kind=block": "block s* 203.0.113.0/24", "call": "Nothing of that kind refuses."} {
		requireText(t, h, "/refusing?q="+query, nil, want)
	}
}

// The page of a glob shows its rules, and changes all of them together.
func TestGlobOfRules(t *testing.T) {
	_, h := open(t, memstore.New(), console.WithWrites(kim))
	requireText(t, h, "/rules?q=s*", nil, "1 rule", "sms {phone}", "Change all rules s* together")
	form := url.Values{"page": {"rule"}, "name": {"s*"}, "rule": {"s*"}, "limit": {"3"}, "reason": {"abuse"}, "for": {"1h"}, "do": {"set"}}
	requireText(t, h, "/change", form, "Set, everywhere", "Rule s* , all keys.", "override s* all keys limit=3", "10 per hour")
	requireText(t, h, "/", nil, "override s* all keys limit=3")
	requireText(t, h, "/subject", url.Values{"key": {"ann"}}, "0 of 3")
	form.Set("do", "clear")
	requireText(t, h, "/change", form, "As declared again")
	requireText(t, h, "/subject", url.Values{"key": {"ann"}}, "0 of 10")
}

// A form of a rule that no process declares any more is answered with one status.
func TestFormOfARuleThatIsGone(t *testing.T) {
	_, h := open(t, memstore.New(), console.WithWrites(kim))
	var log bytes.Buffer
	server := httptest.NewUnstartedServer(h)
	server.Config.ErrorLog = slog.NewLogLogger(slog.NewTextHandler(&log, nil), slog.LevelError)
	server.Start()
	form := url.Values{"page": {"rule"}, "name": {"gone"}, "rule": {"gone 1h "}, "do": {"clear"}, "reason": {"r"}}
	request, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/change", strings.NewReader(form.Encode()))
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Origin", server.URL)
	answer, err := server.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if server.Close(); answer.StatusCode != http.StatusUnprocessableEntity || log.Len() > 0 {
		t.Errorf("%s, and the log has %s", answer.Status, log.String())
	}
}
