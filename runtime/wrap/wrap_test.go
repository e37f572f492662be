package wrap_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"weak"

	"pgregory.net/rapid"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

var bucket = ratelimit.Rule{Algorithm: ratelimit.TokenBucket, Limit: 1_000_000, Per: time.Second}

// The rules of a method that is added to a type count on limiters that have the type's limits already, and on others.
func TestAdd(t *testing.T) {
	rule := ratelimit.Rule{Limit: 1, Per: time.Hour}
	typ, ctx := wrap.NewType("p.T", wrap.NewRules("p.T.M", rule)), t.Context()
	early := typ.On(ratelimit.New(memstore.New()))
	added := typ.Add(wrap.NewRules("p.T.N", rule))
	for _, limits := range []*wrap.Limits{early, typ.On(ratelimit.New(memstore.New()))} {
		if err := wrap.Take(ctx, added.Of(limits), added, ""); err != nil {
			t.Error(err)
		}
		if err := wrap.Take(ctx, added.Of(limits), added, ""); !errors.Is(err, ratelimit.ErrTooManyRequests) {
			t.Errorf("the second call: %v", err)
		}
	}
	if n := len(typ.Rules()); n != 2 {
		t.Errorf("there are %d rules, expected 2", n)
	}
}

// A call with too many or too few subjects is not made.
func TestAnotherNumberOfSubjects(t *testing.T) {
	l, rules, ctx := ratelimit.New(memstore.New()), wrap.NewRules("p.T.M", bucket, bucket), context.Background()
	for range 2 { // the second call finds counts
		if err := wrap.Take(ctx, rules.On(l), rules, "", ""); err != nil {
			t.Error(err)
		}
	}
	for _, subjects := range [][]string{nil, {""}, {"", "", ""}, {"a"}, {"a", "b", "c"}} {
		err := wrap.Take(ctx, rules.On(l), rules, subjects...)
		if _, ok := errors.AsType[*ratelimit.KeyError](err); !ok {
			t.Errorf("%d subjects: got %v", len(subjects), err)
		}
	}
	if err := wrap.Take(ctx, rules.On(l), rules, "a", "b"); err != nil {
		t.Error(err)
	}
}

// For any number of rules, Take decides like TakeCharges with costs of 1. Each rule counts for its own subject.
func TestTakeIsTakeCharges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules := make([]ratelimit.Rule, rapid.IntRange(1, 6).Draw(t, "rules"))
		for i := range rules {
			algorithm := rapid.SampledFrom([]ratelimit.Algorithm{ratelimit.SlidingWindow, ratelimit.FixedWindow, ratelimit.TokenBucket})
			rules[i] = ratelimit.Rule{
				Name: string(rune('a' + i)), Algorithm: algorithm.Draw(t, "algorithm"), Limit: rapid.Int64Range(1, 3).Draw(t, "limit"), Per: time.Hour,
			}
		}
		noon := func() time.Time { return time.Date(2026, time.March, 2, 12, 0, 0, 0, time.UTC) }
		one, other := ratelimit.New(memstore.New(memstore.WithClock(noon))), ratelimit.New(memstore.New(memstore.WithClock(noon)))
		prepared := wrap.NewRules("p.T.M", rules...)
		for range rapid.IntRange(1, 10).Draw(t, "calls") {
			subjects := rapid.SliceOfN(rapid.SampledFrom([]string{"", "x", "y"}), len(rules), len(rules)).Draw(t, "subjects")
			charges := make([]wrap.Charge, len(rules))
			for i, subject := range subjects {
				charges[i] = wrap.Charge{Key: subject, Cost: 1}
			}
			got := wrap.Take(context.Background(), prepared.On(one), prepared, subjects...)
			want := wrap.TakeCharges(context.Background(), prepared.On(other), prepared, charges...)
			if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
				t.Fatalf("got %v; want %v", got, want)
			}
		}
	})
}

// Observers see which method's key could not be computed. The error comes back as it is.
func TestFailed(t *testing.T) {
	var last ratelimit.Event
	l := ratelimit.New(memstore.New(), ratelimit.WithObserver(func(_ context.Context, e *ratelimit.Event) { last = *e }))
	limits := wrap.NewType("p.T").On(l)
	for method, err := range map[string]error{"p.T.M": &ratelimit.KeyError{Method: "p.T.M", Expr: "x"}, "": errors.New("other")} {
		if got := wrap.Failed(t.Context(), limits, err); got != err || last.Err != err || last.Method != method {
			t.Errorf("%v: got %v; observers see %+v", err, got, last)
		}
	}
}

