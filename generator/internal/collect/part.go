package collect

import (
	"go/types"
	"slices"

	"github.com/ratelimit-go/ratelimit/generator/internal/model"
	"github.com/ratelimit-go/ratelimit/generator/internal/reach"
	"github.com/ratelimit-go/ratelimit/generator/internal/source"
)

// A method of a file with a build constraint goes to an output with that constraint: to the output of the file. The rest of its wrapper goes
// to the output of the type's file. So each of the two outputs needs the other.

// isPart reports whether the methods that f declares are a part of the wrappers whose home is another file.
func (c *collector) isPart(f, home *source.File) bool {
	return f != nil && f != home && c.constraint(f) != "" && c.constraint(f) != c.constraint(home) && (!f.IsTest() || home.IsTest())
}

// constraint returns the build constraint of a file, or "".
func (c *collector) constraint(f *source.File) string {
	text, known := c.constraints[f]
	if !known {
		text = ConstraintOf(f)
		c.constraints[f] = text
	}
	return text
}

// askTogether notes that code is to be generated from the home of a wrapper and from the files of its parts, if that is so for one of them.
func (c *collector) askTogether() {
	for _, s := range c.sources {
		if !s.isAnnotated() {
			continue
		}
		files := []*source.File{s.home}
		for _, d := range c.methodsOf(s, map[*typeSource]bool{}) {
			if c.isPart(d.file, s.home) {
				files = append(files, d.file)
			}
		}
		if slices.ContainsFunc(files, func(f *source.File) bool { return f.Asked }) {
			for _, f := range files {
				f.Asked = true
			}
		}
	}
}

// methodsOf returns the methods that s and the types which it embeds declare.
func (c *collector) methodsOf(s *typeSource, seen map[*typeSource]bool) (all []declaration) {
	if s == nil || seen[s] {
		return nil
	}
	seen[s] = true
	all = slices.Concat(s.fields, s.methods)
	for _, e := range s.embeds {
		all = append(all, c.methodsOf(c.localType(e.Type), seen)...)
	}
	return all
}

// split moves the methods that other builds lack to parts of their wrappers, in the outputs of their own files.
func (c *collector) split(files []*model.File) {
	byPath := map[string]*model.File{}
	for _, f := range files {
		byPath[f.Source] = f
	}
	for _, f := range files {
		for _, w := range slices.Clone(f.Wrappers) {
			parts := map[*source.File]*model.Wrapper{}
			w.Methods = slices.DeleteFunc(w.Methods, func(m *model.Method) bool {
				in := c.fileOf[m]
				if w.Part || !c.isPart(in, c.sourceOf[w.Object].home) || byPath[in.Path] == nil {
					return false
				}
				if parts[in] == nil {
					part := *w
					part.Part, part.Methods, parts[in] = true, nil, &part
					byPath[in.Path].Wrappers = append(byPath[in.Path].Wrappers, &part)
				}
				parts[in].Methods = append(parts[in].Methods, m)
				return true
			})
		}
	}
}

// varies reports whether a signature or a promoted method of the files depends on the build: a file with a constraint, which is not that of the
// method, declares a type in the signature, or the method itself.
func (c *collector) varies(files []*model.File) bool {
	constraints := map[string]string{}
	in := func(o types.Object) string {
		path := c.fset.Position(o.Pos()).Filename
		if _, known := constraints[path]; !known {
			constraints[path] = ConstraintAt(path)
		}
		return constraints[path]
	}
	for _, f := range files {
		declares := func(o types.Object) bool { return o.Pkg() != nil && in(o) != "" && in(o) != f.Constraint }
		for _, m := range f.Methods() {
			named := func(t types.Type) bool {
				n, ok := t.(interface{ Obj() *types.TypeName })
				return ok && declares(n.Obj())
			}
			if recv := m.Signature.Recv(); recv != nil && declares(recv) || reach.Mentions(m.Signature, named) {
				return true
			}
		}
	}
	return false
}

// elsewhere returns the paths of the files of other builds that have methods of asked types, or of types that these embed, as far as the syntax
// tells.
func (c *collector) elsewhere() (all []string) {
	mentioned := map[string]bool{}
	var mention func(name string, s *typeSource)
	mention = func(name string, s *typeSource) {
		if name == "" || mentioned[name] {
			return
		}
		if mentioned[name] = true; s != nil {
			for _, e := range s.embeds {
				mention(source.NameOf(e.Type), c.localType(e.Type))
			}
		}
	}
	for _, s := range c.sources {
		if s.isAnnotated() && s.home.Asked {
			mention(s.spec.Name.Name, s)
		}
	}
	for _, f := range c.pkg.Others {
		has := false
		for _, m := range source.Methods(f.Syntax) {
			has = has || mentioned[source.Receiver(m)] && m.Name.IsExported()
		}
		for _, t := range source.Types(f.Syntax) {
			has = has || mentioned[t.Name.Name]
		}
		if has {
			all = append(all, f.Path)
		}
	}
	return all
}

// isAnnotated reports whether s or one of its fields or methods has a directive.
func (s *typeSource) isAnnotated() bool {
	on := func(d declaration) bool { return carries(d.doc) }
	return carries(s.doc) || slices.ContainsFunc(s.fields, on) || slices.ContainsFunc(s.methods, on)
}
