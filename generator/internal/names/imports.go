package names

import (
	"fmt"
	"go/token"
	"go/types"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Imports holds the packages that a file imports. The file has marks in place of their names until Plan chooses these.
type Imports struct {
	self  *types.Package
	marks *Marks
	all   map[string]*imported // by path
}

type imported struct {
	*types.Package
	mark string
	name string // the name in the file, set by Plan
}

// NewImports returns the imports of a file in package self.
func NewImports(self *types.Package, marks *Marks) *Imports {
	return &Imports{self, marks, map[string]*imported{}}
}

// Blank adds a package that is imported for its side effects only.
func (im *Imports) Blank(path string) {
	im.all[path] = &imported{Package: types.NewPackage(path, BaseOf(path)), name: "_"}
}

// variable matches the end of the names of variables that generated files declare.
var variable = regexp.MustCompile(`(Rules?|Expr)[0-9]*$`)

// Plan chooses the names of the packages. The scope block has the package-level names and the type parameters. The names do not
// depend on the order in which the packages were added.
func (im *Imports) Plan(block *Scope) {
	used := NewScope("init", "main", "_")
	for _, path := range slices.Sorted(maps.Keys(im.all)) {
		p := im.all[path]
		hint := p.Name()
		if variable.MatchString(hint) {
			hint += "pkg" // another generated file may declare a variable of that name
		}
		for names := NewScope(); p.name == ""; {
			name := names.Take(hint)
			if !used.Has(name) && !block.Has(name) && types.Universe.Lookup(name) == nil && token.IsIdentifier(name) {
				used.Reserve(name)
				p.name = name
				im.marks.Set(p.mark, name)
			}
		}
	}
}

// The paths of this module, and of its packages that generated code calls.
const (
	Module  = "github.com/ratelimit-go/ratelimit"
	Runtime = Module + "/runtime"
	Wrap    = Runtime + "/wrap"
)

// Name adds a package to the imports, and returns the mark for its name. Variables give way to it. For example:
//
//	ʻ1ʻratelimit
func (im *Imports) Name(p *types.Package) string {
	i := im.all[p.Path()]
	if i == nil {
		i = &imported{Package: p, mark: im.marks.New(p.Name())}
		im.all[p.Path()] = i
	}
	return i.mark
}

// Names returns the names of all packages.
func (im *Imports) Names() (names []string) {
	for _, i := range im.all {
		names = append(names, i.name)
	}
	return names
}

// Declaration returns the import declaration, with the standard library before the other packages. The packages of the module belong to the
// others, even if the path of the module has no dot. A name that a reader can tell from the path is left out. Gofmt sorts the lines. For
// example:
//
//	import (
//		"context"
//
//		"github.com/ratelimit-go/ratelimit/runtime/wrap"
//	)
func (im *Imports) Declaration(module string) string {
	if len(im.all) == 0 {
		return ""
	}
	std, others := "", ""
	for path, i := range im.all {
		line := i.name + " " + strconv.Quote(path) + "\n"
		if i.name == i.Name() && i.name == BaseOf(path) {
			line = strconv.Quote(path) + "\n"
		}
		first, _, _ := strings.Cut(path, "/")
		if strings.Contains(first, ".") || module != "" && (path == module || strings.HasPrefix(path, module+"/")) {
			others += line
		} else {
			std += line
		}
	}
	return "import (\n" + std + "\n" + others + ")"
}

// OfSeveral says what to write if a directive names one of several packages of one name.
func OfSeveral(all []*types.Package) string {
	return fmt.Sprintf("%s is the name of two packages that are imported as _, %s and %s; import the one that is meant under another name, "+
		"which Go code uses, too", all[0].Name(), all[0].Path(), all[1].Path())
}

var version = regexp.MustCompile(`^v[0-9]+$`)

// BaseOf returns the name that a reader expects for a package or program of this path: the last element that is not a version.
func BaseOf(p string) string {
	base := path.Base(p)
	if version.MatchString(base) && strings.Contains(p, "/") {
		base = path.Base(path.Dir(p))
	}
	return base
}

// Type returns the text of a type in this file:
//
//	map[string]*docs.Document
func (im *Imports) Type(t types.Type) string {
	text := types.TypeString(t, func(p *types.Package) string {
		if p.Path() == im.self.Path() {
			return ""
		}
		return im.Name(p)
	})
	return strings.NewReplacer(rawTags(text)...).Replace(text)
}

// tag matches the tag of a struct field in the text of a type. Text in quotes is a tag there, except in the length of an array.
var tag = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// rawTags returns the tags in the text of a type, each followed by the same tag in backquotes.
func rawTags(text string) (pairs []string) {
	for _, quoted := range tag.FindAllString(text, -1) {
		if raw, err := strconv.Unquote(quoted); err == nil && strconv.CanBackquote(raw) {
			pairs = append(pairs, quoted, "`"+raw+"`")
		}
	}
	return pairs
}
