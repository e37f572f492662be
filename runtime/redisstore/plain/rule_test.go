package plain

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

func TestShadowAndTrigger(t *testing.T) {
	server := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr, ReadTimeout: patience})
	t.Cleanup(func() { _ = client.Close() })
	var fired []ratelimit.Trigger
	l := ratelimit.New(New(client, WithTimeout(patience)), ratelimit.WithTrigger(func(_ context.Context, t ratelimit.Trigger) { fired = append(fired, t) }))
	shadow, trigger := hourly, hourly
	shadow.Name, shadow.Mode = "shadow", ratelimit.ModeShadow
	trigger.Name, trigger.Mode = "trigger", ratelimit.ModeTrigger
	for _, call := range [][]ratelimit.Request{
		{ask(shadow, "k")}, {ask(trigger, "k")}, {ask(shadow, "m"), ask(trigger, "m")},
	} {
		fired = nil
		for i := range 5 {
			d, err := l.Allow(context.Background(), call...)
			if err != nil || !d.Allowed {
				t.Fatalf("%+v, error %v", d, err)
			}
			if want := i >= 3 && call[0].Rule.Mode == ratelimit.ModeShadow; (d.Violations != nil) != want {
				t.Errorf("call %d: the shadow reports %+v, want a report: %v", i+1, d.Violations, want)
			}
		}
		if want := call[len(call)-1].Rule.Mode == ratelimit.ModeTrigger; (len(fired) == 1 && fired[0].Used == 3) != want {
			t.Errorf("fired: %+v, want once: %v", fired, want)
		}
	}
}

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
	call := engine.Call{Claims: []engine.Claim{{Mode: engine.Shadow}}}
	if v := s.store.contended(&call); !v.Admitted || v.At != v.Now || call.Claims[0].Refused {
		t.Errorf("a shadow refuses a call that others were faster than: %+v", v)
	}
	call.Claims = append(call.Claims, engine.Claim{Mode: engine.Enforce})
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

// A rule in shadow mode that can never admit a call is not charged, and says what is left, alone and together with another rule.
func TestShadowOfWhatIsNeverAdmitted(t *testing.T) {
	s, shadow := start(t), hourly
	shadow.Name, shadow.Mode = "shadow", ratelimit.ModeShadow
	never := ratelimit.Request{Rule: shadow, Key: "k", Cost: hourly.Limit + 1}
	unseen := never
	unseen.Key = "unseen"
	s.admit(t, unseen)
	if keys := s.client.Keys(t.Context(), "*{unseen}*").Val(); len(keys) > 0 {
		t.Errorf("a refused call opens the window %s", keys)
	}
	s.admit(t, ask(shadow, "k"))
	for _, call := range [][]ratelimit.Request{{never}, {never, ask(hourly, "k")}, {ask(hourly, "k"), never}} {
		d := s.admit(t, call...)
		if len(d.Violations) != 1 || !d.Violations[0].Never || d.Violations[0].Remaining != hourly.Limit-1 {
			t.Errorf("got %+v", d)
		}
	}
}

// A rule in shadow mode does not reduce what an UpTo call takes. If it has fewer permits left, it reports how many.
func TestShadowOfACallUpTo(t *testing.T) {
	s, shadow := start(t), hourly
	shadow.Name, shadow.Mode = "shadow", ratelimit.ModeShadow
	for used := range int64(2) {
		q := ratelimit.Request{Rule: shadow, Key: "k", Cost: hourly.Limit + 1, UpTo: true}
		d := s.admit(t, q)
		if d.Taken != q.Cost || len(d.Violations) != 1 {
			t.Fatalf("%d used: got %+v", used, d)
		}
		if v := d.Violations[0]; v.Remaining != hourly.Limit-used || (v.RetryAfter > 0) != (used > 0) {
			t.Errorf("%d used: got %+v", used, d)
		}
		s.admit(t, ask(shadow, "k"))
	}
}

