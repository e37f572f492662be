// Package names chooses the names in a generated file: those of imports, declarations and variables. It knows nothing of rules or
// wrappers.
package names

import "strconv"

// Scope returns names that are not taken.
type Scope struct {
	taken map[string]bool
	outer *Scope // its names are taken, too; may be nil
}

// NewScope returns a scope in which the given names are taken.
func NewScope(taken ...string) *Scope {
	return (*Scope)(nil).Inside(taken...)
}

// Inside returns a scope in which the names of s and the given names are taken.
func (s *Scope) Inside(taken ...string) *Scope {
	inner := &Scope{taken: map[string]bool{}, outer: s}
	inner.Reserve(taken...)
	return inner
}

// Reserve marks names as taken, whether they are free or not.
func (s *Scope) Reserve(names ...string) {
	for _, n := range names {
		s.taken[n] = true
	}
}

// Has reports whether name is taken.
func (s *Scope) Has(name string) bool { return s != nil && (s.taken[name] || s.outer.Has(name)) }

// Take takes and returns the first free hint. If none is free, it appends a number to the last one.
func (s *Scope) Take(hints ...string) string {
	name := ""
	for _, name = range hints {
		if !s.Has(name) {
			s.taken[name] = true
			return name
		}
	}
	for i := 2; ; i++ {
		if n := name + strconv.Itoa(i); !s.Has(n) {
			s.taken[n] = true
			return n
		}
	}
}
