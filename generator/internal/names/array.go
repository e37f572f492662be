package names

import (
	"go/token"
	"go/types"
	"strconv"
	"strings"
)

// Array is an array whose length is written as in the source: it may differ between systems, where go/types knows a number.
type Array struct {
	Length []Part
	Elem   types.Type
}

// Part is a piece of an expression.
type Part struct {
	Text string
	Of   *types.Package // that declares it and has to be named for it, or nil
}

// Arrays are the arrays whose text is known. Each is an alias of a package of its own, since go/types asks only for the names of
// packages when it writes a type.
type Arrays map[*types.Package]*Array

// Add returns a name for t, which is written as a.
func (as Arrays) Add(t *types.Array, a *Array) types.Type {
	own := types.NewPackage("", "")
	as[own] = a
	name := a.length((*types.Package).Name) + types.TypeString(a.Elem, (*types.Package).Name) // for messages
	o := types.NewTypeName(token.NoPos, own, name, nil)
	own.Scope().Insert(o)
	return types.NewAlias(o, t)
}

// length writes the length in its brackets, with packages by the names that they are given.
func (a *Array) length(name func(*types.Package) string) string {
	var text strings.Builder
	for _, p := range a.Length {
		if p.Of != nil {
			text.WriteString(name(p.Of) + ".")
		}
		text.WriteString(p.Text)
	}
	return "[" + text.String() + "]"
}

// text writes a in this file.
func (im *Imports) text(a *Array) string {
	return a.length(func(p *types.Package) string { return im.local[p.Path()] }) + im.Type(a.Elem)
}

// Type returns the text of a type in this file.
func (im *Imports) Type(t types.Type) string {
	var marks []string
	text := types.TypeString(t, func(p *types.Package) string {
		if p.Path() == im.self.Path() {
			return ""
		}
		if a := im.arrays[p]; a != nil {
			mark := "\x00" + strconv.Itoa(len(marks))
			marks = append(marks, mark+"."+p.Scope().Names()[0], im.text(a))
			return mark
		}
		return im.local[p.Path()]
	})
	return strings.NewReplacer(append(marks, rawTags(text)...)...).Replace(text)
}
