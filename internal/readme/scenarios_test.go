package readme

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// TestScenariosAreListed expects each scenario of the generator once in testdata/README.md, with the first sentence of its file.
func TestScenariosAreListed(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(top, "testdata/*.txtar"))
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	listed := strings.Split(read(t, filepath.Join(top, "testdata/README.md")), "\n")
	listed = slices.DeleteFunc(listed, func(line string) bool { return !strings.HasPrefix(line, "* ") })
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		sentence, _, _ := strings.Cut(strings.Join(strings.Fields(string(archive.Comment)), " ")+" ", ". ")
		file := filepath.Base(path)
		line := fmt.Sprintf("* [%s](%s): %s.", strings.TrimSuffix(file, ".txtar"), file, sentence)
		i := slices.Index(listed, line)
		if i < 0 {
			t.Errorf("testdata/README.md lacks this line:\n%s", line)
			continue
		}
		listed = slices.Delete(listed, i, i+1)
	}
	for _, line := range listed {
		t.Errorf("testdata/README.md has a line that no scenario has, or that stands there twice:\n%s", line)
	}
}
