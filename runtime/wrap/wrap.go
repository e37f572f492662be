// Package wrap has the functions that generated code calls, and [Keyed] for httplimit and contrib. A program does not call them itself.
package wrap

// Next returns next, the value that a wrapper of typ (pkg.Type) calls. It panics if next is nil.
func Next[T any](typ string, next T) T {
	if IsNil(next) {
		panic("wrapper of " + typ + ": next is nil")
	}
	return next
}

// NeedGuard panics unless a guard of typ (pkg.Type) is there, and was made by its constructor.
func NeedGuard(typ string, there bool) {
	if !there {
		panic("guard of " + typ + ": it is nil, or was not made by its constructor")
	}
}
