package emit

import (
	"strings"

	"github.com/ratelimit-go/ratelimit/generator/internal/expr"
	"github.com/ratelimit-go/ratelimit/generator/internal/names"
)

// widest is the widest line of a signature, in bytes.
const widest = 120

// longest is the longest line of a sum, of values that are assigned or returned, and of a call that ends with a call, in bytes,
// without indentation.
const longest = widest - 10

// brackets returns declarations in brackets. If the line, which has the text of others besides, gets too long, each declaration gets its own
// line:
//
//	(ctx context.Context, phone string)
func brackets(others string, declarations ...string) string {
	one := strings.Join(declarations, ", ")
	if one == "" || strings.Contains(one, "\n") || names.Width(others+"() {"+one) <= widest {
		return "(" + one + ")"
	}
	return "(\n" + strings.Join(declarations, ",\n") + ",\n)"
}

// call returns a call. If the arguments do not fit on one line, each gets its own line. For example:
//
//	wrap.Take(ctx, s.limits, senderSendRules, phone)
func call(fn string, args ...string) string {
	return fn + "(" + expr.List(fn, args) + ")"
}

// headed returns a call like call, but the arguments in head stay on the first line:
//
//	wrap.Take(ctx, s.limits, senderSendRules,
func headed(fn, head string, args ...string) string {
	if one := call(fn, append([]string{head}, args...)...); !strings.Contains(one, "\n") || !isShort(fn+"("+head+",") {
		return one
	}
	return fn + "(" + head + ",\n" + strings.Join(args, ",\n") + ",\n)"
}

// literal returns a composite literal in the same format:
//
//	wrap.Charge{Key: phone, Cost: 1}
func literal(typ string, fields ...string) string {
	return typ + "{" + expr.List(typ, fields) + "}"
}

// hugging returns a call whose last argument may go on after the line. If the line is too long, each argument gets its own line:
//
//	wrap.Value(docsPutRules, "doc.Owner.Name", func() string {
func hugging(fn string, args ...string) string {
	one := fn + "(" + strings.Join(args, ", ") + ")"
	if len(args) == 0 || isShort(one[strings.LastIndex(fn, "\n")+1:]) {
		return one
	}
	return fn + "(\n" + strings.Join(args, ",\n") + ",\n)"
}

// listed returns values without brackets, and the text after them. If they do not fit on one line, each gets its own line:
//
//	order, err = s.next.Buy
func listed(values []string, after string) string {
	if one := strings.Join(values, ", ") + after; isShort(one) {
		return one
	}
	return strings.Join(values, ",\n") + after
}

// isShort reports whether the first line of a text can stay as it is.
func isShort(text string) bool {
	first, _, _ := strings.Cut(text, "\n")
	return names.Width(first) <= longest
}
