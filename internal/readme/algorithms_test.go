package readme

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ratelimit-go/ratelimit/annotations"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// constant matches the constants of runtime/algorithm.go.
var constant = regexp.MustCompile(`(?m)^\t([A-Z]\w+)(?: Algorithm = iota)?$`)

// TestAlgorithmsAreExplained expects each algorithm in all places where users look for it: among the constants, in the directives, in the
// documentation of the package, and on the page about algorithms, with a picture.
func TestAlgorithmsAreExplained(t *testing.T) {
	args := annotations.LookUp("rule").Args
	words := args[slices.IndexFunc(args, func(a annotations.Argument) bool { return a.Name == "algorithm" })].Words
	constants := constant.FindAllStringSubmatch(read(t, filepath.Join(top, "runtime/algorithm.go")), -1)
	doc, page := read(t, filepath.Join(top, "runtime/doc.go")), read(t, filepath.Join(top, "docs/algorithms.md"))
	for n, a := range ratelimit.Algorithms() {
		i := slices.IndexFunc(words, func(w annotations.Word) bool { return w.Text == a.String() })
		if i < 0 {
			t.Errorf("annotations/spec.go lacks the word %s", a)
			continue
		}
		name := words[i].Const
		if n >= len(constants) || constants[n][1] != name {
			t.Errorf("constant %d of runtime/algorithm.go is not %s: the order is that of the engine's kinds", n, name)
		}
		if !strings.Contains(doc, "// ["+name+"]") {
			t.Errorf("runtime/doc.go has no line that begins with [%s]", name)
		}
		if picture := "(pictures/" + a.String() + ".svg)"; !strings.Contains(page, picture) {
			t.Errorf("docs/algorithms.md lacks the picture %s", picture)
		}
	}
}
