package names

import (
	"regexp"
	"strconv"
)

// tag matches the tag of a struct field in the text of a type. Text in quotes is a tag there, except in the length of an array.
var tag = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// rawTags returns the tags in the text of a type, each followed by the same tag in backquotes.
func rawTags(text string) (pairs []string) {
	for _, quoted := range tag.FindAllString(text, -1) {
		if raw, err := strconv.Unquote(quoted); err == nil && strconv.CanBackquote(raw) {
			pairs = append(pairs, quoted, "`"+raw+"`")
		}
	}
	return pairs
}
