package expr

import (
	"fmt"
	"go/types"
	"strings"
	"testing"

	"github.com/ratelimit-go/ratelimit/generator/internal/reach"
)

// generics are expressions over type parameters, and their values in two runs.
var generics = []struct {
	want   Want
	expr   string
	values string
}{
	{Cost, "len(list) + len(text) + len(labels) + len(elems) + len(grid)", "9 / 6"},
	{Island, `list[-1] + text[0:1]`, "ba / ! found index -1 in a list of 0 elements"},
	{Island, `first(list) ?? last(list) ?? "none"`, "a / none"},
	{Island, "list[1:][0]", "b / ! index out of range [0] with length 0"},
	{Cost, "list == nil ? 1 : n", "2 / 1"},
	{Cost, `labels["a"] + labels[text] + labels.b`, "2 / 4"},
	{Bool, `"a" in list and text in labels and text in list`, "true / false"},
	{Bool, "1 in grid and key in byKey", "true / false"},
	{Cost, "byKey[key] + grid[n]", "8 / 7"},
	{Bool, `any(list, # == text)`, "true / false"},
	{Cost, "count(elems, true) + len(elems)", "4 / 2"},
	{Island, `join(list, "+") + upper(text)`, "a+bA / B"},
	{Bool, `text contains "a" and text == "a" and text matches "^a"`, "true / false"},
	{Island, `text + "x" + (flag ? string(text) : list[0])`, "axa / ! index out of range [0] with length 0"},
	{Cost, "n + abs(-n) * 2", "6 / 1"},
	{Cost, "num + 1", "4 / 201"},
	{Cost, "sum(nums) + max(num, 5)", "12 / 401"},
	{Bool, "num > 5 or num in nums[1:]", "false / true"},
	{Bool, "num in 1..5", "true / false"},
	{Island, "num", "3 / 200"},
	{Bool, "ord < ord or ord != ord", "false / false"},
	{Island, "string(ord)", "o / 1.5"},
	{Bool, "elem == nil or key == nil", "false / true"},
	{Bool, "Same(key, key) and Same(text, text)", "true / true"},
	{Bool, "Same(key, key) and key == key", "true / true"},
	{Island, "Echo(letter)", "97 / 97"},
	{Cost, "letter + 1", "98 / 98"},
	{Cost, "letter % 10 * letter - 1", "678 / 678"},
	{Cost, "abs(-letter) + max(letter, 1) + bitand(letter, 3)", "195 / 195"},
	{Island, "(flag ? letter : 5) + min(letter, n)", "99 / 4"},
	{Bool, "letter in 1..99 and letter < 1.5 + letter", "true / true"},
	{Island, "Region(string(text)) + fn(string(text))", "<a><a> / ! a part of it is nil"},
	{Bool, "flag and not (not flag)", "true / false"},

	// A nil pointer may stand behind a type parameter.
	{Island, "ptr", "meta t / ! a part of it is nil"},
	{Island, "str", "meta t / ! a part of it is nil"},
	{Island, "to", "meta t / ! a part of it is nil"},
	{Island, "str.String()", "meta t / ! a part of it is nil"},
	{Island, `str?.String() ?? ptr ?? "none"`, "meta t / none"},
	{Bool, "str == nil and ptr == nil and to == nil and either == nil", "false / true"},
	{Island, `ptr?.Title ?? "none"`, "t / none"},
	{Island, "plain.Owner + to.Owner", "annann / ! a part of it is nil"},
	{Island, "plain.Title", "t / ! a part of it is nil"},
	{Bool, `"Owner" in plain and "Owner" in to`, "true / false"},
}

// TestGenerics runs the code of expressions over type parameters, in two instances of a generic function.
func TestGenerics(t *testing.T) {
	t.Parallel()
	pkg, err := check("testdata/generic.go.txt")
	if err != nil {
		t.Fatal(err)
	}
	env := &Env{From: reach.From{Package: pkg}, Method: "m"}
	store := pkg.Scope().Lookup("Store").Type().Underlying().(*types.Interface)
	for p := range store.Method(0).Signature().Params().Variables() {
		env.Params = append(env.Params, Param{p.Name(), p.Type()})
	}
	source := read(t, "testdata/generic.go.txt")
	var funcs, calls strings.Builder
	table := newCaseTable("cmp", "fmt")
	for i, c := range generics {
		code, errs := compile(c.expr, env, c.want)
		if code == nil {
			t.Errorf("%s: %v", c.expr, errs)
			continue
		}
		funcs.WriteString(table.genericCase(source, i, code, env))
		fmt.Fprintf(&calls, "\tfmt.Print(%q)\n\tfirst(case%d)\n\tsecond(case%d)\n\tfmt.Println()\n", c.expr, i, i)
	}
	funcs.WriteString("func main() {\n" + calls.String() + "}\n\nvar _ = cmp.Compare[int]\n")
	table.WriteString(funcs.String())
	out := string(runProgram(t, map[string]string{"generic.go": source, "run.go": read(t, "testdata/generic_run.go.txt"), "cases.go": table.header() + table.String()}))
	for _, c := range generics {
		if line := c.expr + " / " + c.values + "\n"; !strings.Contains(out, line) {
			i := strings.Index(out, c.expr+" / ")
			got, _, _ := strings.Cut(out[max(i, 0):], "\n")
			t.Errorf("%s\n got %s", strings.TrimSpace(line), got)
		}
	}
}

// genericCase is a function with the type parameters and the parameters of the method Get in source.
func (b *caseTable) genericCase(source string, i int, code *Code, env *Env) string {
	_, rest, _ := strings.Cut(source, "type Store[")
	types, rest, _ := strings.Cut(rest, "] interface {\n\tGet")
	params, _, _ := strings.Cut(rest, "\n}")
	n := names(env)
	n.imports, n.variables = b.imports, b.variables
	return fmt.Sprintf("func case%d[%s]%s {\nreturn valued(%s)\n}\n\n", i, types, params, island(code, n))
}