// A caller's text is shown in a message as it is, or hashed if subjects are.
func TestShown(t *testing.T) {
	rules := wrap.NewRules("p.T.M", ratelimit.Rule{Per: time.Hour})
	plain := rules.On(ratelimit.New(memstore.New()))
	hashed := rules.On(ratelimit.New(memstore.New(), ratelimit.WithSubjectHash(make([]byte, 32))))
	if got := wrap.Shown(plain, "ann"); got != "ann" {
		t.Errorf("got %q", got)
	}
	if got := wrap.Shown(hashed, "ann"); len(got) < 16 || strings.Contains(got, "ann") {
		t.Errorf("got %q of a hashed subject", got)
	}
}

// A charge is refunded only if the call failed. Observers see the error of a settlement with an impossible cost.
func TestTaken(t *testing.T) {
	var last ratelimit.Event
	l := ratelimit.New(memstore.New(), ratelimit.WithObserver(func(_ context.Context, e *ratelimit.Event) { last = *e }))
	rule := ratelimit.Rule{Limit: 2, Per: time.Hour, Refund: ratelimit.RefundError}
	rules, ctx := wrap.NewRules("p.T.M", rule), context.Background()
	for _, ok := range []bool{true, false} {
		taken, err := wrap.Begin(ctx, rules.On(l), rules, wrap.Charge{Cost: 1})
		if err != nil {
			t.Fatal(err)
		}
		if taken.RefundUnless(ctx, &ok); (last.Kind == ratelimit.EventRefunded) == ok {
			t.Errorf("after a call of success %t, the last event is %s", ok, last.Kind)
		}
	}
	taken, err := wrap.Begin(ctx, rules.On(l), rules, wrap.Charge{Cost: 1})
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
	if ip, id := wrap.Must(wrap.ClientIP(ctx)), wrap.Must(wrap.UserID(ctx)); ip != "192.0.2.1" || id != "ann" {
		t.Errorf("got %q, %q", ip, id)
	}
	if ip, id := wrap.OrEmpty(wrap.ClientIP(context.Background())), wrap.OrEmpty(wrap.UserID(context.Background())); ip != "" || id != "" {
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
	requirePanic(t, "limits of docs.Store: the limiter is nil", func() { wrap.NewType("docs.Store").On(nil) })
	requirePanic(t, "guard of docs.Store: it is nil, or was not made by its constructor", func() { wrap.NeedGuard("docs.Store", false) })
	wrap.NeedGuard("docs.Store", true)
	if wrap.Next("docs.Store", 5) != 5 {
		t.Error("another value came back")
	}
}

// A wrapper's rules are known as soon as it is made.
func TestOnRegistersRules(t *testing.T) {
	l := ratelimit.New(memstore.New())
	typ := wrap.NewType("p.T", wrap.NewRules("p.T.M", bucket), wrap.NewRules("p.T.N", ratelimit.Rule{Name: "n", Computed: true, Per: time.Hour}))
	for range 2 {
		typ.On(l)
		if err := l.Check(typ.Rules()...); err != nil {
			t.Fatal(err)
		}
		used, err := l.Rules(t.Context())
		if err != nil || len(used) != 2 {
			t.Fatalf("got %+v, %v", used, err)
		}
		for i, name := range []string{"n", "p.T.M"} {
			if used[i].Name != name || used[i].Computed != (name == "n") {
				t.Errorf("got %+v", used[i])
			}
		}
	}
}

// All wrappers of a type on a limiter share their limits, which go with the limiter.
func TestOnFindsTheLimits(t *testing.T) {
	one, other := wrap.NewType("p.T"), wrap.NewType("p.U")
	l := ratelimit.New(memstore.New())
	limits := one.On(l)
	if one.On(l) != limits || other.On(l) == limits || one.On(ratelimit.New(memstore.New())) == limits {
		t.Error("the limits are not those of one type on one limiter")
	}
	gone := weak.Make(l)
	l, limits = nil, nil
	for range 100 {
		if runtime.GC(); gone.Value() == nil {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Error("a type keeps the limiter")
}

// A type has each rule of its methods once. A rule that is not valid panics.
func TestRulesOfAType(t *testing.T) {
	all := ratelimit.Rule{Name: "p.T", Limit: 5, Per: time.Hour}
	one, other := wrap.NewRules("p.T.A", all, bucket), wrap.NewRules("p.T.B", bucket, all)
	var names []string
	for _, r := range wrap.NewType("p.T", one, other).Rules() {
		names = append(names, r.Name)
	}
	if want := []string{"p.T", "p.T.A", "p.T.B"}; !slices.Equal(names, want) {
		t.Errorf("got %v; want %v", names, want)
	}
	defer func() {
		if _, ok := recover().(*ratelimit.RuleError); !ok {
			t.Error("a rule without a window is valid")
		}
	}()
	wrap.NewRules("p.T.C", ratelimit.Rule{Limit: 1})
}

// withoutClientIP returns the error of clientIP(ctx) for a context without a client IP. withoutUserID returns that of userID(ctx) for a context
// without a user ID.
func withoutClientIP(rules *wrap.Rules) error {
	_, err := wrap.Value(rules, "clientIP(ctx)", func() string { return wrap.Must(wrap.ClientIP(context.Background())) })
	return err
}

func withoutUserID(rules *wrap.Rules) error {
	_, err := wrap.Value(rules, "userID(ctx)", func() string { return wrap.Must(wrap.UserID(context.Background())) })
	return err
}

// The errors of keys name the method, the rule, and what is missing.
func TestKeyErrors(t *testing.T) {
	rules := wrap.NewRules("docs.Store.Put", bucket, ratelimit.Rule{Name: "owner", Key: "{userID(ctx)}", Limit: 1, Per: time.Minute})
	noAddress, noUser := withoutClientIP(rules), withoutUserID(rules)
	for want, err := range map[string]error{
		"docs.Store.Put: r is nil":                                           rules.NilKey("r"),
		"docs.Store.Put: owner: f(x): division by zero":                      rules.Named("owner").KeyError("f(x)", errors.New("division by zero")),
		"docs.Store.Put: clientIP(ctx): the context carries no client IP":    noAddress,
		"docs.Store.Put: owner: userID(ctx): the context carries no user ID": noUser,
	} {
		if err.Error() != want {
			t.Errorf("got %q, want %q", err, want)
		}
	}
	for err, missing := range map[error]bool{noAddress: true, noUser: true, rules.NilKey("r"): false} {
		if e, ok := errors.AsType[*ratelimit.KeyError](err); !ok || e.Missing != missing {
			t.Errorf("%v: missing is not %t", err, missing)
		}
	}
	if got := rules.Rules(); got[0].Name != "docs.Store.Put" || got[1].Name != "owner" {
		t.Errorf("got %+v", got)
	}
}

// If the context carries no identity, one line for each rule says what to do.
func TestMissingIdentityIsLoggedOnce(t *testing.T) {
	var log bytes.Buffer
	l := ratelimit.New(memstore.New(), ratelimit.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	rules := wrap.NewRules("docs.Store.Put",
		ratelimit.Rule{Name: "address", Key: "{clientIP(ctx)}", Limit: 1, Per: time.Minute},
		ratelimit.Rule{Name: "user", Key: "{userID(ctx)}", Limit: 1, Per: time.Minute})
	limits := rules.On(l)
	for range 3 {
		for _, err := range []error{withoutClientIP(rules), withoutUserID(rules)} {
			_ = wrap.Failed(t.Context(), limits, err)
		}
		_ = wrap.Failed(t.Context(), limits, rules.NilKey("r"))
	}
	for _, want := range []string{"the context carries no client IP; ", "rule=address", "the context carries no user ID; ", "rule=user"} {
		if strings.Count(log.String(), want) != 1 {
			t.Errorf("%q is not logged once:\n%s", want, log.String())
		}
	}
	for _, cure := range []string{"ClientIP().Socket()", "ginlimit.Context(c)"} {
		if strings.Count(log.String(), cure) != 2 {
			t.Errorf("a line does not name %s:\n%s", cure, log.String())
		}
	}
	if n := strings.Count(log.String(), "level=WARN"); n != 2 {
		t.Errorf("%d lines are logged:\n%s", n, log.String())
	}
}
