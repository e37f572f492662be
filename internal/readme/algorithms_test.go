package readme

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ratelimit-go/ratelimit/annotations"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// TestAlgorithmsAreExplained looks up each algorithm where a user meets it: in the directives, in the documentation of the package, and
// on the page about algorithms, with a picture.
func TestAlgorithmsAreExplained(t *testing.T) {
	args := annotations.LookUp("rule").Args
	words := args[slices.IndexFunc(args, func(a annotations.Argument) bool { return a.Name == "algorithm" })].Words
	doc, page := read(t, filepath.Join(top, "runtime/doc.go")), read(t, filepath.Join(top, "docs/algorithms.md"))
	for _, a := range ratelimit.Algorithms() {
		i := slices.IndexFunc(words, func(w annotations.Word) bool { return w.Text == a.String() })
		if i < 0 {
			t.Errorf("annotations/spec.go lacks the word %s", a)
			continue
		}
		if name := "// [" + words[i].Const + "]"; !strings.Contains(doc, name) {
			t.Errorf("runtime/doc.go has no line that begins with %s", name)
		}
		if picture := "(pictures/" + a.String() + ".svg)"; !strings.Contains(page, picture) {
			t.Errorf("docs/algorithms.md lacks the picture %s", picture)
		}
	}
}
