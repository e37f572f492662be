package check

import (
	"go/constant"
	"go/token"
	"go/types"
	"strconv"
	"strings"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/expr"
	"github.com/ratelimit-go/ratelimit/generator/internal/model"
)

// constant returns the value of code that refers to nothing but constants, or nil.
func (a *analysis) constant(code *expr.Code) constant.Value {
	if code == nil || code.Program != nil {
		return nil
	}
	stmts, text := code.Render(symbols{})
	if len(stmts) > 0 {
		return nil
	}
	v, err := types.Eval(token.NewFileSet(), a.pkg, token.NoPos, text)
	if err != nil {
		return nil
	}
	return v.Value
}

// amount returns what an amount is in every call; code is that of its expression.
func (a *analysis) amount(of annotations.Amount, code *expr.Code, absent int64) (n int64, ok bool) {
	if !of.Pos.IsValid() {
		return absent, true
	}
	if of.Expr.IsZero() {
		return of.Int, true
	}
	if v := a.constant(code); v != nil {
		return constant.Int64Val(constant.ToInt(v))
	}
	return 0, false
}

func (a *analysis) limit(r *model.Rule) (int64, bool) { return a.amount(r.Rule.Limit, r.Permits, 0) }
func (a *analysis) cost(r *model.Rule) (int64, bool)  { return a.amount(r.Rule.Cost, r.Cost, 1) }

// meaning writes code such that two expressions over the same parameters that look alike compute the same; ok is false for
// code that did not compile.
func meaning(code *expr.Code) (text string, ok bool) {
	if code == nil {
		return "", false
	}
	stmts, value := code.Render(symbols{})
	return strings.Join(append(stmts, value), "\n"), true
}

// subject writes a template in the same way. Without islands, it is one budget for everybody.
func (a *analysis) subject(pieces []model.Piece) (text string, everybody, ok bool) {
	var b strings.Builder
	everybody = true
	for _, p := range pieces {
		if p.Expr == "" {
			b.WriteString(strconv.Quote(p.Literal))
			continue
		}
		t, ok := meaning(p.Code)
		if !ok {
			return "", false, false
		}
		everybody = everybody && a.constant(p.Code) != nil
		b.WriteString("{" + t + "}")
	}
	return b.String(), everybody, true
}

// symbols gives what varies between calls names of its own, which no identifier of a package is like.
type symbols struct{}

const parameter = "parameterʻ"

func (symbols) Import(path string) string      { return strconv.Quote(path) }
func (symbols) Param(i int) string             { return parameter + strconv.Itoa(i) }
func (symbols) Local(hint string) string       { return hint + "ʻ" }
func (symbols) Fail(reason string) string      { return "return " + strconv.Quote(reason) }
func (symbols) FailErr(err string) string      { return "return " + err }
func (symbols) Program(p *expr.Program) string { return strconv.Quote(p.Source) }
