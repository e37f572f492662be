package expr

import (
	"flag"
	"fmt"
	"go/types"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/reach"
)

// batches times 28,000 evaluations are compared. 8 of them take two minutes.
var batches = flag.Int("batches", 1, "how many programs of random expressions to compare with expr")

// TestLikeExpr compares the results of the Go code and of expr itself for random expressions and random arguments.
func TestLikeExpr(t *testing.T) {
	t.Parallel()
	env := world(t)
	for batch := range *batches {
		seed := uint64(20261121 + batch)
		g := &sampler{Rand: rand.New(rand.NewPCG(seed, 1))}
		cases := newCaseTable()
		for _, f := range append(rare, language...) {
			if errs := cases.add(env, f.want, f.expr); errs != nil {
				t.Errorf("%s: %s", f.expr, errs[0].Msg)
			}
		}
		cases.draw(t, env, g, 2300)
		g.loops = true
		cases.draw(t, env, g, 1000)
		t.Logf("seed %d: %s", seed, runProgram(t, map[string]string{
			"world.go":   read(t, "testdata/world.go.txt"),
			"compare.go": read(t, "testdata/compare.go.txt"),
			"cases.go":   cases.source(seed),
		}))
	}
}

// caseTable becomes a file of the program that compares.
type caseTable struct {
	strings.Builder
	imports   map[string]bool
	variables map[string]string
}

func newCaseTable(imports ...string) *caseTable {
	b := &caseTable{imports: map[string]bool{}, variables: map[string]string{}}
	for _, path := range imports {
		b.imports[path] = true
	}
	return b
}

// draw adds n random expressions.
func (b *caseTable) draw(t *testing.T, env *Env, g *sampler, n int) {
	seen := map[string]bool{}
	for drawn := 0; drawn < n; {
		want, src := g.sample()
		if !seen[src] && b.add(env, want, src) == nil {
			drawn++
		}
		if seen[src] = true; len(seen) > 20*n {
			t.Fatalf("only %d of %d random expressions are right", drawn, len(seen))
		}
	}
}

// add adds src if it is valid.
func (b *caseTable) add(env *Env, want Want, src string) annotations.Diagnostics {
	code, errs := compile(src, env, want)
	if code != nil {
		n := &worldNames{*names(env)}
		n.imports, n.variables = b.imports, b.variables
		fmt.Fprintf(b, "{%q, %d, func(w *World) (any, string) {\nreturn valued(%s)\n}},\n", src, want, island(code, n))
	}
	return errs
}

func (b *caseTable) source(seed uint64) string {
	return b.header() + fmt.Sprintf("const seed = %d\n\nvar cases = []testCase{\n%s}\n", seed, b)
}

// header is the beginning of the file.
func (b *caseTable) header() string {
	var imports strings.Builder
	for _, path := range slices.Sorted(maps.Keys(b.imports)) {
		fmt.Fprintf(&imports, "\t%q\n", path)
	}
	return "package main\n\nimport (\n" + imports.String() + ")\n\n" + declared(b.variables)
}

// runProgram runs a program of this module, with some variables in its environment, and returns what it prints. With -trimpath its folder does not
// count, so that the build cache has a program that was built before.
func runProgram(t *testing.T, sources map[string]string, env ...string) []byte {
	t.Helper()
	dir := t.TempDir()
	args := []string{"run", "-trimpath"}
	for name, text := range sources {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		args = append(args, file)
	}
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return out
}

