package names

import (
	"cmp"
	"go/token"
	"go/types"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Imports are the packages that a file imports, and their names in it. A file is written twice: first to find out what it imports,
// and, when that is planned, with the right names.
type Imports struct {
	self *types.Package
	all  map[string]*imported // by path
}

type imported struct {
	*types.Package
	name  string // in the file, when it is planned
	taken *Scope // names that hide a package where the file needs it
}

// NewImports returns the imports of a file in package self.
func NewImports(self *types.Package) *Imports {
	return &Imports{self, map[string]*imported{}}
}

// Blank adds a package that is imported for its effect alone.
func (im *Imports) Blank(path string) {
	im.all[path] = &imported{types.NewPackage(path, BaseOf(path)), "_", NewScope()}
}

// variable is how the names of the variables end that outputs declare.
var variable = regexp.MustCompile(`(Rules|Expr)[0-9]*$`)

// Plan names the packages. In block is what is declared in the package's block and by type parameters. The order is that
// of the paths, so that the names do not depend on anything but the set.
func (im *Imports) Plan(block *Scope) {
	used := NewScope("init", "main", "_")
	for _, path := range slices.Sorted(maps.Keys(im.all)) {
		p := im.all[path]
		hint := p.Name()
		if variable.MatchString(hint) {
			hint += "pkg" // as another output may have a variable of that name
		}
		for p.name == "" {
			name := p.taken.Take(hint)
			if !used.Has(name) && !block.Has(name) && types.Universe.Lookup(name) == nil && token.IsIdentifier(name) {
				used.Reserve(name)
				p.name = name
			}
		}
	}
}

// The paths of the packages that generated code calls.
const (
	Runtime = "github.com/ratelimit-go/ratelimit/runtime"
	Wrap    = Runtime + "/wrap"
)

// Name returns what the file calls a package, where variables have the given names. The package gets another name than they, so
// that users find the parameters they wrote. Until the names are planned it is the package's own, and the file imports what is
// asked for.
func (im *Imports) Name(p *types.Package, variables ...string) string {
	i := im.all[p.Path()]
	if i == nil {
		i = &imported{Package: p, taken: NewScope()}
		im.all[p.Path()] = i
	}
	i.taken.Reserve(variables...)
	return cmp.Or(i.name, p.Name())
}

// Names returns the names of all packages.
func (im *Imports) Names() (names []string) {
	for _, i := range im.all {
		names = append(names, i.name)
	}
	return names
}

// Spec is a line of an import declaration.
type Spec struct{ Name, Path string } // Name is "" if it is the package's own, as anybody can tell from Path

// Specs returns the lines in two groups, each sorted by path: the standard library, and the others. module is the path of
// the module of the file.
func (im *Imports) Specs(module string) (std, others []Spec) {
	var specs []Spec
	for path, i := range im.all {
		name := i.name
		if name == i.Name() && name == BaseOf(path) {
			name = ""
		}
		specs = append(specs, Spec{name, path})
	}
	slices.SortFunc(specs, func(a, b Spec) int { return cmp.Compare(a.Path, b.Path) })
	for _, s := range specs {
		first, _, _ := strings.Cut(s.Path, "/")
		inModule := module != "" && (s.Path == module || strings.HasPrefix(s.Path, module+"/"))
		if inModule || strings.Contains(first, ".") {
			others = append(others, s)
		} else {
			std = append(std, s)
		}
	}
	return std, others
}

var version = regexp.MustCompile(`^v[0-9]+$`)

// BaseOf returns what a reader expects a package or a program of this path to be called: the last element that is no version.
func BaseOf(p string) string {
	base := path.Base(p)
	if version.MatchString(base) && strings.Contains(p, "/") {
		base = path.Base(path.Dir(p))
	}
	return base
}

// Type returns the text of a type in this file, where variables have the given names.
func (im *Imports) Type(t types.Type, variables ...string) string {
	text := types.TypeString(t, func(p *types.Package) string {
		if p.Path() == im.self.Path() {
			return ""
		}
		return im.Name(p, variables...)
	})
	return strings.NewReplacer(rawTags(text)...).Replace(text)
}
