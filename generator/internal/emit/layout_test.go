package emit

import (
	"strings"
	"testing"
)

// A call without arguments has no line for each, however long its name is.
func TestCallWithoutArguments(t *testing.T) {
	long := strings.Repeat("f", 200)
	for _, got := range []string{call(long), hugging(long)} {
		if got != long+"()" {
			t.Errorf("got %q", got)
		}
	}
}
