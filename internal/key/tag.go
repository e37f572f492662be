package key

import "strings"

// Tag returns the end of the keys of a rule: its window and, for an unnamed rule of a method, its key template. A rule is unnamed
// if it is called like its method, pkg.Type.Method, or like the type. Without the template, somebody's address could use up
// what a phone number of the same text may do. In requests method is "".
func Tag(name, method, window, template string) string {
	typ := method[:max(0, strings.LastIndexByte(method, '.'))]
	named := func(of string) bool { return name == of || strings.HasSuffix(name, "."+of) } // behind the prefix of a wrapper
	if template == "" || method == "" || !named(method) && !named(typ) {
		return window
	}
	return window + ":" + template
}
