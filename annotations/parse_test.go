package annotations

import (
	"go/ast"
	"go/token"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// comments makes a comment group of lines, the first at position 1.
func comments(lines ...string) *ast.CommentGroup {
	cg := &ast.CommentGroup{}
	pos := 1
	for _, l := range lines {
		cg.List = append(cg.List, &ast.Comment{Slash: token.Pos(pos), Text: l})
		pos += len(l) + 1
	}
	return cg
}

// bare strips a value of everything but what it means: positions, and the directive it comes from.
func bare(v any) any {
	switch v := v.(type) {
	case Rule:
		v.Directive = Directive{}
		v.Key, v.Distinct, v.Message = bareTemplate(v.Key), bareTemplate(v.Distinct), bareTemplate(v.Message)
		v.Limit, v.Cost, v.When = bareAmount(v.Limit), bareAmount(v.Cost), bareExpr(v.When)
		return v
	case Wrap:
		v.Directive = Directive{}
		return v
	case Fallback:
		return v.Func.Value
	case Skip:
		return "skip"
	}
	panic("bare: another kind of value")
}

func bareExpr(e Expr) Expr { return Expr{Text{Value: e.Value}} }

func bareAmount(a Amount) Amount { return Amount{Int: a.Int, Expr: bareExpr(a.Expr)} }

func bareTemplate(t Template) Template {
	var parts []Part
	for _, p := range t.Parts {
		parts = append(parts, Part{Literal: p.Literal, Island: bareExpr(p.Island)})
	}
	return Template{Text: Text{Value: t.Value}, Parts: parts}
}

func all(g Group) []any {
	var values []any
	for _, r := range g.Rules {
		values = append(values, bare(r))
	}
	for _, w := range g.Wraps {
		values = append(values, bare(w))
	}
	for _, s := range g.Skips {
		values = append(values, bare(s))
	}
	for _, f := range g.Fallbacks {
		values = append(values, bare(f))
	}
	return values
}

func expr(s string) Expr { return Expr{Text{Value: s}} }

func island(s string) Part { return Part{Island: expr(s)} }

func template(text string, parts ...Part) Template { return Template{Text{Value: text}, parts} }

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		line string
		want any
	}{
		{`//ratelimit:rule`, Rule{}},
		{"//ratelimit:rule\r", Rule{}},
		{`//ratelimit:rule key="{phone}" limit=10 cron="0 0 0 * * *" message="Ten; {phone} has had them."`, Rule{
			Key: template("{phone}", island("phone")), Limit: Amount{Int: 10}, Cron: "0 0 0 * * *",
			Message: template("Ten; {phone} has had them.",
				Part{Literal: "Ten; "}, island("phone"), Part{Literal: " has had them."}),
		}},
		{"//ratelimit:rule\tper=1m\t \tlimit=1_000 ", Rule{Limit: Amount{Int: 1000}, Per: time.Minute}},
		{"//ratelimit:rule per=1m limit=-3\r", Rule{Limit: Amount{Int: -3}, Per: time.Minute}},
		{`//ratelimit:rule limit="vip ? 100 : 10" cost=len(items) when=user?.ID==7`, Rule{
			Limit: Amount{Expr: expr("vip ? 100 : 10")}, Cost: Amount{Expr: expr("len(items)")}, When: expr("user?.ID==7"),
		}},
		{`//ratelimit:rule when=f(a,b==1) message=请稍候，谢谢`, Rule{
			When: expr("f(a,b==1)"), Message: template("请稍候，谢谢", Part{Literal: "请稍候，谢谢"}),
		}},
		{`//ratelimit:rule limit=0 cost=1.5`, Rule{Cost: Amount{Expr: expr("1.5")}}},
		{"//ratelimit:rule key=`{m[\"a b\"]}` tz=Asia/Shanghai name=examples/sms.Sender-1", Rule{
			Key: template(`{m["a b"]}`, island(`m["a b"]`)), TZ: "Asia/Shanghai", Name: "examples/sms.Sender-1",
		}},
		{`//ratelimit:rule key={m["a"]} message="caf\u00e9\n\"\\\x21 é"`, Rule{
			Key: template(`{m["a"]}`, island(`m["a"]`)), Message: template("café\n\"\\! é", Part{Literal: "café\n\"\\! é"}),
		}},
		{`//ratelimit:rule algorithm=token-bucket burst=5 prepay warmup=10s wait=1s queue=3`, Rule{
			Algorithm: "token-bucket", Burst: 5, Prepay: true, Warmup: 10 * time.Second, Wait: time.Second, Queue: 3,
		}},
		{`//ratelimit:rule algorithm="calendar" slices=6 block=1h distinct="{to}" scope=instance mode=shadow refund=error on-error=local`, Rule{
			Algorithm: "calendar", Slices: 6, Block: time.Hour, Distinct: template("{to}", island("to")),
			Scope: "instance", Mode: "shadow", Refund: "error", OnError: "local",
		}},
		{`//ratelimit:wrap`, Wrap{}},
		{`//ratelimit:wrap name=LimitedSénder prefix=app/v1 tz=Europe/Paris on-error=allow`, Wrap{
			Name: "LimitedSénder", Prefix: "app/v1", TZ: "Europe/Paris", OnError: "allow",
		}},
		{`//ratelimit:skip`, "skip"},
		{`//ratelimit:fallback sendLater`, "sendLater"},
		{`//ratelimit:fallback  .SendLater `, ".SendLater"},
		{`//ratelimit:fallback Queue.SendLater`, "Queue.SendLater"},
	} {
		g, errs := Parse(comments(tt.line))
		got := all(g)
		if len(errs) > 0 || len(got) != 1 || !reflect.DeepEqual(got[0], tt.want) {
			t.Errorf("%s\ngot  %+v, %v\nwant %+v", tt.line, got, errs, tt.want)
		}
	}
}

