package emit

import (
	"go/token"
	"go/types"
	"testing"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/model"
)

// TestFault tells a fault of the generator at the type that it fails for, without the source that it made.
func TestFault(t *testing.T) {
	fset := token.NewFileSet()
	source := fset.AddFile("/m/x/x.go", -1, 100)
	source.SetLines([]int{0, 10, 20})
	pkg := &model.Package{Types: types.NewPackage("example.com/x", "x")}
	wrapper := func(offset int, name string) *model.Wrapper {
		of := types.NewTypeName(source.Pos(offset), pkg.Types, "X", types.NewInterfaceType(nil, nil))
		return &model.Wrapper{Pos: of.Pos(), Object: of, Name: name, New: "New", RulesFunc: "XRules"}
	}
	f := &model.File{Wrappers: []*model.Wrapper{wrapper(15, "LimitedX"), wrapper(25, "no name")}}
	_, faults := File(pkg, f)
	const want = "x/x.go:3:6: internal error: 2:15: expected ';', found 'struct'"
	if got := annotations.Join(faults.Messages(fset, "/m")); got != want {
		t.Errorf("%s, expected %s", got, want)
	}
}
