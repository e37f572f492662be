package expr

import (
	"go/scanner"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strconv"
)

// rehearse renders the code once with names of its own, to find out what it refers to.
func (c *Code) rehearse() {
	n := &stage{given: map[string]bool{}}
	w := &writer{names: n, pkg: c.pkg, once: map[*term]operand{}, imports: map[string]*types.Package{}}
	op := c.value.emit(w)
	used := map[string]bool{}
	for _, s := range append(w.stmts, op.text) {
		identifiers(s, func(name string) {
			if !n.given[name] && name != "_" {
				used[name] = true
			}
		})
	}
	c.Uses = slices.Sorted(maps.Keys(used))
	for _, path := range slices.Sorted(maps.Keys(w.imports)) {
		c.Imports = append(c.Imports, w.imports[path])
	}
}

// identifiers calls f with the identifiers in src that stand behind no dot.
func identifiers(src string, f func(string)) {
	var s scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(src))
	s.Init(file, []byte(src), nil, 0)
	for before := token.ILLEGAL; ; {
		_, tok, lit := s.Scan()
		if tok == token.EOF {
			return
		}
		if tok == token.IDENT && before != token.PERIOD {
			f(lit)
		}
		before = tok
	}
}

// stage gives names that occur nowhere else.
type stage struct{ given map[string]bool }

func (s *stage) name() string {
	name := "ʻ" + strconv.Itoa(len(s.given))
	s.given[name] = true
	return name
}

func (s *stage) Import(string) string { return s.name() }
func (s *stage) Param(i int) string {
	name := "ʻp" + strconv.Itoa(i)
	s.given[name] = true
	return name
}
func (s *stage) Local(string) string     { return s.name() }
func (s *stage) Fail(string) string      { return "return" }
func (s *stage) FailErr(string) string   { return "return" }
func (s *stage) Program(*Program) string { return s.name() }
