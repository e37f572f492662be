package collect

import (
	"go/token"
	"maps"
	"slices"

	"github.com/ratelimit-go/ratelimit/generator/internal/source"
)

// block holds the names that the files of a package declare or import, in all builds. It comes from the syntax alone, so that
// every build chooses the same names for generated code.
type block struct {
	declared, imported map[string][]place
	annotated          []string // the types with directives
	generated          []string // the names that generated code may declare for these types
}

// place is the position of a declaration or an import.
type place struct {
	pos  token.Pos
	file *source.File
}

func newBlock(p *source.Package) *block {
	b := &block{declared: map[string][]place{}, imported: map[string][]place{}}
	files := slices.Concat(p.Files, p.Others)
	for _, f := range files {
		for _, name := range source.Names(f.Syntax) {
			b.declared[name.Name] = append(b.declared[name.Name], place{name.Pos(), f})
		}
		for _, spec := range f.Syntax.Imports {
			for _, name := range p.ImportedNames(spec) {
				b.imported[name] = append(b.imported[name], place{spec.Pos(), f})
			}
		}
	}
	for s, of := range p.ToGenerate(files) {
		b.annotated = append(b.annotated, s.Name.Name)
		b.generated = append(b.generated, of.Type, of.New, of.Limit, of.Rules)
	}
	return b
}

// taken returns the package-level names that are declared or may be generated.
func (b *block) taken() []string {
	return slices.AppendSeq(slices.Clone(b.generated), maps.Keys(b.declared))
}
