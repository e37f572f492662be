package emit

import "strings"

// width is how long a line may be, apart from its indentation and from what cannot be broken.
const width = 90

// longest is how long a line of terms may be that are added up.
const longest = 110

// call writes a call. Arguments that do not fit on one line get a line each.
func call(fn string, args ...string) string {
	return fn + "(" + list(len(fn), args) + ")"
}

// headed writes a call in the same way, but the arguments of head stay on the first line.
func headed(fn, head string, args ...string) string {
	if one := call(fn, append([]string{head}, args...)...); !strings.Contains(one, "\n") {
		return one
	}
	return fn + "(" + head + ",\n" + strings.Join(args, ",\n") + ",\n)"
}

// literal writes a composite literal in the same way.
func literal(typ string, fields ...string) string {
	return typ + "{" + list(len(typ), fields) + "}"
}

// list separates what stands in brackets behind something of a length.
func list(behind int, elements []string) string {
	line := strings.Join(elements, ", ")
	if behind+len(line) <= width && !strings.Contains(line, "\n") {
		return line
	}
	return "\n" + strings.Join(elements, ",\n") + ",\n"
}
