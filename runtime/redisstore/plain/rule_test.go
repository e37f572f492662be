package plain

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/engine"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// A call whose rules are all in shadow mode is admitted, even if none of them would admit it.
func TestShadowsThatAllRefuse(t *testing.T) {
	s, one, other := start(t), hourly, yearly
	one.Mode, other.Mode, one.Limit, other.Limit = ratelimit.ModeShadow, ratelimit.ModeShadow, 1, 1
	for i := range 3 {
		d := s.admit(t, ask(one, "k"), ask(other, "k"))
		if want := 2 * min(i, 1); len(d.Violations) != want {
			t.Errorf("call %d: got %+v, want %d refusals", i, d, want)
		}
	}
	call := engine.Call{Claims: []engine.Claim{{Ask: engine.Ask{Mode: engine.Shadow}}}}
	if v := s.store.contended(&call); !v.Admitted || v.At != v.Now || call.Claims[0].Refused {
		t.Errorf("a shadow refuses a call that others were faster than: %+v", v)
	}
	call.Claims = append(call.Claims, engine.Claim{Ask: engine.Ask{Mode: engine.Enforce}})
	if v := s.store.contended(&call); v.Admitted || v.At != 0 || !call.Claims[1].Refused {
		t.Errorf("a call that others were always faster than is admitted: %+v", v)
	}
}

func TestWrongArgumentsPanic(t *testing.T) {
	for want, f := range map[string]func(){
		"plain.New: the client is nil":                               func() { New(nil) },
		"plain.WithTimeout: found 0s, expected a positive duration":  func() { WithTimeout(0) },
		"plain.WithTimeout: found -1s, expected a positive duration": func() { WithTimeout(-time.Second) },
	} {
		func() {
			defer func() {
				if got := recover(); got != want {
					t.Errorf("panic %v, want %q", got, want)
				}
			}()
			f()
		}()
	}
}

// refused returns rules that it cannot do, by the argument that is wrong with them and by what they have.
func refused() map[string]map[string]ratelimit.Rule {
	every := func(per time.Duration, change func(*ratelimit.Rule)) ratelimit.Rule {
		rule := ratelimit.Rule{Name: "r", Limit: 1, Per: per, Algorithm: ratelimit.FixedWindow}
		change(&rule)
		return rule
	}
	hour := func(change func(*ratelimit.Rule)) ratelimit.Rule { return every(time.Hour, change) }
	year := func(change func(*ratelimit.Rule)) ratelimit.Rule {
		rule := yearly
		change(&rule)
		return rule
	}
	bucket := func(change func(*ratelimit.Rule)) ratelimit.Rule {
		return hour(func(r *ratelimit.Rule) {
			r.Algorithm = ratelimit.TokenBucket
			change(r)
		})
	}
	block := func(r *ratelimit.Rule) { r.Block = time.Minute }
	longer := func(r *ratelimit.Rule) { r.Block, r.BlockMax = time.Minute, time.Hour }
	wait := func(r *ratelimit.Rule) { r.Wait = time.Second }
	rules := map[string]map[string]ratelimit.Rule{
		"block": {"fixed": hour(block), "calendar": year(block), "fixed, growing": hour(longer), "calendar, growing": year(longer)},
		"pause": {"fixed": hour(func(r *ratelimit.Rule) { r.Pausable = true })},
		"distinct": {
			"window":   hour(func(r *ratelimit.Rule) { r.Algorithm, r.Distinct = ratelimit.SlidingWindow, "{x}" }),
			"calendar": year(func(r *ratelimit.Rule) { r.Distinct = "{x}" }),
		},
		"wait": {"fixed": hour(wait), "calendar": year(wait)},
		"per": {
			"parts of milliseconds": every(1500*time.Microsecond, func(*ratelimit.Rule) {}),
			"a microsecond":         every(time.Microsecond, func(*ratelimit.Rule) {}),
		},
		"algorithm": {
			"burst":   bucket(func(r *ratelimit.Rule) { r.Burst = 2 }),
			"prepay":  bucket(func(r *ratelimit.Rule) { r.Prepay = true }),
			"warmup":  bucket(func(r *ratelimit.Rule) { r.Warmup = time.Second }),
			"queue":   bucket(func(r *ratelimit.Rule) { r.Queue, r.Wait = 3, time.Second }),
			"slices":  hour(func(r *ratelimit.Rule) { r.Algorithm, r.Slices = ratelimit.SlidingCounter, 7 }),
			"amounts": hour(func(r *ratelimit.Rule) { r.Algorithm, r.Amounts = ratelimit.SlidingWindow, true }),
			"large":   hour(func(r *ratelimit.Rule) { r.Algorithm, r.Limit = ratelimit.SlidingWindow, 1_000_000 }),
		},
	}
	for _, algorithm := range ratelimit.Algorithms() {
		if algorithm != ratelimit.FixedWindow && algorithm != ratelimit.Calendar {
			rules["algorithm"][algorithm.String()] = hour(func(r *ratelimit.Rule) { r.Algorithm = algorithm })
		}
	}
	return rules
}

// decided are rules that it can do, with each field that it knows. A rule of instance scope is not its own.
var decided = []ratelimit.Rule{
	{Name: "fixed", Key: "{k}", Limit: 3, Per: time.Hour, Algorithm: ratelimit.FixedWindow, Mode: ratelimit.ModeShadow, Refund: ratelimit.RefundError,
		OnError: ratelimit.FailOpen, Hash: ratelimit.HashNever, Unreported: true, Message: "Slow down."},
	{Name: "calendar", Limit: 3, Cron: yearly.Cron, TZ: "Asia/Tokyo", Lease: time.Second}, // takes no permits ahead
	{Name: "anchored", Limit: 3, Every: "1mo"},
	{Name: "computed", Computed: true, Per: time.Millisecond, Algorithm: ratelimit.FixedWindow},
	{Name: "local", Limit: 3, Per: time.Hour, Scope: ratelimit.ScopeInstance},
}

