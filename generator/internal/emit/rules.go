package emit

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/dave/jennifer/jen"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/model"
	"github.com/ratelimit-go/ratelimit/generator/internal/names"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// ofType is a rule of a type, as some of its methods have it.
type ofType struct {
	*model.Wrapper
	ratelimit.Rule
}

// addShared names the variables for the rules of w that several methods have.
func (p *planned) addShared(w *model.Wrapper, block *names.Scope) {
	if w.Part {
		return
	}
	uses := map[ofType]int{}
	for _, m := range w.Methods {
		for _, r := range m.Rules {
			of := ofType{w, r.Declared}
			if uses[of]++; r.OfType && uses[of] == 2 {
				p.shared = append(p.shared, of)
				p.sharedAs[of] = block.Take(p.begin.Of(w.Object.Name(), "") + "Rule")
			}
		}
	}
}

// sharedVars declares the rules of the type that several methods have:
//
//	var shopRule = ratelimit.Rule{Name: "client", Key: "{clientIP(ctx)}", Limit: 100, Per: time.Minute}
func (w *wrapper) sharedVars() (vars []*jen.Statement) {
	for _, of := range w.shared {
		if of.Wrapper == w.Wrapper {
			vars = append(vars, jen.Var().Id(w.sharedAs[of]).Op("=").Id(w.rule(of.Rule, "")))
		}
	}
	return vars
}

// varsOf declares the variables above methods that are written, which hold what their expressions need, and their rules:
//
//	var senderSendPattern = regexp.MustCompile("^\\+41")
//	var senderSendRules = wrap.NewRules("sms.Sender.Send",
func (w *wrapper) varsOf(methods ...*model.Method) (vars []*jen.Statement) {
	for _, m := range methods {
		if len(m.Rules) > 0 {
			vars = append(append(vars, w.vars[m]...), w.rulesVar(m))
		}
	}
	return vars
}

// rulesVar declares the variable with the rules of m:
//
//	var shopOrderRules = wrap.NewRules("shop.Shop.Order",
//		ratelimit.Rule{Name: "orders", Key: "{userID(ctx)}", Limit: 2, Per: time.Minute},
//		shopRule,
//	)
//
// Those of a part are added to the type:
//
//	var serviceOpenRules = serviceType.Add(wrap.NewRules("shop.Service.Open",
func (w *wrapper) rulesVar(m *model.Method) *jen.Statement {
	var rules []string
	for _, r := range m.Rules {
		rule := w.sharedAs[ofType{w.Wrapper, r.Declared}]
		if rule == "" {
			rule = w.rule(r.Declared, m.Scope)
		}
		rules = append(rules, rule)
	}
	begin, end := "var "+w.rulesOf[m]+" = ", ""
	if w.Part {
		begin, end = begin+w.typeOf[w.Wrapper]+".Add(", ")"
	}
	return jen.Id(headed(begin+w.wrap("NewRules"), quote(m.Scope), rules...) + withCost(m) + end)
}

// withCost notes which rules of m have cost=, by the names that errors show. If all have it, their names are left out:
//
//	.WithCost("input", "output")
func withCost(m *model.Method) string {
	var priced []string
	unnamed := 0
	for _, r := range m.Rules {
		name := r.Declared.Name
		if name == m.Scope {
			if unnamed++; unnamed > 1 {
				name += "#" + strconv.Itoa(unnamed)
			}
		}
		if r.Rule.Cost.Pos.IsValid() {
			priced = append(priced, quote(name))
		}
	}
	switch len(priced) {
	case 0:
		return ""
	case len(m.Rules):
		return ".WithCost()"
	}
	return call(".WithCost", priced...)
}

// typeVar declares the variable with the rules of the type, those of each method:
//
//	var senderType = wrap.NewType("sms.Sender", senderSendRules, senderCallRules)
func (w *wrapper) typeVar() *jen.Statement {
	var rules []string
	for _, m := range w.Methods {
		if len(m.Rules) > 0 {
			rules = append(rules, w.rulesOf[m])
		}
	}
	return jen.Id(headed("var "+w.typeOf[w.Wrapper]+" = "+w.wrap("NewType"), quote(w.Scope), rules...))
}

// rulesFunc declares the function that returns the rules of the type:
//
//	func SenderRules() []ratelimit.Rule {
//		return senderType.Rules()
//	}
func (w *wrapper) rulesFunc() *jen.Statement {
	doc := w.RulesFunc + " returns the rules declared on " + link(w.Object.Name()) + "."
	return comment(wrapped(doc)).Func().Id(w.RulesFunc).Params().Id("[]" + w.ratelimit("Rule")).
		Block(jen.Return(jen.Id(w.typeOf[w.Wrapper] + ".Rules()")))
}

// rule returns a composite literal without zero fields. It leaves out a name that NewRules sets: that of the method. For example:
//
//	ratelimit.Rule{Key: "{phone}", Limit: 1, Per: time.Minute}
func (p *planned) rule(rule ratelimit.Rule, method string) string {
	if rule.Name == method {
		rule.Name = ""
	}
	if rule.TZ != "" && rule.TZ != "UTC" && p.pkg.Name() == "main" { // only programs link the time zones
		p.imports.Blank("time/tzdata")
	}
	var given []string
	for f, value := range reflect.ValueOf(rule).Fields() {
		if f.IsExported() && (!value.IsZero() || f.Name == "Limit" && !rule.Computed) {
			given = append(given, f.Name+": "+p.value(value.Interface()))
		}
	}
	return literal(p.ratelimit("Rule"), given...)
}

// value returns the Go expression for the value of a field of ratelimit.Rule:
//
//	ratelimit.TokenBucket
func (p *planned) value(of any) string {
	switch v := of.(type) {
	case int64, bool:
		return fmt.Sprint(v)
	case string:
		return quote(v)
	case time.Duration:
		return p.duration(v)
	}
	return p.ratelimit(constants[fmt.Sprint(of)])
}

// constants are the constants of package ratelimit by their words in directives.
var constants = func() map[string]string {
	found := map[string]string{}
	for _, arg := range annotations.LookUp("rule").Args {
		for _, w := range arg.Words {
			if w.Const != "" {
				found[w.Text] = w.Const
			}
		}
	}
	return found
}()

// duration returns the Go expression for d, in the largest unit that leaves no fraction, such as:
//
//	10 * time.Minute
func (p *planned) duration(d time.Duration) string {
	n, unit := names.Duration(d)
	name := p.imports.Name(timePackage) + "." + unit
	if n != 1 {
		return strconv.FormatInt(n, 10) + " * " + name
	}
	return name
}

// quote returns a Go string literal, in backquotes if that avoids escapes:
//
//	"{phone}"
func quote(s string) string {
	q := strconv.Quote(s)
	if len(q) > len(s)+2 && strconv.CanBackquote(s) && !strings.Contains(s, "\t") {
		return "`" + s + "`"
	}
	return q
}
