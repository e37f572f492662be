package key

import "strings"

// Tag returns the end of the keys of a rule: its window and, for an unnamed rule of a method, its key template. Without the template,
// somebody's address could use up what a phone number of the same text may do. In requests method is "".
func Tag(name, method, window, template string) string {
	if template == "" || method == "" || !IsUnnamed(name, method) {
		return window
	}
	return window + ":" + template
}

// IsUnnamed reports whether a rule of method, pkg.Type.Method, is called like the method or its type, as a rule is whose author gave it
// no name. A wrapper's prefix may stand before that.
func IsUnnamed(name, method string) bool {
	typ := method[:max(0, strings.LastIndexByte(method, '.'))]
	called := func(of string) bool { return name == of || strings.HasSuffix(name, "."+of) }
	return called(method) || called(typ)
}
