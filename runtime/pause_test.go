package ratelimit_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/limittest"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// A wrapper's call pauses the subjects of its rules, each for its own duration. The later end holds, and a rule without a duration goes on.
func TestPauseAfterACall(t *testing.T) {
	limiter, clock := limittest.New(t)
	far := ratelimit.Rule{Name: "far", Limit: 100, Per: time.Second, Pausable: true}
	near, plain := far, far
	near.Name, plain.Name, plain.Pausable = "near", "plain", false
	rules := wrap.NewRules("p.T.M", far, near, plain)
	ctx := t.Context()
	begin := func() (wrap.Taken, error) {
		return wrap.Begin(ctx, limiter, rules, wrap.Charge{Key: "ann", Cost: 1}, wrap.Charge{Key: "bob", Cost: 1}, wrap.Charge{Key: "eve", Cost: 1})
	}
	one, err := begin()
	if err != nil {
		t.Fatal(err)
	}
	two, err := begin()
	if err != nil {
		t.Fatal(err)
	}
	one.Pause(ctx, time.Minute, 0, time.Hour)
	two.Pause(ctx, 10*time.Second, -time.Second, 0)
	two.Pause(ctx)
	for rule, wants := range map[string]time.Duration{"far ann": time.Minute, "near bob": 0, "plain eve": 0, "far bob": 0} {
		name, key, _ := strings.Cut(rule, " ")
		d, err := limiter.Peek(ctx, ratelimit.Request{Rule: map[string]ratelimit.Rule{"far": far, "near": near, "plain": plain}[name], Key: key})
		if err != nil || d.RetryAfter != wants || d.Allowed != (wants == 0) {
			t.Errorf("%s: got %+v, error %v; want a pause of %s", rule, d, err, wants)
		}
	}
	_, err = begin()
	refusal, ok := errors.AsType[*ratelimit.TooManyRequestsError](err)
	if !ok || refusal.RetryAfter != time.Minute {
		t.Errorf("got %v", err)
	}
	clock.Advance(time.Minute)
	if _, err = begin(); err != nil {
		t.Error(err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	one.Pause(ended, 365*24*time.Hour) // the call's own context may have ended
	d, err := limiter.Peek(ctx, ratelimit.Request{Rule: far, Key: "ann"})
	if err != nil || d.RetryAfter != 30*24*time.Hour {
		t.Errorf("got %+v, error %v; a pause lasts at most 30 days", d, err)
	}
}
