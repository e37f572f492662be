package load

import "bytes"

// withoutBodies returns a Go source with empty lines in place of the bodies of its functions: a parser then has little to do, and
// what is wrong in a body does not keep it from reading the declarations. A body is what gofmt indents between a line that begins a
// function, or ends its signature, and a line with a brace alone. Bodies that are written otherwise stay.
func withoutBodies(src []byte) []byte {
	out, body := make([]byte, 0, len(src)), -1 // where in out a body begins
	for line := range bytes.Lines(src) {
		text := bytes.TrimRight(line, "\r\n")
		switch {
		case body >= 0 && mayBeInBody(text):
		case body >= 0 && string(text) == "}":
			n := bytes.Count(out[body:], []byte("\n"))
			out, body = append(out[:body], bytes.Repeat([]byte("\n"), n)...), -1
		case opensBody(text):
			body = len(out) + len(line)
		default:
			body = -1
		}
		out = append(out, line...)
	}
	return out
}

// opensBody reports whether the body of a function begins behind a line, if it is a line of code.
func opensBody(line []byte) bool {
	return (bytes.HasPrefix(line, []byte("func")) || bytes.HasPrefix(line, []byte(")"))) && bytes.HasSuffix(line, []byte(" {")) &&
		!bytes.HasSuffix(line, []byte("struct {")) && !bytes.HasSuffix(line, []byte("interface {"))
}

// mayBeInBody reports whether a line is empty or indented, and neither begins nor ends a string or a comment of several lines: what
// follows is code if the line is.
func mayBeInBody(line []byte) bool {
	indented := len(line) == 0 || line[0] == '\t' || line[0] == ' '
	return indented && bytes.IndexByte(line, '`') < 0 && !bytes.Contains(line, []byte("/*")) && !bytes.Contains(line, []byte("*/"))
}
