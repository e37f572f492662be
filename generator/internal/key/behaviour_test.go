package key

import (
	"fmt"
	"go/types"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestLikeExpr compares the code with expr's own machine, over random expressions and a few worlds of arguments.
func TestLikeExpr(t *testing.T) {
	const seed = 20261121
	t.Logf("seed %d", seed)
	env := world(t)
	g := &sampler{Rand: rand.New(rand.NewPCG(seed, 1))}
	imports := map[string]bool{}
	var cases strings.Builder
	lowered, tried := 0, 0
	for _, src := range fixed {
		writeCase(t, &cases, imports, env, src.want, src.expr, true)
	}
	for seen := map[string]bool{}; lowered < 2500 && tried < 20000; tried++ {
		want, src := g.sample()
		if !seen[src] && writeCase(t, &cases, imports, env, want, src, false) {
			lowered++
		}
		seen[src] = true
	}
	if lowered < 2500 {
		t.Fatalf("only %d of %d random expressions could be lowered", lowered, tried)
	}

	t.Logf("%s", runProgram(t, map[string]string{
		"world.go":   read(t, "testdata/world.go.txt"),
		"compare.go": read(t, "testdata/compare.go.txt"),
		"cases.go":   caseTable(imports, cases.String()),
	}))
}

func caseTable(imports map[string]bool, cases string) string {
	var b strings.Builder
	b.WriteString("package main\n\nimport (\n")
	for _, path := range slices.Sorted(maps.Keys(imports)) {
		fmt.Fprintf(&b, "\t%q\n", path)
	}
	return b.String() + ")\n\nvar cases = []testCase{\n" + cases + "}\n"
}

// runProgram runs a program of this module and returns what it prints.
func runProgram(t *testing.T, sources map[string]string) []byte {
	t.Helper()
	dir := t.TempDir()
	args := []string{"run"}
	for name, text := range sources {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		args = append(args, file)
	}
	out, err := exec.Command("go", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return out
}

// fixed are cases that chance rarely finds.
var fixed = []struct {
	want Want
	expr string
}{
	{Int, "N + 1"}, {Int, "-N"}, {Int, "abs(I8)"}, {Int, "-I8"}, {Int, "-U8"}, {Int, "abs(N)"}, {Int, "U64"}, {Int, "U8 * U8"},
	{Bool, "U64 > 5"}, {Bool, "U64 == -1"}, {Bool, "N % N64 == 0"}, {Int, "N % I8"}, {Bool, "0.1 + 0.2 == 0.3"},
	{Int, "9223372036854775807 + 1"}, {Island, "S[1:-1]"}, {Island, "S[-3:2]"}, {Island, "S[N:]"}, {Island, "S[:N64]"},
	{Int, "len(S)"}, {Int, "int(T)"}, {Island, "string(F)"}, {Island, "string(F32)"}, {Bool, "F32 == 0.1"},
	{Bool, "Note == S"}, {Bool, "Note != S"}, {Bool, "Note contains S"}, {Bool, "Count == N"}, {Bool, "Count < N"},
	{Bool, "Doc?.Meta?.Up()?.Title == S"}, {Bool, "Doc?.Meta?.Title != S"}, {Bool, "Doc?.Meta == nil"},
	{Island, `Doc?.Meta?.Next?.Title ?? Doc?.Note ?? S`}, {Island, "Doc.ID"}, {Bool, "1 < Weigh(N) < 30"},
	{Island, "let d = Doc.Meta; d.Title + d.Next.Title"}, {Bool, "max(F, F32) > 2"}, {Int, "max(U8, I8)"},
	{Bool, "N in Ids"}, {Bool, "N in Grid"}, {Bool, "S in Labels"}, {Bool, `S in ["ann", "Root", T]`}, {Bool, "N in 1..5"},
	{Bool, "S not in Parts"}, {Island, "Labels.a"}, {Island, "Doc.Labels[S]"}, {Int, "Grid[N]"}, {Int, "Grid[-1]"}, {Int, "min(N64, 7)"}, {Bool, "Count in Ids"}, {Bool, "Count in [5, 2]"}, {Bool, "Note not in Parts"}, {Bool, "Note in Labels"},
	{Island, `split(S, ",")[-1]`}, {Island, "Doc?.Load().Title ?? T"}, {Int, "int(F / I8)"}, {Bool, "F / I8 > 1"},
	{Bool, "B && Doc.Public || Find(S) == T"}, {Island, "Find(S) + Region(Find(T))"}, {Island, "S | upper() | Region()"},
	{Bool, "not (S startsWith T) and B"}, {Int, "2 ** 3 > 7 ? bitxor(N, U8) : N"}, {Bool, "F32 * 2 + 1 > U8"},
	{Int, "if B { N } else if N > 1 { 2 } else { 3 }"}, {Bool, "Doc != nil && Doc.Meta != nil && Doc.Meta.Size > 1"},
	{Bool, "Doc == nil || Doc.Meta == nil || Doc.Meta.Title contains S"}, {Island, "(Doc ?? Other).Owner"},
	{Bool, "N64 == F"}, {Bool, "B == (N > 1)"}, {Bool, `1 < N <= 5 != B`},
}

// writeCase adds src to the program; ok reports that it could be lowered.
func writeCase(t *testing.T, b *strings.Builder, imports map[string]bool, env *Env, want Want, src string, must bool) bool {
	code, errs := compile(src, env, want)
	if code == nil {
		if must {
			t.Errorf("%s: %v", src, errs)
		}
		return false
	}
	for _, p := range code.Imports {
		imports[p.Path()] = true
	}
	stmts, value := code.Render(&worldNames{*names(env)})
	fmt.Fprintf(b, "{%q, func(w *World) (any, string) {\n%s\nreturn %s, \"\"\n}},\n", src, strings.Join(stmts, "\n"), value)
	return true
}

type worldNames struct{ plainNames }

func (n *worldNames) Param(i int) string        { return "w." + n.env.Params[i].Name }
func (n *worldNames) Fail(reason string) string { return "return nil, " + strconv.Quote(reason) }
func (n *worldNames) FailErr(err string) string { return "return nil, " + err + ".Error()" }

func world(t *testing.T) *Env {
	pkg, err := check("testdata/world.go.txt")
	if err != nil {
		t.Fatal(err)
	}
	env := &Env{Package: pkg, Method: "m"}
	for f := range pkg.Scope().Lookup("World").Type().Underlying().(*types.Struct).Fields() {
		env.Params = append(env.Params, Param{Name: f.Name(), Type: f.Type()})
	}
	return env
}

func read(t *testing.T, file string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// sampler makes random expressions that are mostly well typed.
type sampler struct{ *rand.Rand }

func (g *sampler) sample() (Want, string) {
	depth := 1 + g.IntN(4)
	switch g.IntN(3) {
	case 0:
		return Bool, g.gen('b', depth)
	case 1:
		return Int, g.gen('i', depth)
	}
	return Island, g.gen('s', depth)
}

// productions are by type: b bool, i integer, n int, f float, s text, l list of texts, d *Doc, m *Meta. Those of the first
// list are leaves. A type's letter behind a % stands for an expression of that type.
var productions = map[byte][2][]string{
	'b': {{"true", "false", "B", "Doc.Public", "Doc == nil", "Note == nil", "Doc?.Meta == nil", "Doc?.Public ?? B"}, {
		"%b && %b", "%b || %b", "!%b", "not %b", "%i == %i", "%i != %i", "%i < %i", "%i >= %i", "%f < %f", "%f == %i", "%i <= %f",
		"%s == %s", "%s != %s", "%s < %s", "%s contains %s", "%s startsWith %s", "%s endsWith %s", "%s in %l", "%s in Labels",
		"%i in Ids", "%n in [%n, %n]", "%s in [%s, %s]", "%b ? %b : %b", "Doc?.Owner == %s", "Note == %s", "Note != %s",
		"%d?.Meta?.Title == %s", "%d?.Meta?.Up()?.Title != %s", "Count == %i", "%i < %i < %i", "%b == %b", "%d != nil && %d.Public",
		"%d?.Meta?.Up() == nil", "hasPrefix(%s, %s)", "%n in 1..9", "%s not in %l", "Note contains %s",
	}},
	'i': {{"0", "1", "7", "N", "N64", "I8", "U8", "U64", "Doc.Org", "len(S)", "len(Parts)", "Doc?.Meta?.Size ?? 3", "Count ?? 4", "Doc.Limit ?? N"}, {
		"%n", "-%n", "abs(%n)", "%b ? %i : %i", "Ids[%i]", "Grid[%i]", "%m.Size", "%d?.Meta?.Size ?? %i", "Count ?? %i",
	}},
	'n': {{"2", "N", "len(T)", "len(Labels)", "len(Ids)"}, {
		"%i + %i", "%i - %i", "%i * %i", "%i % %i", "int(%f)", "len(%s)", "len(%l)", "min(%n, %n)", "max(%n, %n)", "Weigh(%n)", "indexOf(%s, %s)", "int(string(%n))",
		"bitand(%n, %n)", "int(T)",
	}},
	'f': {{"1.5", "0.0", "F", "F32", "Doc.Rank"}, {
		"%f + %f", "%f - %i", "%f * %i", "%i / %i", "%f / %f", "-%f", "abs(%f)", "float(%i)", "ceil(%f)", "floor(%f)", "%b ? %f : %f", "max(%f, %f)",
	}},
	's': {{`""`, `"a"`, `"ann"`, "S", "T", "Doc.Owner", "Doc.ID", "Labels.a", `Note ?? "-"`, `Doc?.Owner ?? "x"`}, {
		"%s + %s", "lower(%s)", "upper(%s)", "trim(%s)", "%s[%i:]", "%s[:%i]", "%s[%i:%i]", "%l[%i]", "Labels[%s]", "%d.Owner", "%d.Tenant()",
		"Region(%s)", "Find(%s)", "string(%n)", "string(%b)", "string(%f)", `join(%l, %s)`, "replace(%s, %s, %s)", "trimPrefix(%s, %s)",
		"%b ? %s : %s", "Note ?? %s", "%m.Title", "%m?.Title ?? %s", "%d?.Meta?.Up()?.Title ?? %s", "%d?.Note ?? %s", "%d.Labels[%s]",
		"let v = %s; v + v", "%d?.Load()?.Title ?? %s", "(%s)[1:3]", "trimSuffix(%s)",
	}},
	'l': {{"Parts", "Doc.Parts"}, {"split(%s, %s)", "%d.Parts", "%m.Tags", "%l[%i:]", `split(%s, "a", 2)`}},
	'd': {{"Doc", "Other"}, {"(%b ? %d : %d)"}},
	'm': {{"Doc.Meta", "Other.Meta"}, {"%d.Meta", "%m.Next", "%m.Up()", "%d.Load()", "(%b ? %m : %m)"}},
}

func (g *sampler) gen(kind byte, depth int) string {
	p := productions[kind]
	from := p[0]
	if depth > 0 && g.IntN(8) > 0 {
		from = p[1]
	}
	form := from[g.IntN(len(from))]
	var b strings.Builder
	for i := 0; i < len(form); i++ {
		if form[i] != '%' || i+1 == len(form) || productions[form[i+1]][0] == nil {
			b.WriteByte(form[i])
			continue
		}
		i++
		sub := g.gen(form[i], depth-1)
		if strings.ContainsAny(sub, " -!") {
			sub = "(" + sub + ")"
		}
		b.WriteString(sub)
	}
	return b.String()
}
