package behaviour_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// compare compares the result of a finished call with the model.
func (w *walk) compare(r *running) {
	_, never := errors.AsType[*ratelimit.NeverAdmissibleError](r.err)
	refusal, refused := errors.AsType[*ratelimit.TooManyRequestsError](r.err)
	d, isRequest := r.decision, r.what != "TakeCharges" && r.what != "Begin"
	if refused {
		d = ratelimit.Decision{RetryAfter: refusal.RetryAfter, Violations: refusal.Violations}
		w.retry = refusal.RetryAfter
	}
	never = never || refused && refusal.Never || d.Never
	switch {
	case never != r.want.never:
		w.fail("got error %v", r.err)
	case never:
		return
	case r.err != nil && (!refused || isRequest && r.what != "Wait"):
		w.fail("got error %v", r.err)
	case !isRequest:
		d.Allowed = r.err == nil
	}
	if d.Allowed != r.want.allowed() || d.RetryAfter != micros(r.want.retryAfter) {
		w.fail("got allowed %v, retry after %v", d.Allowed, d.RetryAfter)
	}
	at := r.now
	if d.Allowed {
		at = r.want.at
	}
	if isRequest && !refused && d.At.UnixMicro() != at {
		w.fail("got the time %d", d.At.UnixMicro())
	}
	if r.what == "Reserve" && d.Delay != micros(d.At.UnixMicro()-r.now) {
		w.fail("got a delay of %v", d.Delay)
	}
	want := r.want.violations
	if d.Allowed && isRequest {
		want = r.want.shadows
	}
	if !slices.EqualFunc(d.Violations, want, same) {
		w.fail("violations: got %swant %s", spell(d.Violations), spell(want))
	}
}

// compareHooks compares what the limiter's observers and triggers saw with the model.
func (w *walk) compareHooks(r *running) {
	want := hooks{r.want.shadows, r.want.triggers}
	if r.want.never {
		want.shadows = r.told.shadows
	}
	if r.what == "Peek" {
		want = hooks{}
	}
	if !slices.EqualFunc(r.told.shadows, want.shadows, same) {
		w.fail("shadows: got %swant %s", spell(r.told.shadows), spell(want.shadows))
	}
	if !slices.Equal(r.told.triggers, want.triggers) {
		w.fail("triggers: got %+v, want %+v", r.told.triggers, want.triggers)
	}
}

func same(a, b ratelimit.Violation) bool {
	return a.Rule == b.Rule && a.Key == b.Key && a.Limit == b.Limit && a.Remaining == b.Remaining && a.RetryAfter == b.RetryAfter &&
		a.Running == b.Running
}

func spell(violations []ratelimit.Violation) string {
	var b strings.Builder
	for _, v := range violations {
		fmt.Fprintf(&b, "%s of %q: limit %d, remaining %d, retry after %v\n", v.Rule, v.Key, v.Limit, v.Remaining, v.RetryAfter)
	}
	return b.String()
}

func (o outcome) String() string {
	switch {
	case o.again:
		return fmt.Sprintf("asks again at %d", o.at)
	case o.allowed():
		return fmt.Sprintf("admitted at %d, triggers %+v, shadows %s", o.at, o.triggers, spell(o.shadows))
	}
	return fmt.Sprintf("never %v, retry after %v, violations %s", o.never, micros(o.retryAfter), spell(o.violations))
}
