package exprvm

import (
	"os/exec"
	"strings"
	"testing"
)

const machine = "github.com/expr-lang/expr"

// TestLinks checks that a program links expr only if one of its expressions needs it.
func TestLinks(t *testing.T) {
	for pkg, want := range map[string]bool{"../../examples/sms": false, "../redisstore": false, ".": true} {
		if got := strings.Contains(goList(t, "-deps", pkg), machine); got != want {
			t.Errorf("%s depends on %s: %t; expected %t", pkg, machine, got, want)
		}
	}
	for line := range strings.Lines(goList(t, "-f", `{{.ImportPath}} imports {{join .Imports " "}}`, "../...")) {
		if strings.Contains(line, " "+machine) && !strings.Contains(line, "/exprvm imports") {
			t.Error(line)
		}
	}
}

func goList(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command("go", append([]string{"list"}, args...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
