package wrap_test

import (
	"context"
	"errors"
	"testing"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

var bucket = ratelimit.Rule{Algorithm: ratelimit.TokenBucket, Limit: 1_000_000, Per: time.Second}

// A call with a subject too many or too few is not made.
func TestAnotherNumberOfSubjects(t *testing.T) {
	l, rules, ctx := ratelimit.New(memstore.New()), wrap.NewRules("p.T.M", bucket, bucket), context.Background()
	for _, subjects := range [][]string{nil, {"a"}, {"a", "b", "c"}} {
		err := wrap.Take(ctx, l, rules, subjects...)
		if _, ok := errors.AsType[*ratelimit.KeyError](err); !ok {
			t.Errorf("%d subjects: got %v", len(subjects), err)
		}
	}
	if err := wrap.Take(ctx, l, rules, "a", "b"); err != nil {
		t.Error(err)
	}
}

func requirePanic(t *testing.T, want string, f func()) {
	t.Helper()
	defer func() {
		if got := recover(); got != want {
			t.Errorf("panic %v, want %q", got, want)
		}
	}()
	f()
}

func TestNilArgumentsPanic(t *testing.T) {
	requirePanic(t, "wrapper of docs.Store: next is nil", func() { wrap.Next[error]("docs.Store", nil) })
	requirePanic(t, "wrapper of docs.Store: next is nil", func() { wrap.Next("docs.Store", (*time.Time)(nil)) })
	requirePanic(t, "wrapper of docs.Store: the limiter is nil", func() { wrap.Limiter("docs.Store", nil) })
	if wrap.Next("docs.Store", 5) != 5 {
		t.Error("another value came back")
	}
}

type limited struct{}

func (limited) RateLimits() []ratelimit.Rule { return nil }

type decorator struct{ inner any }

func (d decorator) Unwrap() any { return d.inner }

type loop struct{}

func (l loop) Unwrap() loop { return l }

func TestIsLimited(t *testing.T) {
	for v, want := range map[any]bool{
		limited{}: true, decorator{limited{}}: true, decorator{decorator{limited{}}}: true,
		5: false, nil: false, decorator{5}: false, decorator{nil}: false, loop{}: false,
	} {
		if got := wrap.IsLimited(v); got != want {
			t.Errorf("%T: got %t", v, got)
		}
	}
}

// The errors of keys name the method, the rule, and what is missing.
func TestKeyErrors(t *testing.T) {
	rules := wrap.NewRules("docs.Store.Put", bucket, ratelimit.Rule{Name: "owner", Limit: 1, Per: time.Minute})
	for want, err := range map[string]error{
		"docs.Store.Put: doc is nil":                          rules.NilKey(0, "doc"),
		"docs.Store.Put: owner: doc is nil":                   rules.NilKey(1, "doc"),
		"docs.Store.Put: owner: clientIP(ctx): there is none": rules.Missing(1, "clientIP(ctx)", "there is none"),
		"docs.Store.Put: owner: f(x): division by zero":       rules.KeyError(1, "f(x)", errors.New("division by zero")),
	} {
		if err.Error() != want {
			t.Errorf("got %q, want %q", err, want)
		}
	}
	if got := rules.Rules(); got[0].Name != "docs.Store.Put" || got[1].Name != "owner" {
		t.Errorf("got %+v", got)
	}
}
