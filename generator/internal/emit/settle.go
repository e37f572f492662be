package emit

import (
	"slices"

	"github.com/ratelimit-go/ratelimit/generator/internal/model"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// refunds reports whether a rule of m gives its permits back when the call fails. A guard learns of failures by an error result alone. Its
// methods have no fallbacks, which methods of wrappers without an error result have.
func refunds(m *model.Method) bool {
	return (m.Error >= 0 || m.Fallback != nil) && slices.ContainsFunc(m.Rules, func(r *model.Rule) bool { return r.Declared.Refund == ratelimit.RefundError })
}

// releases reports whether a rule of m releases its permits when the call ends.
func releases(m *model.Method) bool {
	return slices.ContainsFunc(m.Rules, func(r *model.Rule) bool { return r.Declared.Releases() })
}

// pauses reports whether a rule of m may pause its key after the call.
func pauses(m *model.Method) bool {
	return slices.ContainsFunc(m.Rules, func(r *model.Rule) bool { return r.Pause != nil })
}

// looksBack reports whether the rules of m do something when the wrapped call is over.
func looksBack(m *model.Method) bool { return refunds(m) || settles(m) || releases(m) || pauses(m) }

// settles reports whether a rule of m computes its cost after the call.
func settles(m *model.Method) bool { return slices.ContainsFunc(m.Rules, settlesAfterSuccess) }

func settlesAfterSuccess(r *model.Rule) bool { return r.Settle != nil }

// settlesAfterFailure reports whether r also computes its cost after a call that failed.
func settlesAfterFailure(r *model.Rule) bool {
	return r.Settle != nil && r.Declared.Refund != ratelimit.RefundError
}

// begin asks the limiter and makes the wrapped call. If the call fails, rules with refund=error give their permits back. The other rules
// with settle= settle their cost in any case, and those with pause= pause their keys. Rules that count calls that run give their permits back
// when the method returns. For example:
//
//	taken, err := wrap.Begin(ctx, a.limiter, askRules, wrap.Charge{Key: user, Cost: 500})
//	if err != nil {
//		return nil, err
//	}
//	ok := false
//	defer taken.RefundUnless(ctx, &ok)
//	answer, err := a.next.Ask(ctx, user)
//	ok = err == nil
//	return answer, err
func (w *writer) begin() {
	err := ""
	if w.method.Error >= 0 {
		err = w.results[w.method.Error]
	}
	if isBlank(err) {
		err = w.err
	}
	taken := w.asksToBegin(err)
	if releases(w.method) {
		w.add(w.release(taken)...)
	}
	if !refunds(w.method) && !settles(w.method) && !pauses(w.method) && w.method.Hold == nil {
		w.add(w.forward())
		return
	}
	succeeded := "true"
	if w.method.Error >= 0 {
		succeeded = err + " == nil"
	}
	if !refunds(w.method) {
		w.callAndSettle(err, succeeded, taken)
		return
	}
	ok := w.Take("ok")
	w.add(ok+" := false", "defer "+taken+".RefundUnless("+w.context()+", &"+ok+")")
	w.callAndSettle(err, succeeded, taken, ok+" = "+succeeded)
}

// asksToBegin asks the limiter, and returns the variable with the charge. The error goes to err:
//
//	taken, err := wrap.Begin(ctx, a.limiter, askRules, wrap.Charge{Key: user, Cost: 500})
func (w *writer) asksToBegin(err string) (taken string) {
	asked := w.asked(w.wrap("Begin"), w.charges)
	taken = w.Take("taken")
	w.add(taken+", "+err+" := "+asked, "if "+err+" != nil {\n"+w.refusal(err)+"\n}")
	return taken
}

func (w *writer) add(stmts ...string) { w.stmts = append(w.stmts, stmts...) }

// callAndSettle makes the wrapped call, adds the statements in noted, lets a result hold permits, pauses, settles the charge, and
// returns the results:
//
//	answer, err := a.next.Ask(ctx, user)
//	ok = err == nil
//	return answer, err
func (w *writer) callAndSettle(err, succeeded, taken string, noted ...string) {
	variables, assign := w.resultVariables(err)
	leave := "return " + listed(w.limitedResults(variables), "")
	if len(variables) == 0 {
		w.add(w.forward())
		leave = "return"
	} else {
		w.add(hugging(listed(variables, " "+assign+" "+w.target), w.arguments(w.method.Signature.Variadic())...))
	}
	w.add(noted...)
	w.keep(variables, func(result string) string { return result })
	w.pauseAndSettle(variables, succeeded, taken, leave)
	if len(variables) > 0 {
		w.add(leave)
	}
}

// pauseAndSettle pauses keys and settles the charge, as far as rules ask for that. The results of the call are in variables:
//
//	taken.Pause(ctx, 0, wrap.RetryAfter(err))
func (w *writer) pauseAndSettle(variables []string, succeeded, taken, leave string) {
	w.returned, w.values = variables, map[string]string{} // the call may have changed values
	if pauses(w.method) {
		w.add(w.pause(taken))
	}
	if settles(w.method) {
		w.err = w.Take("settleErr")
		w.add(w.settlement(succeeded, taken, leave)...)
	}
}

// settlement returns the statements that settle the charge:
//
//	if err == nil {
//		taken.Settle(ctx, answer.Tokens)
//	}
func (w *writer) settlement(succeeded, taken, leave string) []string {
	always, never := true, true // whether a rule is settled after a failure
	for _, r := range w.method.Rules {
		if r.Settle != nil {
			always = always && settlesAfterFailure(r)
			never = never && !settlesAfterFailure(r)
		}
	}
	after := w.settled(settlesAfterSuccess, taken, leave)
	switch {
	case always || succeeded == "true":
		return []string{after}
	case never:
		return []string{"if " + succeeded + " {\n" + after + "\n}"}
	}
	failed := w.settled(settlesAfterFailure, taken, leave)
	return []string{"if " + succeeded + " {\n" + after + "\n} else {\n" + failed + "\n}"}
}

// settled returns the statements that settle the rules that wanted selects. If an expression fails, the charge and the results stay as they
// are:
//
//	taken.Settle(ctx, wrap.Keep, answer.Tokens)
func (w *writer) settled(wanted func(*model.Rule) bool, taken, leave string) string {
	ctx := w.context()
	return w.inner(func() string {
		args := []string{ctx}
		for _, r := range w.method.Rules {
			if !wanted(r) {
				args = append(args, w.wrap("Keep"))
				continue
			}
			w.fail = func(err string) string { return call(taken+".SettleFailed", ctx, err) + "\n" + leave }
			args = append(args, w.value(r.Settle, w.rulesFor(r), r.Rule.Settle.Value, "cost"))
		}
		return call(taken+".Settle", args...)
	})
}

// pause returns the statement that pauses the keys of the rules with pause=. A rule whose duration cannot be computed pauses nothing:
//
//	taken.Pause(ctx, 0, wrap.RetryAfter(err))
func (w *writer) pause(taken string) string {
	args := []string{w.context()}
	for _, r := range w.method.Rules {
		if r.Pause == nil {
			args = append(args, "0")
			continue
		}
		written := r.Pause.Write(w)
		if written.Fails || written.Value == "" {
			written.Value = hugging(w.wrap("Delay"), w.rulesFor(r), quote(r.Rule.Pause.Value), closure(written))
		}
		args = append(args, written.Value)
	}
	return call(taken+".Pause", args...)
}
