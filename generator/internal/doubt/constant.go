package doubt

import (
	"strconv"
	"strings"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/expr"
	"github.com/ratelimit-go/ratelimit/generator/internal/model"
)

// constant returns the value of code if it is the same in every call, or nil.
func constant(code *expr.Code) any {
	if code == nil {
		return nil
	}
	return code.Constant
}

// differs reports whether there is code whose value depends on the call.
func differs(code *expr.Code) bool { return code != nil && code.Varies }

// limitOf returns the limit of a rule if it is the same in every call.
func limitOf(r *model.Rule) (n int64, ok bool) { return r.Declared.Limit, !r.Declared.Computed }

// costOf returns the cost of a rule if it is the same in every call.
func costOf(r *model.Rule) (n int64, ok bool) {
	switch cost := r.Rule.Cost; {
	case !cost.Pos.IsValid():
		return 1, true
	case cost.Expr.IsZero():
		return cost.Int, true
	}
	i, ok := constant(r.Cost).(int)
	return int64(i), ok
}

// same returns the text of a template if it is the same in every call.
func same(pieces []model.Piece) (text string, ok bool) {
	var b strings.Builder
	for _, p := range pieces {
		text, ok := p.Literal, p.Expr == ""
		if !ok {
			text, ok = constant(p.Code).(string)
		}
		if !ok {
			return "", false
		}
		b.WriteString(text)
	}
	return b.String(), true
}

// subject returns a template as canonical text: two templates of one method with the same text always have the same value.
func subject(pieces []model.Piece) string {
	return written(pieces, func(p model.Piece) string { return p.Code.Text })
}

// written returns a template with other texts of its islands.
func written(pieces []model.Piece, island func(model.Piece) string) string {
	var b strings.Builder
	for _, p := range pieces {
		if p.Expr == "" {
			b.WriteString(strconv.Quote(p.Literal))
		} else {
			b.WriteString("{" + island(p) + "}")
		}
	}
	return b.String()
}

// isIsland compiles text as an expression in a template of m. It reports whether the expression is valid, and whether its value
// depends on the call.
func isIsland(text string, m *model.Method) (right, varies bool) {
	e := annotations.Expr{Text: annotations.Text{Value: text, Pos: m.Pos}}
	code, errs := expr.Compile(e, m.Env, expr.Island)
	return len(errs) == 0, len(errs) == 0 && code.Varies
}
