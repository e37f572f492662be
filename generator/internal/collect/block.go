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
	b := &block{declared: map[string][]place{}, imported: map[string][]place{}}
	files := slices.Concat(p.Files, p.Others)
	var syntax []*ast.File
	for _, f := range files {
		syntax = append(syntax, f.Syntax)
		for _, name := range source.Names(f.Syntax) {
			b.declared[name.Name] = append(b.declared[name.Name], place{name.Pos(), f})
		}
		for _, spec := range f.Syntax.Imports {
			for _, name := range p.ImportedNames(spec) {
				b.imported[name] = append(b.imported[name], place{spec.Pos(), f})
			}
		}
	}
	b.annotated = source.Annotated(syntax, directive)
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

// taken returns the names that nothing else in the block of the package may have.
func (b *block) taken() []string {
	return slices.AppendSeq(slices.Clone(b.generated), maps.Keys(b.declared))
}
