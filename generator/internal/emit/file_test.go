package emit

import (
	"go/types"
	"testing"

	"github.com/ratelimit-go/ratelimit/generator/internal/model"
)

// TestFault expects a short error, without the generated source, for code that does not parse.
func TestFault(t *testing.T) {
	pkg := &model.Package{Types: types.NewPackage("example.com/x", "x")}
	of := types.NewTypeName(1, pkg.Types, "X", types.NewInterfaceType(nil, nil))
	f := &model.File{Wrappers: []*model.Wrapper{{Object: of, Name: "no name", New: "New", RulesFunc: "XRules"}}}
	_, err := File(pkg, f)
	const want = "14:15: expected ';', found 'struct' (and 1 more errors)"
	if err == nil || err.Error() != want {
		t.Errorf("%v, expected %s", err, want)
	}
}
