package expr

import (
	"strings"

	naming "github.com/ratelimit-go/ratelimit/generator/internal/names"
)

// width is the longest line that is not broken where it can be, in bytes, without indentation.
const width = 90

// List joins the elements in brackets that follow the text head. If they do not fit on one line, each gets its own line. For
// example:
//
//	phone, doc.Owner
func List(head string, elements []string) string {
	line := strings.Join(elements, ", ")
	if len(elements) == 0 || naming.Width(head+line) <= width && !strings.Contains(line, "\n") {
		return line
	}
	return "\n" + strings.Join(elements, ",\n") + ",\n"
}

// operation puts an operator between its operands. If they do not fit on one line, the right one begins a new line. For example:
//
//	a == b
func operation(left, op, right string) string {
	begin, end := strings.LastIndex(left, "\n")+1, strings.IndexByte(right+"\n", '\n')
	if naming.Width(left[begin:]+op+right[:end]) > width {
		return left + " " + op + "\n" + right
	}
	return left + " " + op + " " + right
}