// rare are cases that chance rarely finds.
var rare = []struct {
	want Want
	expr string
}{
	{Cost, "N + 1"}, {Cost, "-N"}, {Cost, "abs(I8)"}, {Cost, "-I8"}, {Cost, "-U8"}, {Cost, "abs(N)"}, {Cost, "U64"}, {Cost, "U8 * U8"},
	{Bool, "U64 > 5"}, {Bool, "U64 == -1"}, {Bool, "N % N64 == 0"}, {Cost, "N % I8"}, {Bool, "0.1 + 0.2 == 0.3"},
	{Island, "S[1:-1]"}, {Island, "S[-3:2]"}, {Island, "S[N:]"}, {Island, "S[:N64]"},
	{Cost, "len(S)"}, {Cost, "int(T)"}, {Island, "string(F)"}, {Island, "string(F32)"}, {Bool, "F32 == 0.1"},
	{Bool, "Note == S"}, {Bool, "Note != S"}, {Bool, "Note contains S"}, {Bool, "Count == N"}, {Bool, "Count < N"},
	{Bool, "Doc?.Meta?.Up()?.Title == S"}, {Bool, "Doc?.Meta?.Title != S"}, {Bool, "Doc?.Meta == nil"},
	{Island, `Doc?.Meta?.Next?.Title ?? Doc?.Note ?? S`}, {Island, "Doc.ID"}, {Bool, "1 < Weigh(N) < 30"},
	{Island, "let d = Doc.Meta; d.Title + d.Next.Title"}, {Bool, "max(F, F32) > 2"}, {Cost, "max(U8, I8)"},
	{Bool, "N in Ids"}, {Bool, "N in Grid"}, {Bool, "S in Labels"}, {Bool, `S in ["ann", "Root", T]`}, {Bool, "N in 1..5"},
	{Bool, "S not in Parts"}, {Island, "Labels.a"}, {Island, "Doc.Labels[S]"}, {Cost, "Grid[N]"}, {Cost, "Grid[-1]"}, {Cost, "min(N64, 7)"}, {Bool, "Count in Ids"}, {Bool, "Count in [5, 2]"}, {Bool, "Note not in Parts"}, {Bool, "Note in Labels"},
	{Island, `split(S, ",")[-1]`}, {Island, "Doc?.Load().Title ?? T"}, {Cost, "int(F / I8)"}, {Bool, "F / I8 > 1"},
	{Bool, "B && Doc.Public || Find(S) == T"}, {Island, "Find(S) + Region(Find(T))"}, {Island, "S | upper() | Region()"},
	{Bool, "not (S startsWith T) and B"}, {Cost, "2 ** 3 > 7 ? bitxor(N, U8) : N"}, {Bool, "F32 * 2 + 1 > U8"},
	{Cost, "if B { N } else if N > 1 { 2 } else { 3 }"}, {Bool, "Doc != nil && Doc.Meta != nil && Doc.Meta.Size > 1"},
	{Bool, "Doc == nil || Doc.Meta == nil || Doc.Meta.Title contains S"}, {Island, "(Doc ?? Other).Owner"},
	{Cost, "-(B ? I8 : N)"}, {Cost, "-(B ? U8 : 3)"}, {Island, "string(max(F, F32))"}, {Cost, "abs(min(I8, N64))"},
	{Cost, "let v = Count ?? I8; -v"}, {Cost, "bitor(9223372036854775807, 1) - 1"}, {Cost, "bitshl(N, U8)"}, {Cost, "bitushr(N, I8)"}, {Cost, "bitnot(U64)"}, {Cost, "bitnand(N, 5)"},
	{Bool, "N64 == F"}, {Bool, "B == (N > 1)"}, {Bool, `1 < N <= 5 != B`},
	{Bool, `"Meta" in Doc`}, {Bool, `"Nope" in Doc`}, {Bool, `"Title" in Doc.Meta`}, {Bool, `"Title" in Doc?.Meta`}, {Bool, `"Owner" in Other`},
	{Bool, "nil in [Note, Doc?.Note]"}, {Cost, "Count ?? U64"},
	{Cost, "((Flag ? Doc.Meta : Other.Meta) ?? Other.Load().Up()).Size"},
	{Island, "Caption(Doc?.Meta)"}, {Island, "S + Caption(Doc?.Meta?.Next)"}, {Island, "Caption(Doc.Meta?.Next)"},
	{Island, "clientIP(Ctx)"}, {Island, "clientIP(Ctx) ?? S"}, {Island, `"ip:" + (clientIP(Ctx) ?? T)`},
}

type worldNames struct{ plainNames }

func (n *worldNames) Variable(i int) string { return "w." + n.env.Params[i].Name }

