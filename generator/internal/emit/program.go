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

// programs are the expressions of a file that expr's machine runs.
type programs struct {
	variables map[*expr.Program]string // that hold them
	declared  []*expr.Program          // one for each variable
}

// addPrograms names the programs of m; equal ones share a variable.
func (p *planned) addPrograms(w *model.Wrapper, m *model.Method, block *names.Scope) {
	begin := len(p.declared)
	for _, r := range m.Rules {
		for _, c := range r.Codes() {
			if c.Program == nil {
				continue
			}
			same := slices.IndexFunc(p.declared[begin:], func(o *expr.Program) bool {
				return o.Source == c.Program.Source && slices.Equal(o.Names, c.Program.Names)
			})
			if same >= 0 {
				p.variables[c.Program] = p.variables[p.declared[begin+same]]
				continue
			}
			p.variables[c.Program] = block.Take(p.variableOf(w, m) + "Expr")
			p.declared = append(p.declared, c.Program)
			p.imports.Add(exprvmPackage)
			for _, h := range c.Program.Hidden {
				p.imports.AddAll(h.Of)
			}
		}
	}
}

// Program implements expr.Names.
func (w *writer) Program(p *expr.Program) string { return w.variables[p] }

// programVars declares the variables of the programs of m, which stand above it.
func (p *planned) programVars(m *model.Method) (vars []*jen.Statement) {
	vm, declared := p.imports.Name(exprvmPackage.Path()), map[string]bool{}
	for _, r := range m.Rules {
		for _, c := range r.Codes() {
			program := c.Program
			if program == nil || declared[p.variables[program]] {
				continue
			}
			declared[p.variables[program]] = true
			args := []string{quote(program.Source)}
			for _, n := range program.Names {
				args = append(args, quote(n))
			}
			value := call(vm+".New", args...)
			for _, h := range program.Hidden {
				see := "func(v " + p.imports.Type(h.Of) + ") any { return v." + h.Name + " }"
				value = call(vm+".Hidden", value, quote(h.Name), see)
			}
			vars = append(vars, jen.Var().Id(p.variables[program]).Op("=").Id(value))
		}
	}
	return vars
}
