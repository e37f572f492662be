package generator_test

import (
	"maps"
	"path/filepath"
	"testing"

	"github.com/ratelimit-go/ratelimit/generator"
)

// together are files whose outputs could have colliding names, or need each other.
const together = `
-- user.go --
package x

type User interface {
	//ratelimit:rule limit=1 per=1m
	GetName() error
	//ratelimit:rule limit=1 per=1m
	getName() error
}
-- userget.go --
package x

type UserGet interface {
	//ratelimit:rule key="{string([1][0])}" limit=1 per=1m
	Name() error
}
-- special.go --
//go:build special

package x

type UserGetN interface {
	//ratelimit:rule limit=1 per=1m
	Ame() error
}
-- handler.go --
package x

//ratelimit:rule limit=1 per=1m
type userGetNa func() error

//ratelimit:rule limit=1 per=1m
type user interface{ M() error }
-- b.go --
package x

type B interface {
	//ratelimit:rule limit=1 per=1m
	Do(*LimitedUser) error
}
-- e_test.go --
package x

type E interface {
	//ratelimit:rule limit=1 per=1m
	Do(*LimitedUser, LimitedB) error
}
-- other_test.go --
package x

var bDoRules int
`

// TestFileByFile expects the same output if a file is generated alone, with its package, or in another build.
func TestFileByFile(t *testing.T) {
	t.Parallel()
	dir := place(t, together)
	of := func(pattern, tags string) map[string]string {
		result, err := generator.Generate(t.Context(), generator.Config{Dir: dir, Patterns: []string{pattern}, Tags: tags})
		if err != nil {
			t.Fatalf("%s with tags %q: %v", pattern, tags, err)
		}
		if _, err := generator.Write(result.Files); err != nil {
			t.Fatal(err)
		}
		found := map[string]string{}
		for _, f := range result.Files {
			found[filepath.Base(f.Name)] = string(f.Source)
		}
		return found
	}
	special := of(".", "special")
	goIn(t, dir, "vet", "-tags=special", ".")
	all := of(".", "")
	goIn(t, dir, "vet", ".")
	alone := map[string]string{}
	for _, file := range []string{"special.go", "user.go", "userget.go", "handler.go", "b.go", "e_test.go"} {
		maps.Copy(alone, of(file, ""))
	}
	if !maps.Equal(all, alone) {
		t.Errorf("generated file by file\n%q, and together\n%q", alone, all)
	}
	if !maps.Equal(all, special) {
		t.Errorf("generated with a tag\n%q, and without\n%q", special, all)
	}
}

// TestExternalTestAlone generates from a file of an external test package that mentions code which is to be generated for the package.
func TestExternalTestAlone(t *testing.T) {
	t.Parallel()
	dir := place(t, `
-- f/f.go --
package f

//ratelimit:rule limit=1 per=1m
type T interface{ M() error }
-- f/in_test.go --
package f

//ratelimit:rule limit=1 per=1m
type In interface{ M() error }
-- f/x_test.go --
package f_test

import "example.com/place/f"

//ratelimit:rule limit=1 per=1m
type X interface{ M(*f.LimitedT, *f.LimitedIn) error }
-- g/g.go --
package g

//ratelimit:rule limit=1 per=1m
type T interface{ M() error }
-- g/x_test.go --
package g_test

import "example.com/place/g"

//ratelimit:rule limit=1 per=1m
type X interface{ M(*g.LimitedT) error }
`)
	for _, folder := range []string{"f", "g"} {
		expectWritten(t, generator.Config{Dir: dir, Patterns: []string{"./" + folder + "/x_test.go"}}, folder+"/x_ratelimit_test.go")
	}
	expectWritten(t, generator.Config{Dir: dir, Patterns: []string{"./..."}}, "f/f_ratelimit.go", "f/in_ratelimit_test.go", "g/g_ratelimit.go")
	goIn(t, dir, "vet", "./...")
}

// TestTwoWrappersOfOneName expects a collision of two wrappers to be reported whichever of their files is named.
func TestTwoWrappersOfOneName(t *testing.T) {
	t.Parallel()
	dir := place(t, `
-- a.go --
package x

//ratelimit:wrap name=W
//ratelimit:rule limit=1 per=1m
type A interface{ M() error }
-- b.go --
package x

//ratelimit:wrap name=W
//ratelimit:rule limit=1 per=1m
type B interface{ M() error }
-- wrong.go --
package x

//ratelimit:rule limit=none per=1m
type C interface{ M() error }
`)
	requireCollision(t, dir, "a.go", "b.go")
}

// TestWrapperOfTests expects a wrapper in a test file to collide with one of the package, even if only one of their files is named.
func TestWrapperOfTests(t *testing.T) {
	t.Parallel()
	requireCollision(t, place(t, `
-- a.go --
package x

//ratelimit:wrap name=W
//ratelimit:rule limit=1 per=1m
type A interface{ M() error }
-- b_test.go --
package x

//ratelimit:wrap name=W
//ratelimit:rule limit=1 per=1m
type B interface{ M() error }
`), "a.go", "b_test.go")
}

// requireCollision generates from each file alone, and fails the test unless a collision of its wrapper W in line 3 is reported.
func requireCollision(t *testing.T, dir string, files ...string) {
	t.Helper()
	for _, file := range files {
		_, err := generator.Generate(t.Context(), generator.Config{Dir: dir, Patterns: []string{file}})
		expected := file + ":3:23: two wrappers would declare NewW; name one of them with //ratelimit:wrap name=\n" +
			file + ":3:23: two wrappers would declare W; name one of them with //ratelimit:wrap name="
		if err == nil || err.Error() != expected {
			t.Errorf("%s: %v, expected %s", file, err, expected)
		}
	}
}
