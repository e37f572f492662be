package expr

import (
	"fmt"
	"go/types"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/ratelimit-go/ratelimit/generator/internal/reach"
)

// wideCases have a value of 64 bits, price, that is 1<<40, and an int n, that is 5. The code gives this or an error, on 32 bits, too.
var wideCases = []struct {
	want Want
	expr string
	is   string
}{
	{Cost, "price * 2", "2199023255552"},
	{Cost, "n * price", "5497558138880"},
	{Cost, "price + n", "1099511627781"},
	{Cost, "price - 1", "1099511627775"},
	{Cost, "price % 7", "2"},
	{Cost, "price", "1099511627776"},
	{Cost, "-price", "-1099511627776"},
	{Cost, "int(price)", "1099511627776"},
	{Cost, "max(price, 5)", "1099511627776"},
	{Cost, "size * 2", "2199023255552"},
	{Cost, "double(price)", "2199023255552"},
	{Bool, "price == 0", "false"},
	{Bool, "price != n", "true"},
	{Bool, "price > n", "true"},
	{Bool, "price < 5", "false"},
	{Bool, "size > price", "false"},
	{Bool, "price in [0, 5]", "false"},
	{Bool, "price in 0..5", "false"},
	{Bool, "n in prices", "false"},
	{Bool, "price == 1099511627776", "true"},
	{Island, "price", "1099511627776"},
	{Island, "names[price]", "an error"},
	{Island, "ok ? price : 5", "1099511627776"},
}

// TestOn32Bits runs expressions over integers of 64 bits on a platform where int has 32 bits.
func TestOn32Bits(t *testing.T) {
	t.Parallel()
	int64s := types.Typ[types.Int64]
	pkg := types.NewPackage("main", "main")
	one := types.NewTuple(types.NewParam(0, pkg, "", whole))
	double := types.NewSignatureType(nil, nil, nil, one, one, false)
	pkg.Scope().Insert(types.NewFunc(0, pkg, "double", double))
	env := &Env{From: reach.From{Package: pkg}, Params: []Param{
		{"price", int64s}, {"n", whole}, {"size", types.Typ[types.Uint64]}, {"names", types.NewSlice(text)}, {"prices", types.NewSlice(int64s)}, {"ok", truth},
	}}
	const params = "(price int64, n int, size uint64, names []string, prices []int64, ok bool)"
	table := newCaseTable("fmt", "time", wrapPath, strings.TrimSuffix(wrapPath, "/wrap"))
	var calls strings.Builder
	for i, c := range wideCases {
		code, errs := compile(c.expr, env, c.want)
		if code == nil {
			t.Fatalf("%s: %v", c.expr, errs)
		}
		n := names(env)
		n.imports, n.variables = table.imports, table.variables
		fmt.Fprintf(table, "func run%d%s (any, string) {\nreturn valued(%s)\n}\n\n", i, params, island(code, n))
		fmt.Fprintf(&calls, "\tshow(%q, %q)(run%d(1<<40, 5, 1<<40, nil, []int64{5 + 1<<32}, true))\n", c.expr, c.is, i)
	}
	table.WriteString(`func double(n int) int { return n * 2 }

var rules = wrap.NewRules("m", ratelimit.Rule{Limit: 1, Per: time.Minute})

func valued[T any](island func() T) (any, string) { return text(wrap.Value(rules, "", island)) }

func text[T any](v T, err error) (any, string) {
	if err != nil {
		return nil, err.Error()
	}
	return v, ""
}

func show(expr, want string) func(v any, fail string) {
	return func(v any, fail string) {
		if got := fmt.Sprint(v); fail == "" && got != want {
			fmt.Println(expr, "is", got, "and should be", want)
		}
	}
}

func main() {
` + calls.String() + "}\n")
	var platform []string
	if runtime.GOOS == "linux" && runtime.GOARCH == "amd64" {
		platform = []string{"GOARCH=386", "CGO_ENABLED=0"}
	}
	if out := runProgram(t, map[string]string{"cases.go": table.header() + table.String()}, platform...); len(out) > 0 {
		t.Errorf("%s", out)
	}
}

// TestRepresents compares represents with package reflect for values around the powers of two.
func TestRepresents(t *testing.T) {
	signed := map[types.BasicKind]any{types.Int: int32(0), types.Int8: int8(0), types.Int16: int16(0), types.Int32: int32(0), types.Int64: int64(0)}
	unsigned := map[types.BasicKind]any{types.Uint: uint32(0), types.Uint8: uint8(0), types.Uint16: uint16(0), types.Uint32: uint32(0), types.Uint64: uint64(0)}
	for shift := range 64 {
		for _, off := range []int64{-1, 0, 1} {
			for _, n := range []int64{1<<shift + off, -1<<shift + off} {
				for kind, zero := range signed {
					if got := represents(types.Typ[kind], n); got == reflect.ValueOf(zero).OverflowInt(n) {
						t.Errorf("%d as %T: %v", n, zero, got)
					}
				}
				for kind, zero := range unsigned {
					if got := represents(types.Typ[kind], n); got != (n >= 0 && !reflect.ValueOf(zero).OverflowUint(uint64(n))) {
						t.Errorf("%d as %T: %v", n, zero, got)
					}
				}
			}
		}
	}
}
