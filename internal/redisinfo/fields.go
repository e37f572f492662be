// Package redisinfo parses the replies of a Redis server to INFO. It sends no commands.
package redisinfo

import (
	"strconv"
	"strings"
)

// Fields returns the fields of a reply to INFO, or to CLUSTER INFO.
func Fields(text string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if field, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[field] = value
		}
	}
	return fields
}

// List returns the parts of a field such as keys=3,expires=1.
func List(value string) map[string]string {
	parts := map[string]string{}
	for part := range strings.SplitSeq(value, ",") {
		if name, n, ok := strings.Cut(part, "="); ok {
			parts[name] = n
		}
	}
	return parts
}

// Number returns a number among fields or parts, or 0.
func Number(fields map[string]string, name string) int64 {
	n, _ := strconv.ParseInt(fields[name], 10, 64)
	return n
}
