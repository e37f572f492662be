package clientip

import "strings"

// lastUnquoted returns the index of the last c outside a quoted string, or -1. It reads from the right, so that an unclosed quotation
// mark does not hide what a proxy has added after it.
func lastUnquoted(s string, c byte) int {
	quoted := false
	for i := len(s) - 1; i >= 0; i-- {
		switch {
		case s[i] == '"' && !escaped(s, i):
			quoted = !quoted
		case s[i] == c && !quoted:
			return i
		}
	}
	return -1
}

// escaped reports whether there is an odd number of backslashes before s[i].
func escaped(s string, i int) bool {
	slashes := i - len(strings.TrimRight(s[:i], `\`))
	return slashes%2 == 1
}

// forwardedFor returns the address in an element of Forwarded such as `for="[2001:db8::1]:4711";proto=https`, or "" if there is none or
// more than one.
func forwardedFor(element string) string {
	address := ""
	for more := true; more; {
		i := lastUnquoted(element, ';')
		name, value, _ := strings.Cut(element[i+1:], "=")
		if strings.EqualFold(strings.Trim(name, " \t"), "for") {
			if address != "" {
				return ""
			}
			address = unquote(strings.Trim(value, " \t"))
		}
		element, more = element[:max(0, i)], i >= 0
	}
	return address
}

func unquote(s string) string {
	if inside, ok := strings.CutPrefix(s, `"`); ok && strings.HasSuffix(inside, `"`) {
		return strings.TrimSuffix(inside, `"`)
	}
	return s
}
