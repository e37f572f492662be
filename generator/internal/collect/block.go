package collect

import (
	"go/ast"
	"go/token"
	"maps"
	"slices"

	"github.com/ratelimit-go/ratelimit/generator/internal/names"
	"github.com/ratelimit-go/ratelimit/generator/internal/source"
)

// block is what the files of a package declare, and what they import by names, in all builds. It is known by syntax alone, so that
// each build chooses the same names.
type block struct {
	declared, imported map[string][]place
	annotated          map[string]bool // the types that carry directives
	generated          []string        // what may be declared for them
}

// place is where a name stands.
type place struct {
	pos  token.Pos
	file *source.File
}

func newBlock(p *source.Package) *block {
	b := &block{declared: map[string][]place{}, imported: map[string][]place{}, annotated: map[string]bool{}}
	files := slices.Concat(p.Files, p.Others)
	for _, f := range files {
		for name := range source.Names(f.Syntax) {
			b.declared[name.Name] = append(b.declared[name.Name], place{name.Pos(), f})
		}
		for _, spec := range f.Syntax.Imports {
			for _, name := range p.ImportedNames(spec) {
				b.imported[name] = append(b.imported[name], place{spec.Pos(), f})
			}
		}
	}
	b.findAnnotated(files)
	for _, f := range files {
		for doc, spec := range source.Types(f.Syntax) {
			if b.annotated[spec.Name.Name] {
				wrapper := source.WrapperOf(doc, spec)
				b.generated = append(b.generated, wrapper, names.Prefixed("new", wrapper), names.Prefixed("limit", spec.Name.Name), spec.Name.Name+"Rules")
			}
		}
	}
	return b
}

// findAnnotated finds the types with a directive on them, inside of them, or on their methods.
func (b *block) findAnnotated(files []*source.File) {
	aliased := map[string]string{} // types by their aliases, which receivers may be called by
	for _, f := range files {
		for doc, spec := range source.Types(f.Syntax) {
			if carries(doc) || carriesInside(spec) {
				b.annotated[spec.Name.Name] = true
			}
			if spec.Assign.IsValid() {
				aliased[spec.Name.Name] = source.NameOf(spec.Type)
			}
		}
	}
	for _, f := range files {
		for m := range source.Methods(f.Syntax) {
			for name := source.Receiver(m); carries(m.Doc) && name != "" && !b.annotated[name]; name = aliased[name] {
				b.annotated[name] = true
			}
		}
	}
}

// carriesInside reports whether a method or a field of a type carries a directive.
func carriesInside(spec *ast.TypeSpec) bool {
	found := false
	ast.Inspect(spec.Type, func(n ast.Node) bool {
		if f, ok := n.(*ast.Field); ok {
			found = found || carries(f.Doc)
		}
		return !found
	})
	return found
}

// taken returns the names that nothing else in the block of the package may have.
func (b *block) taken() []string {
	return slices.AppendSeq(slices.Clone(b.generated), maps.Keys(b.declared))
}