// doors returns the ways in which a rule comes in, if one of its arguments is wrong.
func (s *site) doors(t *testing.T, argument string, rule ratelimit.Rule) map[string]func() error {
	ctx, q, one := t.Context(), ask(rule, "k"), wrap.Charge{Key: "k", Cost: 1}
	if rule.Distinct != "" {
		q.Member, one.Member = "m", "m"
	}
	method := wrap.NewRules("p.T.N", hourly, rule)
	doors := map[string]func() error{
		"Check":       func() error { return s.Check(hourly, yearly, rule) },
		"TakeCharges": func() error { return wrap.TakeCharges(ctx, method.On(s.Limiter), method, one, one) },
		"Begin":       func() error { _, err := wrap.Begin(ctx, method.On(s.Limiter), method, one, one); return err },
	}
	if argument == "wait" { // is for generated code: a request does not wait
		return doors
	}
	doors["Allow"] = func() error { _, err := s.Allow(ctx, ask(hourly, "k"), q); return err }
	doors["Peek"] = func() error { _, err := s.Peek(ctx, ask(hourly, "k"), q); return err }
	doors["Reset"] = func() error { _, err := s.Reset(ctx, q); return err }
	doors["Give"] = func() error { return s.Give(ctx, -1, q) }
	if argument == "pause" { // other pauses are settings, for which only the names of rules matter
		doors["Pause"] = func() error { return s.Pause(ctx, time.Minute, q) }
		doors["Resume"] = func() error { return s.Resume(ctx, q) }
	}
	return doors
}

// Each rule that it cannot do is refused wherever it comes in, and nothing is charged.
func TestRulesItCannotDoAreRefused(t *testing.T) {
	s := start(t)
	for argument, rules := range refused() {
		for what, rule := range rules {
			for door, open := range s.doors(t, argument, rule) {
				requireRuleError(t, open(), argument, door, what)
			}
			if _, err := s.Wait(t.Context(), ask(rule, "k")); !errors.As(err, new(*ratelimit.RuleError)) {
				t.Errorf("Wait of %s: got error %v", what, err)
			}
		}
	}
	for _, rule := range []ratelimit.Rule{hourly, yearly} {
		_, err := s.Wait(t.Context(), ask(rule, "k"))
		requireRuleError(t, err, "wait", "Wait", rule.Name)
	}
	if keys := s.client.Keys(t.Context(), "*{k}*").Val(); len(keys) > 0 {
		t.Errorf("refused rules were charged: %q", keys)
	}
	for _, rule := range decided {
		if err := s.Check(rule); err != nil {
			t.Errorf("a rule that it can do: %v", err)
		}
		rules, one := wrap.NewRules("p.T.M", hourly, rule), wrap.Charge{Key: rule.Name, Cost: 1, Limit: 3, Anchor: time.Now()}
		if err := wrap.TakeCharges(t.Context(), rules.On(s.Limiter), rules, one, one); err != nil {
			t.Errorf("a call under a rule that it can do: %v", err)
		}
	}
}

// A new field of rules, or a new kind, is either refused or known. The tables above say which.
func TestEveryFieldIsRefusedOrKnown(t *testing.T) {
	known, wrong := map[string]bool{"Algorithm": true}, map[string]bool{}
	note := func(fields map[string]bool, rule ratelimit.Rule) {
		for _, f := range reflect.VisibleFields(reflect.TypeFor[ratelimit.Rule]()) {
			if f.IsExported() && !reflect.ValueOf(rule).FieldByIndex(f.Index).IsZero() {
				fields[f.Name] = true
			}
		}
	}
	for _, rule := range decided {
		note(known, rule)
	}
	for _, rules := range refused() {
		for _, rule := range rules {
			note(wrong, rule)
		}
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[ratelimit.Rule]()) {
		if f.IsExported() && !known[f.Name] && !wrong[f.Name] {
			t.Errorf("no rule above has the field %s", f.Name)
		}
	}
	s := New(redis.NewClient(&redis.Options{})).(*store)
	for _, kind := range engine.Kinds() {
		argument, _ := s.Unsupported(&engine.Rule{Kind: kind, Per: second}, 0)
		if isKnown := kind == engine.FixedWindow || kind == engine.Calendar || kind == engine.Anchored; isKnown != (argument == "") {
			t.Errorf("%s: refused for %q", kind, argument)
		}
	}
}

// An override that it cannot do leaves the rule as it is.
func TestOverridesItCannotDo(t *testing.T) {
	s := start(t)
	if err := s.Overrides().SetLocal("hourly", ratelimit.Override{Per: 1500 * time.Microsecond}); err != nil {
		t.Fatal(err)
	}
	s.admit(t, ratelimit.Request{Rule: hourly, Key: "k", Cost: 3})
	time.Sleep(2 * time.Millisecond)
	s.refuse(t, ask(hourly, "k"))
	requireRuleError(t, s.Overrides().Err(), "per", "an override", "hourly")
}

func requireRuleError(t *testing.T, err error, argument string, of ...string) {
	t.Helper()
	e, ok := errors.AsType[*ratelimit.RuleError](err)
	if !ok || e.Argument != argument || e.Reason == "" {
		t.Errorf("%q: got error %v, want a *RuleError about %s", of, err, argument)
	}
}
