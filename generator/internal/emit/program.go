package emit

import (
	"go/types"
	"slices"

	"github.com/dave/jennifer/jen"

	"github.com/ratelimit-go/ratelimit/generator/internal/expr"
	"github.com/ratelimit-go/ratelimit/generator/internal/model"
	"github.com/ratelimit-go/ratelimit/generator/internal/names"
)

var exprvmPackage = types.NewPackage(runtimePackage.Path()+"/exprvm", "exprvm")

// addPrograms names the variables for the expressions of m that expr's virtual machine runs. Equal programs share a variable.
func (p *planned) addPrograms(w *model.Wrapper, m *model.Method, block *names.Scope) {
	for _, r := range m.Rules {
		for _, c := range r.Codes() {
			if c.Program == nil {
				continue
			}
			same := slices.IndexFunc(p.programs[m], func(o *expr.Program) bool {
				return o.Source == c.Program.Source && slices.Equal(o.Names, c.Program.Names)
			})
			if same >= 0 {
				p.programOf[c.Program] = p.programOf[p.programs[m][same]]
				continue
			}
			p.programOf[c.Program] = block.Take(p.variableOf(w, m) + "Expr")
			p.programs[m] = append(p.programs[m], c.Program)
		}
	}
}

// Program implements expr.Names. It returns the variable with a program:
//
//	senderSendExpr
func (w *writer) Program(p *expr.Program) string { return w.programOf[p] }

// programVars declares the variables of the programs of m:
//
//	var senderSendExpr = exprvm.New("first(tags)", "tags")
func (p *planned) programVars(m *model.Method) (vars []*jen.Statement) {
	for _, program := range p.programs[m] {
		args := []string{quote(program.Source)}
		for _, n := range program.Names {
			args = append(args, quote(n))
		}
		vm := p.imports.Name(exprvmPackage)
		value := call(vm+".New", args...)
		for _, h := range program.Hidden {
			see := "func(v " + p.imports.Type(h.Of) + ") any { return v." + h.Name + " }"
			value = call(vm+".Hidden", value, quote(h.Name), see)
		}
		vars = append(vars, jen.Var().Id(p.programOf[program]).Op("=").Id(value))
	}
	return vars
}
