package load

import "bytes"

// withoutBodies returns Go source with empty lines in place of function bodies. It is faster to parse, and errors in bodies do
// not hide declarations. A body consists of the indented lines between the line that begins a function, or ends its signature,
// and a line that is a single brace. Bodies that gofmt would format differently are kept. So are comments, unless nobody reads them.
// The result overwrites src.
func withoutBodies(src []byte, comments bool) []byte {
	out, body := src[:0], -1 // body is the index in out where a body begins, or -1
	for line := range bytes.Lines(src) {
		text := bytes.TrimRight(line, "\r\n")
		switch {
		case body >= 0 && (len(text) == 0 || text[0] == '\t' || text[0] == ' '):
		case body >= 0 && string(text) == "}" && isWhole(out[body:]):
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

// isWhole reports whether lines neither begin nor end a string or comment of several lines. If they are code, the next line is code too.
func isWhole(lines []byte) bool {
	return bytes.IndexByte(lines, '`') < 0 && !bytes.Contains(lines, []byte("/*")) && !bytes.Contains(lines, []byte("*/"))
}
