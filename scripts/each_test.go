package scripts

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/ratelimit-go/ratelimit/internal/testmodule"
)

// A target that fails does not stop the others. All that it has said comes at the end, in one piece.
func TestEach(t *testing.T) {
	m := machine{t, testmodule.Dir(t)}
	m.command("make", `echo "begin $1"; sleep 0.1
case $1 in test/b*) echo "--- FAIL: TestB"; echo "FAIL	$1"; exit 2;; *) echo "ok  	$1";; esac`)
	each := func(targets ...string) (lines []string, err error) {
		cmd := exec.CommandContext(t.Context(), "sh", append([]string{"each.sh"}, targets...)...)
		cmd.Env = append(cmd.Environ(), "MAKE="+m.dir+"/make")
		out, err := cmd.CombinedOutput()
		return strings.Split(strings.TrimSpace(string(out)), "\n"), err
	}
	lines, err := each("test/b1", "test/a", "test/b2", "c")
	if want := []string{"--- FAIL: TestB", "--- FAIL: TestB", "FAIL	test/b1", "FAIL	test/b2", "ok  	c", "ok  	test/a"}; err == nil ||
		len(lines) < len(want) || !slices.Equal(slices.Sorted(slices.Values(lines[:len(want)])), want) {
		t.Errorf("%v, and first comes\n%s", err, strings.Join(lines, "\n"))
	}
	last := `== make test/b1
begin test/b1
--- FAIL: TestB
FAIL	test/b1

== make test/b2
begin test/b2
--- FAIL: TestB
FAIL	test/b2

failed: test/b1 test/b2`
	if all := strings.Join(lines, "\n"); !strings.HasSuffix(all, last) {
		t.Errorf("expected at the end\n%s\nbut got\n%s", last, all)
	}
	if lines, err := each("test/a", "c"); err != nil || len(lines) != 2 {
		t.Errorf("got %q, %v; expected two lines", lines, err)
	}
}
