package key

import "strings"

// Tag returns the last part of the keys of a rule: its window and, for an unnamed rule of a method, its key template. Without the
// template, unnamed rules with different templates would share a count if their keys have the same text, such as an address and a name.
// The method is "" for requests of the API.
func Tag(name, method, window, template string) string {
	if template == "" || method == "" || !IsUnnamed(name, method) {
		return window
	}
	return window + ":" + template
}

// IsUnnamed reports whether a rule of method, pkg.Type.Method, has a default name: that of the method or of its type, perhaps after the
// prefix of a wrapper.
func IsUnnamed(name, method string) bool {
	typ := method[:max(0, strings.LastIndexByte(method, '.'))]
	called := func(of string) bool { return name == of || strings.HasSuffix(name, "."+of) }
	return called(method) || called(typ)
}
