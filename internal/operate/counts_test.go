package operate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/operate"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
)

// The error of a change of several counts says in one line how many failed, and how many are done.
func TestErrorsOfSeveralCounts(t *testing.T) {
	t.Parallel()
	take := func(room int, keys string) string {
		l := ratelimit.New(memstore.New(memstore.WithMaxKeys(room)))
		if _, err := l.Allow(t.Context(), ratelimit.Request{Rule: login, Key: "ann"}); err != nil { // the one that there is room for
			t.Fatal(err)
		}
		_, err := operate.New(l, time.Minute).Give(t.Context(), fleet.Actor{By: "kim"}, operate.Target{Rule: "login", Keys: strings.Fields(keys)}, -1)
		return err.Error()
	}
	for keys, want := range map[string]string{
		"bob":                 "login bob: store: ",
		"bob joe":             "2 counts failed: login bob: store: ",
		"ann bob":             "1 of 2 counts failed, and the others are done: login bob: store: ",
		"bob ann joe eve zoe": "4 of 5 counts failed, and the others are done: login bob: store: ",
	} {
		if got := take(1, keys); !strings.HasPrefix(got, want) || strings.Contains(got, "\n") || strings.HasSuffix(got, "; and 1 more") != (keys == "bob ann joe eve zoe") {
			t.Errorf("%s: got %q, want %q", keys, got, want)
		}
	}
}

// The tool has no anchor, so it takes no permits of a window that is not open, and says so.
func TestCountsWithoutAnAnchor(t *testing.T) {
	t.Parallel()
	l := ratelimit.New(memstore.New())
	paid := ratelimit.Request{Rule: ratelimit.Rule{Name: "paid", Key: "{id}", Limit: 5, Every: "1mo"}, Key: "ann", Anchor: time.Now()}
	if _, err := l.Allow(t.Context(), paid); err != nil {
		t.Fatal(err)
	}
	give := func(key string) ([]operate.Given, error) {
		return operate.New(l, time.Minute).Give(t.Context(), fleet.Actor{By: "kim"}, operate.Target{Rule: "paid", Keys: []string{key}}, -1)
	}
	const want = "paid nobody: no window is open, and the tool does not know the anchor of the key: wait for its next call"
	if _, err := give("nobody"); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if all, err := give("ann"); err != nil || len(all) != 1 || all[0].After != 3 {
		t.Errorf("got %+v, error %v", all, err)
	}
}

// What was done and could not be noted is done.
func TestCountsThatCannotBeNoted(t *testing.T) {
	t.Parallel()
	s := open(t)
	l := s.process(nil, login)
	if _, err := l.Allow(t.Context(), ratelimit.Request{Rule: login, Key: "ann"}); err != nil {
		t.Fatal(err)
	}
	s.Do("SET shop.fleet:{shop}:changes text")
	n, err := s.prefix().Reset(t.Context(), fleet.Actor{By: "kim"}, operate.Target{Rule: "login", Keys: []string{"ann"}})
	if n != 1 || err == nil || !strings.HasPrefix(err.Error(), "it is done, but not noted in changes: ") {
		t.Errorf("%d counts, %v", n, err)
	}
}
