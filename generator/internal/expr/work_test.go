package expr

import (
	"fmt"
	"go/types"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/ratelimit-go/ratelimit/generator/internal/reach"
)

// applications returns calls of a function with arguments of its types. The arguments are texts, lists and maps that callers may send.
func applications(name string) (calls []string) {
	samples := map[string][]string{
		"string": {"text"}, "int": {"number"}, "bits": {"number"}, "float64": {"number"}, "numbers": {"numbers", "number"}, "any": {"nested", "table", "text"},
		"N": {"number"}, "K": {"part"}, "R": {"text"}, "[]B": {"map(list, # == text)"}, "[]N": {"numbers"}, "[]E": {"list", "nested", "split(text, part)"},
		"[]string": {"list", "split(text, part)"}, "[][]E": {"nested"}, "map[K]E": {"table"}, "zone": {"timezone(text)"},
		"func(E) bool": {"# == #", "true"}, "func(E) N": {"number"}, "func(E) K": {"text", "string(#)"}, "func(int, E) R": {"[#, #]", "text", "table"},
		"func(E, int, E) E": {"#acc + #", "text"}, "func(R, int, E) R": {"#acc + text"},
	}
	for _, d := range functions()[name] {
		list := []string{name + "("}
		for i := range d.Params().Len() {
			var longer []string
			for _, call := range list {
				for _, arg := range samples[strings.ReplaceAll(parameter(d.Signature, i).String(), "expr.", "")] {
					longer = append(longer, call+strings.Repeat(", ", min(i, 1))+arg)
				}
			}
			list = longer
		}
		for _, call := range list {
			calls = append(calls, call+")")
		}
	}
	return calls
}

// TestWorkOfAllFunctionsIsBounded runs every function on large values that a caller may send, alone, on the result of another function and in
// loops. No evaluation takes much memory.
func TestWorkOfAllFunctionsIsBounded(t *testing.T) {
	t.Parallel()
	texts := types.NewSlice(text)
	env := &Env{From: reach.From{Package: types.NewPackage("main", "main")}, Params: []Param{
		{"text", text}, {"part", text}, {"number", whole}, {"numbers", types.NewSlice(whole)}, {"list", texts}, {"nested", types.NewSlice(texts)},
		{"table", types.NewMap(text, text)},
	}}
	table := newCaseTable("fmt", "os", "runtime", "runtime/debug", "strings", "time", wrapPath, strings.TrimSuffix(wrapPath, "/wrap"))
	count := map[string]int{}
	add := func(name, source string) {
		code, _ := compile(source, env, Bool)
		if code == nil {
			return
		}
		n := names(env)
		n.imports, n.variables = table.imports, table.variables
		fmt.Fprintf(table, "{%q, func(text, part string, number int, numbers []int, list []string, nested [][]string, table map[string]string) error {\n"+
			"_, err := wrap.Value(rules, \"\", %s)\nreturn err\n}},\n", source, island(code, n))
		count[name]++
	}
	inner := []string{"upper(text)", `replace(text, part, text)`, "join(list, text)", "toJSON(nested)", "repeat(text, 999)", "text + text + text"}
	for _, name := range slices.Sorted(maps.Keys(functions())) {
		for _, call := range applications(name) {
			if !isFunction(name) {
				continue
			}
			for _, form := range []string{
				"len(string(%s)) > 0", "len(toJSON(%s)) > 0", "len(map(list, %s)) > 0", "any(list, any(numbers, len(string(%s)) == 0))",
			} {
				add(name, fmt.Sprintf(form, call))
			}
			for _, of := range inner {
				add(name, fmt.Sprintf("len(map(list, %s)) > 0", strings.ReplaceAll(call, "text", of)))
			}
		}
		if isFunction(name) && count[name] == 0 && !slices.Contains(exempt, name) {
			t.Errorf("no call of %s is right", name)
		}
	}
	doubled := "len(v59) > 0"
	for i := 59; i > 0; i-- {
		doubled = fmt.Sprintf("let v%d = v%d + v%[2]d; %s", i, i-1, doubled)
	}
	add("let", "let v0 = text; "+doubled)
	add("+", "len(reduce(list, #acc + #acc, text)) > 0")
	add("+", "any(list, any(list, any(list, # + # == text)))")
	program := table.header() + `var rules = wrap.NewRules("m", ratelimit.Rule{Limit: 1, Per: time.Minute})

func main() {
	debug.SetGCPercent(800) // most of the time would go into collecting garbage
	deep := strings.Repeat("[", 8000) + strings.Repeat("]", 8000)
	lists := make([][]string, 200)
	for i := range lists {
		lists[i] = strings.Split(strings.Repeat("ab,", 200), ",")
	}
	for text, number := range map[string]int{deep: -1, "": 5000, strings.Repeat("a", 60_000): 1<<31 - 1} {
		for _, c := range cases {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			c.run(text, "a", number, make([]int, 2000), strings.Split(strings.Repeat("a,", 1000), ","), lists, map[string]string{"a": deep, text: text})
			runtime.ReadMemStats(&after)
			if used := after.TotalAlloc - before.TotalAlloc; used > 128<<20 {
				fmt.Println(c.source, "takes", used, "bytes for a text of", len(text))
				os.Exit(1)
			}
		}
	}
}

var cases = []struct {
	source string
	run    func(text, part string, number int, numbers []int, list []string, nested [][]string, table map[string]string) error
}{
` + table.String() + "}\n"
	t.Logf("%d expressions: %s", strings.Count(table.String(), "wrap.Value"), runProgram(t, map[string]string{"cases.go": program}))
}

// exempt are functions of times, which have no arguments that a caller could make large, and one whose result is bounded by a constant.
var exempt = []string{"now", "date", "duration", "timezone", "repeat"}
