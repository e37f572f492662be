package load

import "bytes"

// withoutBodies returns Go source with empty lines in place of function bodies. It is faster to parse, and errors in bodies do
// not hide declarations. A body consists of the indented lines between the line that begins a function, or ends its signature,
// and a line that is a single brace. Bodies that gofmt would format differently are kept. So are comments, unless nobody reads them.
// The result overwrites src.
func withoutBodies(src []byte, comments bool) []byte {
	out, body := src[:0], -1 // body is the index in out where a body begins, or -1
	inside := byte(0)
	for line := range bytes.Lines(src) {
		text, before := bytes.TrimRight(line, "\r\n"), inside
		inside = leftOpen(inside, text)
		switch {
		case before != 0:
			body = -1
		case body >= 0 && (len(text) == 0 || text[0] == '\t' || text[0] == ' '):
		case body >= 0 && string(text) == "}" && isWhole(out[body:]):
			n := bytes.Count(out[body:], []byte("\n"))
			out, body = append(out[:body], bytes.Repeat([]byte("\n"), n)...), -1
		case opensBody(text):
			body = len(out) + len(line)
		default:
			if body = -1; !comments && bytes.HasPrefix(bytes.TrimLeft(text, "\t "), []byte("//")) {
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

// leftOpen returns what goes on after a line: '`' in a raw string, '*' in a comment, else 0. It takes what goes on before the line.
func leftOpen(inside byte, line []byte) byte {
	if inside == 0 && isWhole(line) {
		return 0
	}
	for i := 0; i < len(line); i++ {
		pair := string(line[i:min(i+2, len(line))])
		switch c := line[i]; {
		case inside == '`' && c == '`':
			inside = 0
		case inside == '*' && pair == "*/":
			inside, i = 0, i+1
		case inside != 0:
		case pair == "//":
			return 0
		case pair == "/*":
			inside, i = '*', i+1
		case c == '`':
			inside = '`'
		case c == '"', c == '\'':
			for i++; i < len(line) && line[i] != c; i++ {
				if line[i] == '\\' {
					i++
				}
			}
		}
	}
	return inside
}

// isWhole reports whether lines neither begin nor end a string or comment of several lines. If they are code, the next line is code too.
func isWhole(lines []byte) bool {
	return bytes.IndexByte(lines, '`') < 0 && !bytes.Contains(lines, []byte("/*")) && !bytes.Contains(lines, []byte("*/"))
}
