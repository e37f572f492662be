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

// Imports are the packages that a file imports, and their names in it.
type Imports struct {
	self     *types.Package
	packages map[string]*types.Package
	local    map[string]string          // names by path, when they are planned
	avoid    map[string]map[string]bool // names that hide a package where the file needs it, by path
	blank    []string                   // paths that are imported for their effect
}

// NewImports returns the imports of a file in package self.
func NewImports(self *types.Package) *Imports {
	return &Imports{
		self: self, packages: map[string]*types.Package{},
		local: map[string]string{}, avoid: map[string]map[string]bool{},
	}
}

// Add adds a package.
func (im *Imports) Add(p *types.Package) {
	if p.Path() != im.self.Path() {
		im.packages[p.Path()] = p
	}
}

// Blank adds a package that is imported for its effect alone.
func (im *Imports) Blank(path string) {
	if !slices.Contains(im.blank, path) {
		im.blank = append(im.blank, path)
	}
}

// AddAll adds the packages that the text of the types names, and returns their paths.
func (im *Imports) AddAll(ts ...types.Type) []string {
	var paths []string
	for _, t := range ts {
		types.TypeString(t, func(p *types.Package) string {
			im.Add(p)
			paths = append(paths, p.Path())
			return p.Name()
		})
	}
	return paths
}

// Avoid says that the package of this path is needed where the names are taken by variables. The package gets another name,
// so that users find the parameters they wrote.
func (im *Imports) Avoid(path string, names ...string) {
	if im.avoid[path] == nil {
		im.avoid[path] = map[string]bool{}
	}
	for _, n := range names {
		im.avoid[path][n] = true
	}
}

// variable is how the names of the variables end that outputs declare.
var variable = regexp.MustCompile(`(Rules|Expr)[0-9]*$`)

// Plan names the packages. In block is what is declared in the package's block and by type parameters. The order is that
// of the paths, so that the names do not depend on anything but the set.
func (im *Imports) Plan(block *Scope) {
	used := NewScope("init", "main", "_")
	for _, p := range slices.Sorted(maps.Keys(im.packages)) {
		hint := im.packages[p].Name()
		if variable.MatchString(hint) {
			hint += "pkg" // as another output may have a variable of that name
		}
		free := NewScope()
		for n := range im.avoid[p] {
			free.Reserve(n)
		}
		for {
			name := free.Take(hint)
			if !used.Has(name) && !block.Has(name) && types.Universe.Lookup(name) == nil && token.IsIdentifier(name) {
				used.Reserve(name)
				im.local[p] = name
				break
			}
		}
	}
}

// The paths of the packages that generated code calls.
const (
	Runtime = "github.com/ratelimit-go/ratelimit/runtime"
	Wrap    = Runtime + "/wrap"
)

// Name returns the name of an imported package.
func (im *Imports) Name(path string) string { return im.local[path] }

// Names returns the names of all packages.
func (im *Imports) Names() []string { return slices.Collect(maps.Values(im.local)) }

// Spec is a line of an import declaration.
type Spec struct{ Name, Path string } // Name is "" if it is the package's own, as anybody can tell from Path

// Specs returns the lines in two groups, each sorted by path: the standard library, and the others. module is the path of
// the module of the file.
func (im *Imports) Specs(module string) (std, others []Spec) {
	var specs []Spec
	for p, name := range im.local {
		if name == im.packages[p].Name() && name == BaseOf(p) {
			name = ""
		}
		specs = append(specs, Spec{name, p})
	}
	for _, p := range im.blank {
		if im.packages[p] == nil {
			specs = append(specs, Spec{"_", p})
		}
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

// Type returns the text of a type in this file.
func (im *Imports) Type(t types.Type) string {
	text := types.TypeString(t, func(p *types.Package) string {
		if p.Path() == im.self.Path() {
			return ""
		}
		return im.local[p.Path()]
	})
	return strings.NewReplacer(rawTags(text)...).Replace(text)
}
