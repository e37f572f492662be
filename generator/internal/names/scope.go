// Package names decides who is called what in a generated file, before any of its text is made: the imports, the
// declarations, and the variables of each function. It knows nothing of rules or wrappers.
package names

import "strconv"

// Scope hands out names that are not taken.
type Scope struct{ taken map[string]bool }

// NewScope returns a scope in which the given names are taken.
func NewScope(taken ...string) *Scope {
	s := &Scope{taken: map[string]bool{}}
	s.Reserve(taken...)
	return s
}

// Reserve takes names, whether they are free or not.
func (s *Scope) Reserve(names ...string) {
	for _, n := range names {
		s.taken[n] = true
	}
}

// Has reports whether name is taken.
func (s *Scope) Has(name string) bool { return s.taken[name] }

// Take takes the first of the hints that is free, or else the last one with a number behind it.
func (s *Scope) Take(hints ...string) string {
	name := ""
	for _, name = range hints {
		if !s.taken[name] {
			s.taken[name] = true
			return name
		}
	}
	for i := 2; ; i++ {
		if n := name + strconv.Itoa(i); !s.taken[n] {
			s.taken[n] = true
			return n
		}
	}
}
