package names

import (
	"go/format"
	"go/types"
	"testing"

	"pgregory.net/rapid"
)

func TestTake(t *testing.T) {
	s := NewScope("a", "b2")
	for _, step := range []struct {
		hints []string
		want  string
	}{
		{[]string{"x"}, "x"}, {[]string{"x"}, "x2"}, {[]string{"a", "c"}, "c"}, {[]string{"a", "b"}, "b"}, {[]string{"b"}, "b3"},
	} {
		if got := s.Take(step.hints...); got != step.want {
			t.Errorf("Take(%v) = %s, expected %s", step.hints, got, step.want)
		}
	}
}

// TestPlan expects the same names for packages that are added in different orders.
func TestPlan(t *testing.T) {
	packages := []*types.Package{
		types.NewPackage("text/template", "template"), types.NewPackage("html/template", "template"),
		types.NewPackage("example.com/m/v2", "m"), types.NewPackage("example.com/go-yaml", "yaml"),
		types.NewPackage("example.com/taken", "taken"),
		types.NewPackage("odd/string", "string"), types.NewPackage("mine/x", "x"),
	}
	im := NewImports(types.NewPackage("example.com/self", "self"), NewMarks())
	for _, p := range packages {
		im.Name(p)
	}
	im.Blank("time/tzdata")
	im.Plan(NewScope("taken"))
	const want = `package p

import (
	"html/template"
	string2 "odd/string"
	template2 "text/template"
	_ "time/tzdata"

	yaml "example.com/go-yaml"
	"example.com/m/v2"
	taken2 "example.com/taken"
	"mine/x"
)
`
	got, err := format.Source([]byte("package p\n\n" + im.Declaration("mine") + "\n"))
	if err != nil || string(got) != want {
		t.Errorf("imports are\n%s, expected\n%s, error %v", got, want, err)
	}
}

// TestVariables expects different variables for all methods, whatever their types are called.
func TestVariables(t *testing.T) {
	v := NewVariables([]string{"User", "UserGet", "user", "User2", "user_", "_1", "UserGetName"})
	for of, want := range map[[2]string]string{
		{"User", "Do"}: "userDo", {"User", "GetName"}: "userGetName_4", {"UserGet", "Name"}: "userGetName_7", {"UserGetName", ""}: "userGetName",
		{"user", "Do"}: "user3Do", {"_1", "Do"}: "limited1Do", {"User", "Do_2"}: "userDo_2_4",
	} {
		if got := v.Of(of[0], of[1]); got != want {
			t.Errorf("%s.%s is %s, expected %s", of[0], of[1], got, want)
		}
	}
	word := rapid.StringMatching(`[aA_2]{1,5}`)
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfNDistinct(word, 1, 6, rapid.ID).Draw(t, "types")
		v, seen := NewVariables(words), map[string]string{}
		for _, typ := range words {
			for _, method := range append(words, "") {
				of, begin := typ+"."+Upper(method), v.Of(typ, method)
				if method == "" {
					of = typ
				}
				if other, ok := seen[begin]; ok && other != of {
					t.Fatalf("%s and %s both begin with %s", of, other, begin)
				}
				seen[begin] = of
			}
		}
	})
}
