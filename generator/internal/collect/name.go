package collect

import (
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/model"
	"github.com/ratelimit-go/ratelimit/generator/internal/names"
	"github.com/ratelimit-go/ratelimit/generator/internal/source"
)

// name chooses the names of the generated type and its constructor, or of the generated function.
func (c *collector) name(w *model.Wrapper, g annotations.Group, home *source.File) {
	pos, options, of := w.Pos, g.Options(), source.NamesFor(w.Object.Name(), g)
	if arg, ok := options.Arg("name"); ok {
		pos = arg.Value.Pos
	}
	taken := names.NewScope(slices.AppendSeq(slices.Collect(maps.Keys(c.block.declared)), maps.Keys(c.block.imported))...)
	w.RulesFunc = taken.Take(of.Rules, w.Object.Name()+"RateLimits")
	c.declare(w, pos, w.RulesFunc, home)
	if w.Kind == model.Func || w.Kind == model.Fields {
		w.New = of.Limit
		c.declare(w, pos, w.New, home)
		return
	}
	w.Name, w.New = of.Type, of.New
	c.declare(w, pos, w.Name, home)
	c.declare(w, pos, w.New, home)
}

// declare declares a package-level name of w in the output of home. At pos it reports collisions with names in files that a build may have
// together with that output.
func (c *collector) declare(w *model.Wrapper, pos token.Pos, name string, home *source.File) {
	for _, other := range c.names {
		if name == other {
			c.found.Add(pos, "two wrappers would declare %s; name one of them with //ratelimit:%s name=", name, verbOf(w))
		}
	}
	c.names = append(c.names, name)
	for with, places := range map[string][]position{"declaration": c.block.declared[name], "import": c.block.imported[name]} {
		for _, p := range places {
			if at := c.fset.PositionFor(p.pos, false); c.mayMeet(home, p.file) {
				c.found.Add(pos, "the generated %s would collide with the %s in line %d of %s; choose another with //ratelimit:%s name=",
					name, with, at.Line, filepath.Base(at.Filename), verbOf(w))
			}
		}
	}
	if name == "init" || name == "main" && c.pkg.Types.Name() == "main" || types.Universe.Lookup(name) != nil {
		c.found.Add(pos, "a generated type or function cannot be called %s; choose another name", name)
	}
}

// verbOf returns the verb whose argument name= names what is generated for a type.
func verbOf(w *model.Wrapper) string {
	if w.Kind == model.Guard {
		return "guard"
	}
	return "wrap"
}

// mayMeet reports whether a build may have both a file of this build and another file. If other is not part of this build and both
// have constraints, it returns false, as the constraints may exclude each other. A build with both files would report the collision.
func (c *collector) mayMeet(here, other *source.File) bool {
	if slices.Contains(c.pkg.Files, other) {
		return true
	}
	x, y := c.constraint(here), c.constraint(other)
	return y == "" || x == "" && y != "ignore"
}

// scopeOf returns the first part of the names of rules: the path of a package inside its module, or the name of the root package. A
// program in the root has the last element of the module's path, as programs of different modules must not share counts.
func scopeOf(p *source.Package) string {
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

// namesAreFree reports whether the predeclared names that the code of the wrapper needs have Go's own meaning. It reports an error about
// the first that something else hides.
func (c *methods) namesAreFree() bool {
	words := []string{"nil", "true", "false", "int64"}
	if len(c.of.TypeParams) > 0 || slices.ContainsFunc(c.pkg.Files, importsC) {
		words = append(words, "new")
	}
	if c.of.Kind == model.Guard {
		words = append(words, "recover", "panic")
	}
	for _, word := range words {
		if c.from().Redefined(word) {
			c.found.Add(c.of.Pos, "what is generated for %s needs Go's own %s, but another one hides it here", c.object.Name(), word)
			return false
		}
	}
	return true
}

// block holds the names that the files of a package declare or import, in all builds. It comes from the syntax alone, so that
// every build chooses the same names for generated code.
type block struct {
	declared, imported map[string][]position
	annotated          []string            // the types with directives
	generated          []string            // the names that generated code may declare for these types
	methods            map[string][]string // the names of methods, by the types that they are declared on
	passed             map[string]bool     // the names in signatures of methods and func types in files with build constraints
}

// position is the position of a declaration or an import.
type position struct {
	pos  token.Pos
	file *source.File
}

func newBlock(p *source.Package) *block {
	b := &block{declared: map[string][]position{}, imported: map[string][]position{}, methods: map[string][]string{}, passed: map[string]bool{}}
	files := slices.Concat(p.Files, p.Others)
	for _, f := range files {
		for _, name := range source.Names(f.Syntax) {
			b.declared[name.Name] = append(b.declared[name.Name], position{name.Pos(), f})
		}
		if ConstraintOf(f) != "" {
			b.pass(f)
		}
		for _, m := range source.Methods(f.Syntax) {
			b.methods[source.Receiver(m)] = append(b.methods[source.Receiver(m)], m.Name.Name)
		}
		for _, spec := range f.Syntax.Imports {
			for _, name := range p.ImportedNames(spec) {
				b.imported[name] = append(b.imported[name], position{spec.Pos(), f})
			}
		}
	}
	b.passMeant(files)
	for s, of := range toGenerate(p, files) {
		b.annotated = append(b.annotated, s.Name.Name)
		b.generated = append(b.generated, of.Type, of.New, of.Limit, of.Rules)
		for _, name := range []string{names.Upper(s.Name.Name), "_" + s.Name.Name} {
			b.generated = append(b.generated, "handOut"+name, "takeBack"+name)
		}
	}
	return b
}

// pass notes the names in the signatures of the methods and func types of a file.
func (b *block) pass(f *source.File) {
	for _, d := range f.Syntax.Decls {
		ast.Inspect(d, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				return n.Recv != nil
			case *ast.BlockStmt:
				return false
			case *ast.FuncType:
				b.passNames(n)
			}
			return true
		})
	}
}

// passNames notes the names in a node.
func (b *block) passNames(n ast.Node) {
	ast.Inspect(n, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			b.passed[id.Name] = true
		}
		return true
	})
}

// passMeant notes the names in the func types and aliases that are noted already.
func (b *block) passMeant(files []*source.File) {
	for before := -1; before < len(b.passed); {
		before = len(b.passed)
		for _, f := range files {
			for _, spec := range source.Types(f.Syntax) {
				if _, isFunc := spec.Type.(*ast.FuncType); b.passed[spec.Name.Name] && (isFunc || spec.Assign.IsValid()) {
					b.passNames(spec.Type)
				}
			}
		}
	}
}

// taken returns the package-level names that are declared or may be generated.
func (b *block) taken() []string {
	return slices.AppendSeq(slices.Clone(b.generated), maps.Keys(b.declared))
}
