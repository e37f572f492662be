package collect

import (
	"go/token"
	"strings"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/load"
	"github.com/ratelimit-go/ratelimit/generator/internal/model"
	"github.com/ratelimit-go/ratelimit/generator/internal/names"
)

// name names what is generated for w: a type and its constructor, or one function.
func (c *collector) name(w *model.Wrapper, wrap annotations.Wrap) {
	word := "limited"
	if w.Kind == model.Func || w.Kind == model.Fields {
		word = "limit"
	}
	pos, name := w.Pos, names.Prefixed(word, w.Object.Name())
	if wrap.Name != "" {
		arg, _ := wrap.Arg("name")
		pos, name = arg.Value.Pos, wrap.Name
	}
	if word == "limit" {
		w.New = name
		c.declare(pos, name)
		return
	}
	w.Name, w.New = name, names.Prefixed("new", name)
	c.declare(pos, w.Name)
	c.declare(pos, w.New)
}

// declare takes a name in the package block; pos is where it is chosen.
func (c *collector) declare(pos token.Pos, name string) {
	for _, other := range c.names {
		if name == other {
			c.errorf(pos, "two wrappers would declare %s; name one of them with //ratelimit:wrap name=", name)
		}
	}
	if taken := c.pkg.Types.Scope().Lookup(name); taken != nil && !c.pkg.IsStandIn(taken) {
		at := c.fset.PositionFor(taken.Pos(), false)
		c.errorf(pos, "the generated %s would collide with the one of line %d of %s; choose another with //ratelimit:wrap name=",
			name, at.Line, base(at.Filename))
	}
	c.names = append(c.names, name)
}

func base(path string) string { return path[strings.LastIndexAny(path, `/\`)+1:] }

// scopeOf is the path of a package inside its module, or the name of the module's root package. A program is called like its
// module: two of them must not share their counts.
func scopeOf(p *load.Package) string {
	if p.Module == "" {
		return p.Path
	}
	if inside, ok := strings.CutPrefix(p.Path, p.Module+"/"); ok {
		return inside
	}
	if name := p.Types.Name(); name != "main" {
		return name
	}
	return names.BaseOf(p.Module)
}
