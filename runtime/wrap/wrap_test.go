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

// What a call took goes back only if the call failed, and a cost that is not possible is told to observers.
func TestTaken(t *testing.T) {
	var last ratelimit.Event
	l := ratelimit.New(memstore.New(), ratelimit.WithObserver(func(_ context.Context, e *ratelimit.Event) { last = *e }))
	rule := ratelimit.Rule{Limit: 2, Per: time.Hour, Refund: ratelimit.RefundError}
	rules, ctx := wrap.NewRules("p.T.M", rule), context.Background()
	for _, ok := range []bool{true, false} {
		taken, err := wrap.Begin(ctx, l, rules, wrap.Charge{Cost: 1})
		if err != nil {
			t.Fatal(err)
		}
		if taken.RefundUnless(ctx, &ok); (last.Kind == ratelimit.EventRefunded) == ok {
			t.Errorf("after a call of success %t, the last event is %s", ok, last.Kind)
		}
	}
	taken, err := wrap.Begin(ctx, l, rules, wrap.Charge{Cost: 1})
	if err != nil {
		t.Fatal(err)
	}
	taken.Settle(ctx, -2)
	const reason = "found a cost of -2; expected 0 or more"
	wrong, ok := errors.AsType[*ratelimit.RuleError](last.Err)
	if last.Kind != ratelimit.EventSettled || !ok || wrong.Reason != reason {
		t.Errorf("after a wrong cost, the last event is %s, %v", last.Kind, last.Err)
	}
}

func TestIdentity(t *testing.T) {
	ctx := ratelimit.WithUserID(ratelimit.WithClientIP(context.Background(), "192.0.2.1"), "ann")
	if ip, id := wrap.ClientIP(ctx), wrap.UserID(ctx); ip != "192.0.2.1" || id != "ann" {
		t.Errorf("got %q, %q", ip, id)
	}
	if ip, id := wrap.ClientIP(context.Background()), wrap.UserID(context.Background()); ip != "" || id != "" {
		t.Errorf("got %q, %q of nobody", ip, id)
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
