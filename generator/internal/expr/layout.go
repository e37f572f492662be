package expr

import "strings"

// width is the longest line that is not broken where it can be, in bytes, without indentation.
const width = 90

// List joins the elements in brackets that follow a text of length before. If they do not fit on one line, each gets its own line. For
// example:
//
//	phone, doc.Owner
func List(before int, elements []string) string {
	line := strings.Join(elements, ", ")
	if len(elements) == 0 || before+len(line) <= width && !strings.Contains(line, "\n") {
		return line
	}
	return "\n" + strings.Join(elements, ",\n") + ",\n"
}

// operation puts an operator between its operands. If they do not fit on one line, the right one begins a new line. For example:
//
//	a == b
func operation(left, op, right string) string {
	begin, end := strings.LastIndex(left, "\n")+1, strings.IndexByte(right+"\n", '\n')
	if len(left)-begin+len(op)+end > width {
		return left + " " + op + "\n" + right
	}
	return left + " " + op + " " + right
}
