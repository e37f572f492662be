package wrap

import (
	"bytes"
	"encoding/json"
	"reflect"
)

// ToJSON returns the JSON of v, indented by two blanks: that of []int{1} has 7 bytes. It is an error if v has no JSON, or if the JSON has more
// than [MaxText] bytes.
func ToJSON(v any) (string, error) {
	w := walk{isJSON: true}
	if w.visit(reflect.ValueOf(v)); w.err != nil {
		return "", w.err
	}
	compact, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	if indentedSize(compact) > MaxText {
		return "", tooLarge("JSON")
	}
	var indented bytes.Buffer
	err = json.Indent(&indented, compact, "", "  ")
	return indented.String(), err
}

// indentedSize returns how many bytes JSON has once it is indented, or a number above MaxText if that is more. Indented JSON that is nested
// deeply is much larger than the compact one.
func indentedSize(compact []byte) int {
	size, depth := 0, 0
	for i := 0; i < len(compact) && size <= MaxText; i++ {
		size++
		switch compact[i] {
		case '"':
			start := i
			for i++; compact[i] != '"'; i++ {
				if compact[i] == '\\' {
					i++
				}
			}
			size += i - start
		case '{', '[':
			if compact[i+1] == compact[i]+2 { // an empty object or list stays as it is
				i, size = i+1, size+1
				continue
			}
			depth++
			size += 1 + 2*depth
		case '}', ']':
			depth--
			size += 1 + 2*depth
		case ',':
			size += 1 + 2*depth
		case ':':
			size++
		}
	}
	return size
}

// FromJSON returns the value of a JSON text: a nil, bool, float64, string, []any or map[string]any. It is an error if the text is not JSON, or
// has more than [MaxText] bytes.
func FromJSON(text string) (v any, err error) {
	if len(text) > MaxText {
		return nil, tooLarge("string")
	}
	err = json.Unmarshal([]byte(text), &v)
	return v, err
}
