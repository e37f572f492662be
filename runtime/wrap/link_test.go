package wrap_test

import (
	"os/exec"
	"strings"
	"testing"
)

// TestLinks checks that no program that uses the runtime, or generated code, links expr.
func TestLinks(t *testing.T) {
	for _, packages := range []string{"../...", "../../examples/...", "../../internal/decide"} {
		out, err := exec.Command("go", "list", "-deps", packages).Output()
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(out), "github.com/expr-lang/expr") {
			t.Errorf("%s depends on expr", packages)
		}
	}
}