func TestGroup(t *testing.T) {
	g, errs := Parse(comments(
		"// Send sends.", "//",
		"//ratelimit:rule name=a", "//go:noinline", "//ratelimit:skip", "//ratelimit:rule limit=x, name=b", "//ratelimit:rule name=c"))
	if len(errs) != 1 || len(g.Rules) != 3 || len(g.Skips) != 1 {
		t.Fatalf("got %+v, %v", g, errs)
	}
	for i, want := range []struct {
		name string
		bad  bool
	}{{"a", false}, {"b", true}, {"c", false}} {
		if r := g.Rules[i]; r.Name != want.name || r.Bad != want.bad {
			t.Errorf("rule %d is %q, bad %t; want %+v", i, r.Name, r.Bad, want)
		}
	}
	if g, errs := Parse(nil); len(errs) > 0 || !reflect.DeepEqual(g, Group{}) {
		t.Errorf("no comments: %+v, %v", g, errs)
	}
}

func TestPositions(t *testing.T) {
	const line = `//ratelimit:rule limit=7 key="é\u00e9\"{ a+b }\x41"  message=` + "`x {a}`" + ` prepay`
	g, errs := Parse(comments(line))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	r := g.Rules[0]
	key, message := r.Key.Text, r.Message.Text
	at := func(what string) token.Pos { return token.Pos(1 + strings.Index(line, what)) }
	for what, pair := range map[string][2]token.Pos{
		"slashes":               {r.Pos, 1},
		"verb":                  {r.Verb.Pos, at("rule")},
		"limit":                 {r.Limit.Pos, at("7")},
		"first byte of é":       {key.At(0), at("é")},
		"second byte of é":      {key.At(1), at("é") + 1},
		"first byte of \\u00e9": {key.At(2), at(`\u00e9`)},
		"second one":            {key.At(3), at(`\u00e9`)},
		"\\\"":                  {key.At(4), at(`\"`)},
		"{":                     {key.At(5), at(`{ a`)},
		"island":                {r.Key.Parts[1].Island.Pos, at(`a+b`)},
		"b of the island":       {r.Key.Parts[1].Island.At(2), at(`b }`)},
		"behind the island":     {r.Key.Parts[1].Island.At(3), at(` }\x41`)},
		"\\x41":                 {key.At(len(key.Value) - 1), at(`\x41`)},
		"behind the key":        {key.At(len(key.Value)), at(`"  message`)},
		"message":               {message.At(0), at(`x {`)},
		"behind the message":    {message.At(len(message.Value)), at("` prepay")},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s is at %d, want %d", what, pair[0], pair[1])
		}
	}
	if a, ok := r.Arg("prepay"); !ok || a.Name.Pos != at("prepay") || !a.Value.IsZero() {
		t.Errorf("prepay is %+v", a)
	}
	if _, ok := r.Arg("per"); ok {
		t.Error("per is not there")
	}
}

// TestPrintParse prints random rules in random spelling and expects them back, every byte at its place.
func TestPrintParse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var want Rule
		spelled := drawArguments(t, &want)
		line := "//ratelimit:rule"
		for _, name := range rapid.Permutation(slices.Sorted(maps.Keys(spelled))).Draw(t, "order") {
			line += rapid.SampledFrom([]string{" ", "\t", "  "}).Draw(t, "space") + spelled[name]
		}
		g, errs := Parse(comments(line))
		if len(errs) > 0 || len(g.Rules) != 1 {
			t.Fatalf("%s: %v", line, errs)
		}
		got := g.Rules[0]
		if !reflect.DeepEqual(bare(got), any(want)) {
			t.Fatalf("%s\ngot  %+v\nwant %+v", line, bare(got), want)
		}
		for _, a := range got.Args {
			spells(t, line, a.Value)
		}
	})
}

