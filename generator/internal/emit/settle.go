package emit

import (
	"slices"
	"strconv"

	"github.com/ratelimit-go/ratelimit/generator/internal/expr"
	"github.com/ratelimit-go/ratelimit/generator/internal/model"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// succeeded returns the condition that the call has succeeded. Its results are in variables:
//
//	err == nil
func (w *writer) succeeded(variables []string) string {
	if w.method.Error < 0 {
		return "true"
	}
	return variables[w.method.Error] + " == nil"
}

// pauseAndSettle pauses keys and settles the charge, as far as rules ask for that. The results of the call are in variables:
//
//	taken.Pause(ctx, wrap.RetryAfter(err))
func (w *writer) pauseAndSettle(variables []string, taken string) {
	w.returned = variables
	if w.method.Pauses() {
		delays := w.computed("0", "Delay", taken, func(r *model.Rule) (*expr.Code, string) { return r.Pause, r.Rule.Pause.Value })
		w.add(w.forRules(taken+".Pause", w.context(), delays...))
	}
	if w.method.Settles() {
		w.settle(w.succeeded(variables), taken)
	}
}

// settle settles the charge. A rule with refund=error gives its permits back after an error, so it is settled only if the call has succeeded:
//
//	cost := wrap.Keep
//	if err == nil {
//		cost = int64(answer.Tokens)
//	}
//	taken.Settle(ctx,
//		cost, // tokens
//		int64(answer.Words), // words
//	)
func (w *writer) settle(succeeded, taken string) {
	keep := w.wrap("Keep")
	costs := w.computed(keep, "Cost", taken, func(r *model.Rule) (*expr.Code, string) { return r.Settle, r.Rule.Settle.Value })
	onSuccess := func(r *model.Rule) bool { return r.Declared.Refund == ratelimit.RefundError && succeeded != "true" }
	always := func(r *model.Rule) bool { return r.Settle != nil && !onSuccess(r) }
	if !slices.ContainsFunc(w.method.Rules, always) {
		w.add("if " + succeeded + " {\n" + w.forRules(taken+".Settle", w.context(), costs...) + "\n}")
		return
	}
	for i, r := range w.method.Rules {
		if r.Settle != nil && onSuccess(r) {
			name := w.Take("cost")
			w.add(name+" := "+keep, "if "+succeeded+" {\n"+name+" = "+costs[i]+"\n}")
			costs[i] = name
		}
	}
	w.add(w.forRules(taken+".Settle", w.context(), costs...))
}

// computed returns a value for each rule: that of its expression, or none if it has no expression. The method one of the rules computes an
// expression that may fail, if the rule has charged the call:
//
//	askRules.Cost(ctx, taken, 1, "answer.Tokens", func() int64 { return int64(answer.Tokens) })
func (w *writer) computed(none, one, taken string, of func(*model.Rule) (code *expr.Code, src string)) (values []string) {
	for i, r := range w.method.Rules {
		value := none
		if code, src := of(r); code != nil {
			written := w.write(code)
			if value = written.Value; written.Fails || value == "" {
				value = island(w.rulesOf[w.method]+"."+one, written, w.context(), taken, strconv.Itoa(i), quote(src))
			}
		}
		values = append(values, value)
	}
	return values
}
