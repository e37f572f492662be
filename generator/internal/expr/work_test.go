package expr

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/ratelimit-go/ratelimit/runtime/exprvm"
)

// applications returns calls of a function with arguments of its types. The arguments are texts and lists that callers may send.
func applications(name string) (calls []string) {
	samples := map[string]string{
		"string": "text", "int": "number", "float64": "number", "N": "number", "numbers": "numbers", "any": "nested", "[]any": "list", "[]E": "list",
		"[]string": "list", "[]int": "numbers", "[]float64": "numbers", "map[any]any": "table", "map[any]E": "table", "zone": "timezone(text)",
		"func(any) bool": "# == #", "func(E) bool": "# == #", "func(any) int": "number", "func(any) float64": "number",
		"func(any) any": "[#, list]", "func(E) any": "[#, list]", "func(any) R": "[#, list]",
	}
	for _, d := range functions()[name] {
		var args []string
		for i := range d.Params().Len() {
			word := strings.ReplaceAll(parameter(d.Signature, i).String(), "expr.", "")
			arg, ok := samples[word]
			if !ok {
				panic(word)
			}
			args = append(args, arg)
		}
		call := name + "(" + strings.Join(args, ", ") + ")"
		calls = append(calls, call, strings.ReplaceAll(call, "list", "nested"), strings.ReplaceAll(call, "list", "split(text, part)"))
	}
	return calls
}

// FuzzWorkIsBounded checks that no function takes much memory, whatever a caller sends, alone or of the result of another.
func FuzzWorkIsBounded(f *testing.F) {
	f.Add("toJSON", "fromJSON", strings.Repeat("[", 3000)+strings.Repeat("]", 3000), "", 9)
	f.Add("replace", "upper", strings.Repeat("a", 60_000), "a", 1_000_000)
	f.Add("uniq", "split", strings.Repeat("ab", 30_000), "", 0)
	f.Add("flatten", "map", strings.Repeat("a,", 1000), ",", 3)
	f.Fuzz(func(t *testing.T, outer, inner, text, part string, number int) {
		if !isFunction(outer) || !isFunction(inner) || len(text) > 1<<16 {
			return
		}
		names := []string{"text", "part", "number", "numbers", "list", "nested", "table"}
		values := []any{
			text, part, number, []int{number, number}, strings.Split(text[:min(len(text), 2000)], ","), []any{text, []any{part, []any{number}}},
			map[string]any{part: text},
		}
		for _, of := range applications(inner) {
			for _, call := range applications(outer) {
				for _, name := range []string{"text", "nested", "list"} {
					if strings.Contains(call, name) {
						source := fmt.Sprintf("len(string(%s)) > 0", strings.Replace(call, name, of, 1))
						requireLittle(t, exprvm.New(source, names...), slices.Clone(values), source)
					}
				}
			}
		}
	})
}

// requireLittle fails the test if an expression takes much memory. Its result does not matter.
func requireLittle(t *testing.T, p *exprvm.Program, values []any, source string) {
	if p.Err() != nil {
		return
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _ = p.Bool(values...)
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 128<<20 {
		t.Errorf("%s takes %d bytes", source, used)
	}
}

// No function of the table takes much memory for what a caller may send, alone or of the result of another.
func TestWorkOfAllFunctionsIsBounded(t *testing.T) {
	names := []string{"text", "part", "number", "numbers", "list", "nested", "table"}
	text := strings.Repeat("[", 8000) + strings.Repeat("]", 8000)
	deep := any(text)
	for range 1000 {
		deep = []any{deep}
	}
	values := []any{text, "", 5000, make([]int, 8000), strings.Split(strings.Repeat("a,", 2000), ","), deep, map[string]any{"a": deep, text: text}}
	for name := range functions() {
		if !isFunction(name) {
			continue
		}
		for _, call := range applications(name) {
			for _, of := range []string{"string(%s)", "toJSON(%s)", "map(list, %s)"} {
				source := fmt.Sprintf("len("+of+") > 0", call)
				requireLittle(t, exprvm.New(source, names...), slices.Clone(values), source)
			}
		}
	}
}