func TestRulesItCannotDoAreRefused(t *testing.T) {
	s := start(t)
	local := ratelimit.Rule{Name: "local", Limit: 1, Per: time.Hour, Scope: ratelimit.ScopeInstance}
	tests := map[string]ratelimit.Rule{
		"algorithm": {Limit: 1, Per: time.Hour},
		"block":     {Limit: 1, Cron: "@daily", Block: time.Minute},
		"distinct":  {Limit: 1, Cron: "@daily", Distinct: "{x}"},
		"wait":      {Limit: 1, Cron: "@daily", Wait: time.Second},
		"per":       {Limit: 1, Per: 1500 * time.Microsecond, Algorithm: ratelimit.FixedWindow},
	}
	for _, algorithm := range []ratelimit.Algorithm{ratelimit.TokenBucket, ratelimit.LeakyBucket, ratelimit.SlidingCounter} {
		tests["algorithm "+algorithm.String()] = ratelimit.Rule{Limit: 1, Per: time.Hour, Algorithm: algorithm}
	}
	for argument, rule := range tests {
		argument, _, _ = strings.Cut(argument, " ")
		rule.Name = "r"
		one := wrap.Charge{Key: "k", Cost: 1, Member: "m"}
		err := wrap.TakeCharges(context.Background(), s.Limiter, wrap.NewRules("p.T.N", hourly, rule), one, one)
		requireRuleError(t, err, argument)
		requireRuleError(t, s.Check(hourly, yearly, rule), argument)
		if rule.Wait == 0 { // Wait is for generated code: a request does not wait
			_, err := s.Allow(context.Background(), ask(hourly, "k"), ratelimit.Request{Rule: rule, Key: "k", Member: "m"})
			requireRuleError(t, err, argument)
		}
	}
	_, err := s.Wait(context.Background(), ask(hourly, "k"))
	requireRuleError(t, err, "wait")
	if keys := s.server.Do("KEYS *"); keys != "" {
		t.Errorf("refused rules were charged: %q", keys)
	}
	if err := s.Check(hourly, yearly, local); err != nil {
		t.Errorf("rules that it can do: %v", err)
	}
	s.admit(t, ask(hourly, "k"), ask(local, "k"))
}

func requireRuleError(t *testing.T, err error, argument string) {
	t.Helper()
	e, ok := errors.AsType[*ratelimit.RuleError](err)
	if !ok || e.Argument != argument || e.Reason == "" {
		t.Errorf("got error %v, want a *RuleError about %s", err, argument)
	}
}

// Usage so far still counts after a limit is changed, as in other stores. With another window the count starts from zero.
func TestOverrides(t *testing.T) {
	s := start(t)
	another := on(t, s.server, s.server.Addr)
	s.admit(t, ratelimit.Request{Rule: hourly, Key: "k", Cost: 3})
	s.refuse(t, ask(hourly, "k"))
	if err := s.Overrides().Set(context.Background(), "hourly", ratelimit.Override{Limit: new(int64(5))}); err != nil {
		t.Fatal(err)
	}
	s.admit(t, ask(hourly, "k"))
	four := ratelimit.Request{Rule: hourly, Key: "k", Cost: 4} // more than the rule's own limit
	for _, err := another.Allow(context.Background(), four); err != nil; _, err = another.Allow(context.Background(), four) {
		if !errors.As(err, new(*ratelimit.NeverAdmissibleError)) {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond) // until the limiter has read the override
	}
	another.admit(t, ask(hourly, "k"))
	another.refuse(t, ask(hourly, "k"))
	if err := s.Overrides().SetLocal("hourly", ratelimit.Override{Limit: new(int64(2))}); err != nil {
		t.Fatal(err)
	}
	s.refuse(t, ask(hourly, "k"))
	if err := s.Overrides().SetLocal("hourly", ratelimit.Override{Per: 2 * time.Hour}); err != nil {
		t.Fatal(err)
	}
	s.admit(t, ask(hourly, "k"))
}
