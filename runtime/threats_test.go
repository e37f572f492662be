package ratelimit_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
)

// A cost that a caller chooses makes no store keep more than one entry for the call, if the limit is large.
func TestLargeCostsAreSmall(t *testing.T) {
	limiter := ratelimit.New(memstore.New(memstore.WithMaxBytes(10_000)))
	rule := ratelimit.Rule{Name: "upload", Limit: 1_000_000_000, Per: time.Hour}
	for range 100 {
		allow(t, limiter, ratelimit.Request{Rule: rule, Cost: 10_000_000})
	}
}

// A key of more than 64 KiB is refused before it is copied, escaped or hashed.
func TestLongKeysAreNotCopied(t *testing.T) {
	const size = 64 << 20
	limiter := ratelimit.New(memstore.New(), ratelimit.WithSubjectHash([]byte(strings.Repeat("s", 32))))
	request := ratelimit.Request{Rule: ratelimit.Rule{Name: "s", Limit: 5, Per: time.Hour}, Key: strings.Repeat("k ", size/2)}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := limiter.Allow(context.Background(), request)
	runtime.ReadMemStats(&after)
	if _, wrong := errors.AsType[*ratelimit.KeyError](err); !wrong {
		t.Errorf("got %v", err)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > size/2 {
		t.Errorf("%d bytes were allocated for a key of %d", n, size)
	}
}

// A key or a member of more than 64 KiB is an error. It is neither hashed nor sent to the store.
func TestLongKeysAndMembers(t *testing.T) {
	limiter := ratelimit.New(memstore.New())
	simple := ratelimit.Rule{Name: "s", Limit: 5, Per: time.Hour}
	distinct := ratelimit.Rule{Name: "d", Distinct: "{who}", Limit: 5, Per: time.Hour}
	for _, c := range []struct {
		rule        ratelimit.Rule
		key, member int
		fits        bool
	}{
		{simple, 64 << 10, 0, true}, {simple, 64<<10 + 1, 0, false},
		{distinct, 64 << 10, 64 << 10, true}, {distinct, 64<<10 + 1, 1, false}, {distinct, 1, 64<<10 + 1, false},
	} {
		_, err := limiter.Allow(context.Background(), ratelimit.Request{
			Rule: c.rule, Key: strings.Repeat("k", c.key), Member: strings.Repeat("m", c.member),
		})
		if _, wrong := errors.AsType[*ratelimit.KeyError](err); wrong == c.fits || c.fits && err != nil {
			t.Errorf("a key of %d and a member of %d bytes: got %v", c.key, c.member, err)
		}
	}
}
