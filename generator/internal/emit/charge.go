package emit

import (
	"go/token"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ratelimit-go/ratelimit/generator/internal/model"
)

// forRules returns a call whose last arguments are for the rules, in their order. If there are several rules, each argument has its own line,
// with the rule that it is for. A long argument stands below its rule. For example:
//
//	wrap.Take(ctx, s.limits, senderSendRules,
//		phone,    // 1 per minute
//		clientIP, // addresses
//	)
func (w *writer) forRules(fn, head string, args ...string) string {
	if len(w.method.Rules) == 1 {
		return headed(fn, head, args...)
	}
	text := fn + "(" + head + ",\n"
	for i, arg := range args {
		which := "// " + brief(w.method.Rules[i])
		line := arg + ", " + which
		if strings.Contains(arg, "\n") || !isShort(line) {
			line = which + "\n" + arg + ","
		}
		text += line + "\n"
	}
	return text + ")"
}

// needsCharge reports whether a rule of m needs more than its subject: a condition, a cost, a limit, an anchor or a member of each call.
func needsCharge(m *model.Method) bool {
	return slices.ContainsFunc(m.Rules, func(r *model.Rule) bool {
		return r.When != nil || r.Rule.Cost.Pos.IsValid() || r.Permits != nil || r.Anchor != nil || len(r.Member) > 0
	})
}

// takes returns the subjects of the rules:
//
//	phone, wrap.Everybody
func (w *writer) takes() []string {
	var args []string
	for _, r := range w.method.Rules {
		args = append(args, w.subject(r))
	}
	return args
}

// subject returns the Go expression for the subject of a rule. A subject that several rules share is computed once:
//
//	key := wrap.Part(tenant, ':') + ":" + phone
func (w *writer) subject(r *model.Rule) string {
	if len(r.Subject) == 0 {
		return w.wrap("Everybody")
	}
	id := "the key " + r.Key.Value
	if known := w.values[id]; known != "" {
		return known
	}
	value := w.joined(r.Subject)
	if !token.IsIdentifier(value) && w.shared(r) {
		name := w.Take("key")
		w.add(name + " := " + value)
		value = name
	}
	w.values[id] = value
	return value
}

// shared reports whether another rule has the same key template as r.
func (w *writer) shared(r *model.Rule) bool {
	return slices.ContainsFunc(w.method.Rules, func(o *model.Rule) bool { return o != r && o.Key.Value == r.Key.Value })
}

// charges returns a charge for each rule. The key of a rule with a condition is computed only if the condition is true:
//
//	charge := wrap.Charge{Skip: true}
//	if amount > 100 {
//		charge = wrap.Charge{Key: phone, Cost: 1}
//	}
func (w *writer) charges() []string {
	var args []string
	for _, r := range w.method.Rules {
		if r.When == nil {
			args = append(args, w.charge(r))
			continue
		}
		name := w.Take("charge")
		w.add(name + " := " + literal(w.wrap("Charge"), "Skip: true"))
		condition := w.code(r.When, w.rulesFor(r), r.Rule.When.Value, "applies")
		w.add("if " + condition + " {\n" + w.inner(func() string { return name + " = " + w.charge(r) }) + "\n}")
		args = append(args, name)
	}
	return args
}

// inner returns the statements of a block that ends with the result of last. The block has variables of its own:
//
//	charge = wrap.Charge{Key: phone, Cost: 1}
func (w *writer) inner(last func() string) string {
	stmts, values, scope := w.stmts, w.values, w.scope
	w.stmts, w.values, w.scope = nil, maps.Clone(values), scope.Inside()
	final := last()
	block := append(w.stmts, final)
	w.stmts, w.values, w.scope = stmts, values, scope
	return strings.Join(block, "\n")
}

// charge returns the composite literal of the charge for one rule:
//
//	wrap.Charge{Key: phone, Cost: int64(len(texts)), Member: to}
func (w *writer) charge(r *model.Rule) string {
	var fields []string
	if s := w.subject(r); len(r.Subject) > 0 {
		fields = append(fields, "Key: "+s)
	}
	cost := "1"
	switch {
	case r.Rule.Cost.Pos.IsValid() && r.Cost == nil:
		cost = strconv.FormatInt(r.Rule.Cost.Int, 10)
	case r.Cost != nil:
		cost = w.code(r.Cost, w.rulesFor(r), r.Rule.Cost.Expr.Value, "cost")
	}
	fields = append(fields, "Cost: "+cost)
	if len(r.Member) > 0 {
		fields = append(fields, "Member: "+w.joined(r.Member))
	}
	if r.Permits != nil {
		fields = append(fields, "Limit: "+w.code(r.Permits, w.rulesFor(r), r.Limit.Expr.Value, "permits"))
	}
	if r.Anchor != nil {
		fields = append(fields, "Anchor: "+w.code(r.Anchor, w.rulesFor(r), r.Rule.Anchor.Value, "anchor"))
	}
	return literal(w.wrap("Charge"), fields...)
}
