package expr

import (
	"cmp"
	"go/types"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"

	naming "github.com/ratelimit-go/ratelimit/generator/internal/names"
)

// dynamic reports that little is known of a value of type any when generating, and what to write instead. The wanted type may be nil.
func (c *compiler) dynamic(t *term, wanted types.Type) *term {
	hint := c.inFunction(t.node)
	switch {
	case wanted == nil || isDuration(wanted) || isTime(wanted):
	case isText(wanted):
		hint = "write string(...) around it"
	case wanted == whole:
		hint = "write int(...) around it"
	case isNumber(wanted):
		hint = "write int(...) or float(...) around it"
	}
	return c.errorf(start(t.node), "%s may be of any type here; %s", t.said(), hint)
}

// inFunction advises to write a function instead of the expression n.
//
//	write func rank(v any) (int64, error) in this package, and call it here
func (c *compiler) inFunction(n ast.Node) string {
	name := naming.Lower(cmp.Or(source(c.root), source(n)))
	if name == "" || c.env.declares(name) || isFunction(name) || types.Universe.Lookup(name) != nil {
		name = map[Want]string{Island: "keyPart", Message: "shown", Bool: "applies", Cost: "cost", Limit: "limit", Duration: "pause", Moment: "anchor"}[c.wanted]
	}
	var params []string
	ast.Walk(&c.root, visitor(func(n ast.Node) {
		id, ok := n.(*ast.IdentifierNode)
		if !ok || c.lets[id.Value] != nil {
			return
		}
		if i := c.env.index(id.Value); i >= 0 {
			p := c.env.variables()[i]
			if param := p.Name + " " + c.typeName(p.Type); !slices.Contains(params, param) {
				params = append(params, param)
			}
		}
	}))
	return "write func " + name + "(" + strings.Join(params, ", ") + ") (" + c.typeName(resultOf[c.wanted]) + ", error) in this package, and call it here"
}

// The types of package time that results of functions have. The annotated package may not import time.
var (
	duration = timeType("Duration", types.Typ[types.Int64])
	moment   = timeType("Time", types.NewStruct(nil, nil))
	location = timeType("Location", types.NewStruct(nil, nil))
)

func timeType(name string, underlying types.Type) types.Type {
	return types.NewNamed(types.NewTypeName(0, types.NewPackage("time", "time"), name, nil), underlying, nil)
}

// ofTime returns a type of package time as the annotated package knows it, with its methods, or else another one of that name.
func (c *compiler) ofTime(name string, unknown types.Type) types.Type {
	if p := imported(c.env.Package, "time", map[*types.Package]bool{}); p != nil {
		if o := p.Scope().Lookup(name); o != nil {
			return o.Type()
		}
	}
	return unknown
}

// imported returns the package with a path that p imports, directly or not, or nil.
func imported(p *types.Package, path string, seen map[*types.Package]bool) *types.Package {
	if p.Path() == path {
		return p
	}
	if seen[p] {
		return nil
	}
	seen[p] = true
	for _, of := range p.Imports() {
		if found := imported(of, path, seen); found != nil {
			return found
		}
	}
	return nil
}