// spells checks that every byte of v stands in line where it says, or an escape does.
func spells(t *rapid.T, line string, v Text) {
	for i := range len(v.Value) {
		if at := line[v.At(i)-1]; at != v.Value[i] && at != '\\' {
			t.Fatalf("%s: byte %d of %q is said to be spelled by %q", line, i, v.Value, at)
		}
		if i > 0 && v.At(i) < v.At(i-1) {
			t.Fatalf("%s: byte %d of %q stands before the one in front of it", line, i, v.Value)
		}
	}
}

// drawArguments gives some fields of r values and returns how these may be spelled, by the name of the argument.
func drawArguments(t *rapid.T, r *Rule) map[string]string {
	spelled := map[string]string{}
	give := func(name string, value func() string) {
		if rapid.Bool().Draw(t, name+" given") {
			spelled[name] = name + "=" + drawSpelling(t, value())
		}
	}
	for name, to := range sorted(map[string]*Template{"key": &r.Key, "distinct": &r.Distinct, "message": &r.Message}) {
		give(name, func() string { *to = drawTemplate(t); return to.Value })
	}
	for name, to := range sorted(map[string]*Amount{"limit": &r.Limit, "cost": &r.Cost}) {
		give(name, func() string { *to = Amount{Int: rapid.Int64().Draw(t, name)}; return strconv.FormatInt(to.Int, 10) })
	}
	for name, to := range sorted(map[string]*int64{"burst": &r.Burst, "queue": &r.Queue, "slices": &r.Slices}) {
		give(name, func() string { *to = rapid.Int64Min(1).Draw(t, name); return strconv.FormatInt(*to, 10) })
	}
	for name, to := range sorted(map[string]*time.Duration{"per": &r.Per, "wait": &r.Wait, "warmup": &r.Warmup, "block": &r.Block}) {
		give(name, func() string { *to = time.Duration(rapid.Int64Min(1).Draw(t, name)); return to.String() })
	}
	for name, word := range sorted(map[string]struct {
		to    *string
		valid []string
	}{
		"algorithm": {&r.Algorithm, algorithms}, "scope": {&r.Scope, scopes}, "mode": {&r.Mode, modes},
		"refund": {&r.Refund, refunds}, "on-error": {&r.OnError, onErrors},
	}) {
		give(name, func() string { *word.to = rapid.SampledFrom(word.valid).Draw(t, name); return *word.to })
	}
	give("cron", func() string {
		r.Cron = rapid.StringMatching(`[0-9*?/,-]+( [0-9*?/,-]+){4,5}`).Draw(t, "cron")
		return r.Cron
	})
	give("when", func() string { r.When = expr(rapid.StringMatching(`[a-z]\PC*`).Draw(t, "when")); return r.When.Value })
	give("name", func() string { r.Name = rapid.StringMatching(`[A-Za-z0-9._/-]+`).Draw(t, "name"); return r.Name })
	if r.Prepay = rapid.Bool().Draw(t, "prepay"); r.Prepay {
		spelled["prepay"] = "prepay"
	}
	return spelled
}

// sorted goes through m in one order, as what is drawn must be the same in every run.
func sorted[V any](m map[string]V) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if !yield(k, m[k]) {
				return
			}
		}
	}
}

func drawTemplate(t *rapid.T) Template {
	literal := rapid.StringMatching(`[^\pC{}"\x60]{1,5}`)
	expression := rapid.SampledFrom([]string{"a", "f(x, y)", `m["}"]`, `{a: 1}["a"]`, "'{' + b", "`}`", "`\\`", `"\"}"`, "é"})
	n := rapid.IntRange(1, 4).Draw(t, "parts")
	var tmpl Template
	for i := range n {
		if rapid.Bool().Draw(t, "island") {
			tmpl.Parts = append(tmpl.Parts, island(expression.Draw(t, "expression")))
		} else if i == 0 || tmpl.Parts[i-1].Literal == "" {
			tmpl.Parts = append(tmpl.Parts, Part{Literal: literal.Draw(t, "literal") + rapid.SampledFrom([]string{"", "{", "}", "}x"}).Draw(t, "braces")})
		} else {
			break
		}
	}
	tmpl.Value = spellTemplate(tmpl.Parts)
	if strings.TrimSpace(tmpl.Value) == "" {
		return template("x", Part{Literal: "x"})
	}
	return tmpl
}

// drawSpelling spells v as a word, a string or a raw string.
func drawSpelling(t *rapid.T, v string) string {
	spellings := []string{strconv.Quote(v), strconv.QuoteToASCII(v)}
	if !strings.ContainsAny(v, "`\n\r") {
		spellings = append(spellings, "`"+v+"`")
	}
	if strings.IndexFunc(v, func(r rune) bool { return !isNoSpace(r) }) < 0 && strings.LastIndexAny(v, ",;") != len(v)-1 &&
		!strings.ContainsAny(v[:1], "='\"`") && !parted.MatchString(v) && strings.IndexAny(v, "“”„‘’‚«»") != 0 {
		spellings = append(spellings, v)
	}
	return rapid.SampledFrom(spellings).Draw(t, "spelling")
}
