package emit

import "strings"

// width is the longest line of a list, in bytes, without indentation.
const width = 90

// longest is the longest line of a sum of strings, in bytes, without indentation.
const longest = 110

// call returns a call. If the arguments do not fit on one line, each gets its own line.
func call(fn string, args ...string) string {
	return fn + "(" + list(len(fn), args) + ")"
}

// headed returns a call like call, but the arguments in head stay on the first line.
func headed(fn, head string, args ...string) string {
	if one := call(fn, append([]string{head}, args...)...); !strings.Contains(one, "\n") {
		return one
	}
	return fn + "(" + head + ",\n" + strings.Join(args, ",\n") + ",\n)"
}

// literal returns a composite literal in the same format.
func literal(typ string, fields ...string) string {
	return typ + "{" + list(len(typ), fields) + "}"
}

// list joins the elements in brackets that follow a text of length before.
func list(before int, elements []string) string {
	line := strings.Join(elements, ", ")
	if before+len(line) <= width && !strings.Contains(line, "\n") {
		return line
	}
	return "\n" + strings.Join(elements, ",\n") + ",\n"
}
