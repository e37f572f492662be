package load

import (
	_ "embed"
	"fmt"
	"reflect"
	"strings"

	"golang.org/x/tools/txtar"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/names"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

//go:embed api.txtar
var apiText []byte

// api has the declarations that generated code uses of packages that the annotated package may not import yet, by path. To find these
// packages and to check them from source would take longer than everything else.
var api = func() map[string]string {
	texts := map[string]string{}
	for _, f := range txtar.Parse(apiText).Files {
		texts[f.Name] = string(f.Data)
	}
	texts[names.Runtime] += rule()
	return texts
}()

// rule returns the declaration of ratelimit.Rule, and those of its types with the constants that directives name.
func rule() string {
	var fields, types, constants strings.Builder
	declared := map[string]bool{}
	for f := range reflect.TypeFor[ratelimit.Rule]().Fields() {
		typ := strings.TrimPrefix(f.Type.String(), "ratelimit.")
		if f.IsExported() {
			fmt.Fprintf(&fields, "%s %s\n", f.Name, typ)
		}
		if f.Type.PkgPath() == names.Runtime && !declared[typ] {
			declared[typ] = true
			fmt.Fprintf(&types, "type %s %s\n", typ, f.Type.Kind())
		}
	}
	for _, arg := range annotations.LookUp("rule").Args {
		f, _ := reflect.TypeFor[ratelimit.Rule]().FieldByName(arg.Field)
		for _, w := range arg.Words {
			fmt.Fprintf(&constants, "const %s %s = 0\n", w.Const, strings.TrimPrefix(f.Type.String(), "ratelimit."))
		}
	}
	return types.String() + "type Rule struct {\n" + fields.String() + "}\n" + constants.String()
}
