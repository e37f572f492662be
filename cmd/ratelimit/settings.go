package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/ratelimit-go/ratelimit/generator"
)

// bare is what a directive says without quotes.
var bare = regexp.MustCompile(`^[\w./+-]+$`)

// written returns settings as they stand in a directive.
func written(settings []generator.Setting) string {
	var words []string
	for _, s := range settings {
		word := s.Name
		if s.Value != true {
			value := fmt.Sprint(s.Value)
			if !bare.MatchString(value) {
				value = strconv.Quote(value)
			}
			word += "=" + value
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// byName returns settings as the fields of a JSON object.
func byName(settings []generator.Setting) map[string]any {
	fields := map[string]any{}
	for _, s := range settings {
		fields[s.Name] = s.Value
	}
	return fields
}
