package names

import (
	"regexp"
	"strconv"
)

// tag is the tag of a struct's field in the text of a type, where nothing else is quoted but in the lengths of arrays.
var tag = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// rawTags returns each tag in the text of a type, and behind it the same as one writes it by hand.
func rawTags(text string) (pairs []string) {
	for _, quoted := range tag.FindAllString(text, -1) {
		if raw, err := strconv.Unquote(quoted); err == nil && strconv.CanBackquote(raw) {
			pairs = append(pairs, quoted, "`"+raw+"`")
		}
	}
	return pairs
}
