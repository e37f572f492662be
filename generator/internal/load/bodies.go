package load

import "bytes"

// withoutBodies returns Go source with empty lines in place of function bodies. It is faster to parse, and errors in bodies do
// not hide declarations. A body consists of the indented lines between the line that begins a function, or ends its signature,
// and a line that is a single brace. Bodies that gofmt would format differently are kept. So are comments, unless nobody reads them.
func withoutBodies(src []byte, comments bool) []byte {
	out, body := make([]byte, 0, len(src)), -1 // body is the index in out where a body begins, or -1
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
			if body = -1; !comments && bytes.HasPrefix(bytes.TrimLeft(text, "\t "), []byte("//")) && isWhole(text) {
				line = line[len(text):]
			}
		}
		out = append(out, line...)
	}
	return out
}

// opensBody reports whether a line of code is followed by the body of a function.
func opensBody(line []byte) bool {
	return (bytes.HasPrefix(line, []byte("func")) || bytes.HasPrefix(line, []byte(")"))) && bytes.HasSuffix(line, []byte(" {")) &&
		!bytes.HasSuffix(line, []byte("struct {")) && !bytes.HasSuffix(line, []byte("interface {"))
}

// mayBeInBody reports whether a line is empty or indented, and whole. If such a line is code, the next line is code too.
func mayBeInBody(line []byte) bool {
	return (len(line) == 0 || line[0] == '\t' || line[0] == ' ') && isWhole(line)
}

// isWhole reports whether a line neither begins nor ends a string or comment of several lines.
func isWhole(line []byte) bool {
	return bytes.IndexByte(line, '`') < 0 && !bytes.Contains(line, []byte("/*")) && !bytes.Contains(line, []byte("*/"))
}