func world(t *testing.T) *Env {
	pkg, err := check("testdata/world.go.txt")
	if err != nil {
		t.Fatal(err)
	}
	env := &Env{From: reach.From{Package: pkg}, Method: "m"}
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

// sampler generates random expressions that are mostly well typed.
type sampler struct {
	*rand.Rand
	loops bool // expressions with closures, lists and maps, too
}

func (g *sampler) sample() (Want, string) {
	depth := 1 + g.IntN(4)
	switch g.IntN(3) {
	case 0:
		return Bool, g.gen('b', depth)
	case 1:
		return Cost, g.gen('i', depth)
	}
	return Island, g.gen('s', depth)
}

// productions are by type: b bool, i integer, n int, f float, s text, l list of texts, d *Doc, m *Meta, r Role, o an order. Those of the first
// list are leaves. A type's letter behind a % stands for an expression of that type.
var productions = map[byte][2][]string{
	'b': {{"true", "false", "B", "Doc.Public", "Doc == nil", "Note == nil", "Doc?.Meta == nil", "Doc?.Public ?? B"}, {
		"%b && %b", "%b || %b", "!%b", "not %b", "%i == %i", "%i != %i", "%i < %i", "%i >= %i", "%f < %f", "%f == %i", "%i <= %f",
		"%s == %s", "%s != %s", "%s < %s", "%s contains %s", "%s startsWith %s", "%s endsWith %s", "%s in %l", "%s in Labels",
		"%i in Ids", "%n in [%n, %n]", "%s in [%s, %s]", "%b ? %b : %b", "Doc?.Owner == %s", "Note == %s", "Note != %s",
		"%d?.Meta?.Title == %s", "%d?.Meta?.Up()?.Title != %s", "Count == %i", "%i < %i < %i", "%b == %b", "%d != nil && %d.Public",
		"%d?.Meta?.Up() == nil", "hasPrefix(%s, %s)", "%n in 1..9", "%s not in %l", "Note contains %s", "At < Then", "At >= Then", "At == Then", "At + Wait != Then", "At - Then > Wait", "Then - Wait <= At",
		"%r == %s", "%r != %r", "%s in Roles", "%r in Roles", "%r in [%s, %r]", "Role contains %s", "%r < %s", "Level == %i", "Level in Ids", "%n in Levels",
		"%r in ByRole",
		"Big %o %i", "%i %o Big", "Big %o U64", "Big %o 5", "U8 %o Big", "%i in %n..%n", "Big in 1..9", "%i %o %i", "%f %o %f", "%s %o %s",
		"Flag ?? %b", "Flag", "Who == nil", "Who != nil && Who.Name() == %s", "Err != nil", "Err?.Error() == %s", "Hook != nil", "Any == nil",
		"%d == nil || %d.Meta == nil || %d.Meta.Title < %s", "if %b { %b } else { %b }", "%s in Deep", "let v = %b; v || !v", "%f in [1.5, %f]",
		"%b and not %b or %b", "%s not startsWith %s", "%i not in Ids", "U8 in Data", "(%b and B) in [B, true]", "Wait * %i > Wait", "Wait + Wait == Wait * 2", "%m?.Next?.Size == %i",
		`"Owner" in %d`, `"Next" in %m`, `"Nope" in %d`, `"ID" in %d`, `%s in %d`, `"Title" in %d?.Meta`, `"Size" not in %d.Meta`,
		"(%b ? %s : Note) == %s", "(let v = %d?.Owner; v == %s)", "(Note ?? Doc?.Note) == %s", "(%b ? Doc?.Owner : %s) contains %s", "(let v = %m?.Title; v == nil or v contains %s)",
		"(%b ? Note : Doc?.Note) != %s", "(Flag ?? Doc?.Public) == %b", "(%b ? Count : Doc?.Limit) == nil",
	}},
	'i': {{"0", "1", "7", "N", "N64", "I8", "U8", "U64", "Doc.Org", "len(S)", "len(Parts)", "Doc?.Meta?.Size ?? 3", "Count ?? 4", "Doc.Limit ?? N"}, {
		"%n", "-%n", "abs(%n)", "%b ? %i : %i", "Ids[%i]", "Grid[%i]", "%m.Size", "%d?.Meta?.Size ?? %i", "Count ?? %i",
	}},
	'n': {{"2", "N", "len(T)", "len(Labels)", "len(Ids)"}, {
		"%i + %i", "%i - %i", "%i * %i", "%i % %i", "int(%f)", "len(%s)", "len(%l)", "min(%n, %n)", "max(%n, %n)", "Weigh(%n)", "indexOf(%s, %s)", "int(string(%n))",
		"bitand(%n, %n)", "int(T)", "bitshl(%n, %n)", "bitshr(%n, 2)", "bitushr(%n, %n)", "bitnot(%n)", "-(%b ? %i : %i)",
		"Level + %n", "Level * Level", "-Levels[%i]", "len(Roles)", "Rank(%r)", "Height(Levels[0], 3)", "min(Level, %n)", "abs(Level)", "int(At - Then)", "int(Wait)",
		"At.Hour()", "len(Role)",
		"lastIndexOf(%s, %s)", "Big % %i", "Big % 16", "%i % 7 + %n", "int(Big)", "Big + %n", "U8 * 5 - I8", "bitshl(%i, %i)", "bitxor(Big, %i)", "min(Big, 9)", "max(U64, 2)", "min(%i, %i, 5) * %n",
		"abs(%i) * 2", "-%i", "-(%n)", "len(Data)", "len(Doc?.Parts ?? Parts)", "Max * %n", "Least + %n", "%n - Least", "-Hot", "Hot + %n", "int(%f * 1e18)", "Data[%i]", "round(%f) > 1 ? %n : 2",
		"let v = %n; v * v", "if %b { %n } else if %b { %n } else { 7 }", "int(Wait * %i)", "int(Wait + Wait)", "bitushr(Big, %i)", "I32 * I32", "U8 - I32", "%m.Size + %n", "len(Deep)",
	}},
	'f': {{"1.5", "0.0", "F", "F32", "Doc.Rank"}, {
		"%f + %f", "%f - %i", "%f * %i", "%i / %i", "%f / %f", "-%f", "abs(%f)", "float(%i)", "ceil(%f)", "floor(%f)", "%b ? %f : %f", "max(%f, %f)",
		"%i ** 2", "%f ^ %f", "round(%f)", "float(Big)", "Big / %f", "%n / %n", "min(%f, %f, 1.5)", "let v = %f; v - v", "float(%s)", "float(%n) + %f", "abs(F32)",
	}},
	's': {{`""`, `"a"`, `"ann"`, "S", "T", "Doc.Owner", "Doc.ID", "Labels.a", `Note ?? "-"`, `Doc?.Owner ?? "x"`}, {
		"%s + %s", "lower(%s)", "upper(%s)", "trim(%s)", "%s[%i:]", "%s[:%i]", "%s[%i:%i]", "%l[%i]", "Labels[%s]", "%d.Owner", "%d.Tenant()",
		"Region(%s)", "Find(%s)", "string(%n)", "string(%b)", "string(%f)", `join(%l, %s)`, "replace(%s, %s, %s)", "trimPrefix(%s, %s)",
		"%b ? %s : %s", "Note ?? %s", "%m.Title", "%m?.Title ?? %s", "%d?.Meta?.Up()?.Title ?? %s", "%d?.Note ?? %s", "%d.Labels[%s]",
		"let v = %s; v + v", "%d?.Load()?.Title ?? %s", "(%s)[1:3]", "trimSuffix(%s)", "ByRole[%r]", "Role + %s", "upper(Role)", "%r[1:]",
		"Who.Name()", "Who?.Name() ?? %s", "Who.Home().Title", "Who?.Home()?.Title ?? %s", "Tok", "%b ? Tok : %s", "Err.Error()", "Err?.Error() ?? %s", "Hook(%s)", "string(Wait)",
		"Deep[%s].Title", "Deep[%s]?.Title ?? %s", "Deep.a?.Up()?.Title ?? %s", "trim(%s, %s)", "trimSuffix(%s, %s)", "trimPrefix(%s)",
		"splitAfter(%s, %s)[%i]", "replace(%s, %s, %s, %i)", "split(%s, %s, %i)[%i]", "join(%l)", "%s[%i:%i][%i:]", "Note ?? Doc?.Note ?? %s", "%d.Meta.Next.Title", "method + %s", "Big", "max(Big, 3)",
		"%b ? %n : %s", "Count ?? %s", "Flag ?? %s", "if %b { %s } else { %n }", "lower(%s)[%i:] + \"é\\n\"", "'q' + %s", "`r\\` + %s", "(%s | upper())[:2]", "string(%i)", "string(Tok)", "string(Level)", "string(Count ?? 2)",
		"%m?.Next?.Next?.Title ?? %s", "%d?.Meta.Title ?? %s", "Doc?.Labels?.a ?? %s", "%l[-1]", "%b", "%n", "%r.Under()", "string(%r)", "string(Level)", "%r", "Level",
		`%d?.Meta?.["Title"] ?? %s`, `Doc?.Labels?.[%s] ?? %s`, `%m?.Tags?.[%i] ?? %s`,
		"(nil ?? %s)", "(%b ? Doc?.Owner : %s) ?? %s", "(let v = Doc?.Owner; v ?? %s)", "(Note ?? Doc?.Note) ?? %s", "[Doc?.Owner, %s][0] ?? %s", "map([Doc, Other], #?.Owner)[0] ?? %s", `(Doc?.Load())?.["Title"] ?? %s`,
	}},
	'l': {{"Parts", "Doc.Parts"}, {"split(%s, %s)", "%d.Parts", "%m.Tags", "%l[%i:]", `split(%s, "a", 2)`, "splitAfter(%s, %s)", "split(%s, %s, %i)", "%l[%i:%i]", "(%b ? %l : %l)", "(Doc?.Parts ?? %l)"}},
	'o': {{"<", "<=", ">", ">="}, {"<", "<=", ">", ">="}},
	'r': {{"Role"}, {"Roles[%i]", "(%b ? %r : %r)"}},
	'd': {{"Doc", "Other"}, {"(%b ? %d : %d)"}},
	'm': {{"Doc.Meta", "Other.Meta"}, {"%d.Meta", "%m.Next", "%m.Up()", "%d.Load()", "(%b ? %m : %m)", "Deep[%s]", "(%m ?? %m)", "Who.Home()"}},
}

// loopProductions are productions with closures, lists and maps.
var loopProductions = map[byte][]string{
	'b': {"any(%l, # == %s)", "all(%l, # contains %s)", "none(Ids, # > %n)", "one(%l, # < %s)", `%s matches "^[a-z]+$"`, "any(Parts, # in %l)", "%s in map(%l, upper(#))",
		"[%n, 1] == [%i, 1]", `%s in {"a": 1, "ann": %n}`, "(%b ? %n : %f) > 1", "max(%f, %n) < %f", "%l == %l", "any([Doc, Other], #?.Owner == %s)", "(%b ? %s : %n) == %s",
		"%s in (%b ? %l : Labels)", "count(%l, # == %s) > 1", "(%b ? Note : %b) == nil", "any(Roles, # == %r)"},
	'i': {"first(Ids) ?? %n", "find(Ids, # > %n) ?? 4", "sum(Ids)", "max(Ids)", "min(Levels)", "sum(Ids, # * %n)", "reduce(Ids, #acc * # - %n, 1)", "last(Ids) ?? %n", "sort(Ids)[%i]",
		"max(Ids, %n)", `sort([%n, %i], "desc")[0]`, "findLast(Ids, # < %i) ?? %n", "(%b ? Count : %n)", "[%n, %i][%n]"},
	'n': {"len(filter(%l, # != %s))", "count(%l, len(#) > %n)", "sum(map(%l, len(#)))", "reduce(1..3, #acc + # * %n, 0)", "len(%n..4)", "findIndex(%l, # == %s)",
		"sum(%l, len(#))", "len(uniq(%l))", "len(concat(%l, %l))", "len(take(%l, 2))",
		"findLastIndex(%l, # == %s)", "len(groupBy(%l, #))", "len(1..%n % 9)", "sum(groupBy(%l, len(#))[%n] ?? [], len(#))", "len(%b ? %l : %s)", "len(keys({\"a\": %s}))"},
	'f': {"mean(1..5)", "median([%n, %n, %n])"},
	's': {`join(map(%l, # + %s), "-")`, "first(%l) ?? %s", "last(%l) ?? %s", "repeat(%s, 2)", `get(Labels, %s) ?? %s`, `join(sort(%l), ",")`, "[%s, %s][%n % 2]",
		`join(filter(%l, # != ""))`, "{\"a\": %s}.a", "toBase64(%s)", "find(%l, # > %s) ?? %s", `join(reverse(%l), "")`, `join(map(sortBy(%l, len(#)), string(#index) + #))`,
		"toJSON(%l)", "join(map(filter([Doc, Other], # != nil), .Owner))", "%d.Tenant() + first(Parts)",
		`join(flatten([%l, [%s]]))`, `toPairs({"a": %s})[0][1]`, `fromPairs([["a", %s]]).a`, "(groupBy(%l, len(#))[%n] ?? [%s])[0]", "findLast(%l, # < %s) ?? %s",
		`join(sortBy(%l, #, "desc"))`, "type(%b ? %s : %n)", "string(%b ? %n : %s)", "reduce(%l, #acc + #, %s)", "let v = %b ? %s : %n; string(v)", "string([%s, %n, %b])",
		"(%b ? %d : %m)?.Title ?? %s", `fromJSON(toJSON(%s)) + %s`, "fromBase64(toBase64(%s))"},
}

func (g *sampler) gen(kind byte, depth int) string {
	p := productions[kind]
	from := p[0]
	if depth > 0 && g.IntN(8) > 0 {
		from = p[1]
		if g.loops {
			from = slices.Concat(from, loopProductions[kind])
		}
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
