package annotations

import (
	"go/ast"
	"go/token"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// comments returns a comment group of the lines. It begins at position 1.
func comments(lines ...string) *ast.CommentGroup {
	cg := &ast.CommentGroup{}
	pos := 1
	for _, l := range lines {
		cg.List = append(cg.List, &ast.Comment{Slash: token.Pos(pos), Text: l})
		pos += len(l) + 1
	}
	return cg
}

// bare removes positions and directives from a value, and keeps its meaning.
func bare(v any) any {
	switch v := v.(type) {
	case Rule:
		v.Directive, v.Settle, v.Pause, v.Hold = Directive{}, bareExpr(v.Settle), bareExpr(v.Pause), Text{Value: v.Hold.Value}
		slices.SortFunc(v.Values, func(a, b Value) int { return strings.Compare(a.Name, b.Name) })
		for i := range v.Values {
			if v.Values[i].Kind == DurationKind || v.Values[i].Kind == RangeKind || v.Values[i].Kind == CountKind {
				v.Values[i].Text = "" // which may be spelled in several ways
			}
		}
		v.Key, v.Distinct, v.Message = bareTemplate(v.Key), bareTemplate(v.Distinct), bareTemplate(v.Message)
		v.Limit, v.Cost, v.When, v.Anchor = bareAmount(v.Limit), bareAmount(v.Cost), bareExpr(v.When), bareExpr(v.Anchor)
		return v
	case Directive:
		if v.Verb.Value != "wrap" {
			return strings.TrimSpace(v.Verb.Value + " " + v.Text(""))
		}
		said := map[string]string{}
		for _, a := range v.Args {
			said[a.Name.Value] = a.Value.Value
		}
		return said
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
	for _, d := range []Directive{g.Wrap, g.Skip, g.Fallback} {
		if !d.IsZero() {
			values = append(values, bare(d))
		}
	}
	return values
}

// with adds values to a rule. The list alternates between names of arguments and their values.
func with(r Rule, pairs ...any) Rule {
	for i := 0; i < len(pairs); i += 2 {
		v := Value{Argument: LookUp("rule").Argument(pairs[i].(string))}
		switch value := pairs[i+1].(type) {
		case string:
			v.Text = value
		case int64:
			v.Count = value
		case time.Duration:
			v.Duration = value
		case [2]time.Duration:
			v.Duration, v.Longest = value[0], value[1]
		}
		r.Values = append(r.Values, v)
	}
	slices.SortFunc(r.Values, func(a, b Value) int { return strings.Compare(a.Name, b.Name) })
	return r
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
		{`//ratelimit:rule key="{phone}" limit=10 cron="0 0 0 * * *" message="Ten; {phone} has had them."`, with(Rule{
			Key: template("{phone}", island("phone")), Limit: Amount{Int: 10},
			Message: template("Ten; {phone} has had them.",
				Part{Literal: "Ten; "}, island("phone"), Part{Literal: " has had them."}),
		}, "cron", "0 0 0 * * *")},
		{"//ratelimit:rule\tper=1m\t \tlimit=1_000 ", with(Rule{Limit: Amount{Int: 1000}}, "per", time.Minute)},
		{"//ratelimit:rule per=1m limit=-3\r", with(Rule{Limit: Amount{Int: -3}}, "per", time.Minute)},
		{`//ratelimit:rule limit="vip ? 100 : 10" cost=len(items) when=user?.ID==7`, Rule{
			Limit: Amount{Expr: expr("vip ? 100 : 10")}, Cost: Amount{Expr: expr("len(items)")}, When: expr("user?.ID==7"),
		}},
		{`//ratelimit:rule when=f(a,b==1) message=请稍候，谢谢`, Rule{
			When: expr("f(a,b==1)"), Message: template("请稍候，谢谢", Part{Literal: "请稍候，谢谢"}),
		}},
		{`//ratelimit:rule limit=0 cost=1.5`, Rule{Cost: Amount{Expr: expr("1.5")}}},
		{"//ratelimit:rule key=`{m[\"a b\"]}` tz=Asia/Shanghai name=examples/sms.Sender-1", with(
			Rule{Key: template(`{m["a b"]}`, island(`m["a b"]`))}, "tz", "Asia/Shanghai", "name", "examples/sms.Sender-1",
		)},
		{`//ratelimit:rule key={m["a"]} message="caf\u00e9\n\"\\\x21 é"`, Rule{
			Key: template(`{m["a"]}`, island(`m["a"]`)), Message: template("café\n\"\\! é", Part{Literal: "café\n\"\\! é"}),
		}},
		{`//ratelimit:rule algorithm=token-bucket burst=5 prepay warmup=10s wait=1s queue=3`, with(
			Rule{}, "algorithm", "token-bucket", "burst", int64(5), "prepay", nil, "warmup", 10*time.Second, "wait", time.Second, "queue", int64(3),
		)},
		{`//ratelimit:rule algorithm="calendar" slices=6 block=1h distinct="{to}" scope=instance mode=shadow refund=error on-error=local`, with(
			Rule{Distinct: template("{to}", island("to"))}, "algorithm", "calendar", "slices", int64(6), "block", time.Hour,
			"scope", "instance", "mode", "shadow", "refund", "error", "on-error", "local",
		)},
		{`//ratelimit:rule cost="estimate(req)" settle="resp.Usage.Total"`, Rule{
			Cost: Amount{Expr: expr("estimate(req)")}, Settle: expr("resp.Usage.Total"),
		}},
		{`//ratelimit:wrap`, map[string]string{}},
		{`//ratelimit:wrap name=LimitedSénder prefix=app/v1 tz=Europe/Paris on-error=allow`, map[string]string{
			"name": "LimitedSénder", "prefix": "app/v1", "tz": "Europe/Paris", "on-error": "allow",
		}},
		{`//ratelimit:skip`, "skip"},
		{`//ratelimit:fallback sendLater`, "fallback sendLater"},
		{`//ratelimit:fallback  .SendLater `, "fallback .SendLater"},
		{`//ratelimit:fallback Queue.SendLater`, "fallback Queue.SendLater"},
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
	if len(errs) != 1 || len(g.Rules) != 3 || g.Skip.IsZero() {
		t.Fatalf("got %+v, %v", g, errs)
	}
	for i, want := range []struct {
		name string
		bad  bool
	}{{"a", false}, {"b", true}, {"c", false}} {
		if r := g.Rules[i]; r.Text("name") != want.name || r.Bad != want.bad {
			t.Errorf("rule %d is %q, bad %t; want %+v", i, r.Text("name"), r.Bad, want)
		}
	}
	if g, errs := Parse(nil); len(errs) > 0 || !reflect.DeepEqual(g, Group{}) {
		t.Errorf("no comments: %+v, %v", g, errs)
	}
}

// TestBounds expects one short error for a comment that is too long.
func TestBounds(t *testing.T) {
	many := make([]string, 20_000)
	for i := range many {
		many[i] = "//ratelimit:rule limit=1 per=1m"
	}
	for name, lines := range map[string][]string{
		"rules":   many,
		"islands": {"//ratelimit:rule limit=1 per=1m key=" + strings.Repeat("{a}", 20_000)},
		"value":   {"//ratelimit:rule limit=1 per=1m name=" + strings.Repeat("a", 5000)},
		"zeros":   {"//ratelimit:rule " + strings.Repeat("\x00", 1<<20)},
	} {
		g, errs := Parse(comments(lines...))
		if len(errs) != 1 || len(errs[0].Msg) > 200 || len(g.Rules) > maxRules {
			t.Errorf("%s: %d rules, %d errors", name, len(g.Rules), len(errs))
		}
	}
}

// TestSet sets every argument of a rule.
func TestSet(t *testing.T) {
	for _, a := range LookUp("rule").Args {
		func() {
			defer func() {
				if fault := recover(); fault != nil {
					t.Errorf("%s is not in the map of its kind in Rule.set: %v", a.Name, fault)
				}
			}()
			new(Rule).set(&parser{}, &a, Text{Value: "1"})
		}()
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

// TestPrintParse spells random rules in random ways, and expects Parse to return the same rules and the right positions.
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

// spells checks that the position of every byte of v is that of the same byte in line, or of its escape.
func spells(t *rapid.T, line string, v Text) {
	for i := range len(v.Value) {
		if at := line[v.At(i)-1]; at != v.Value[i] && at != '\\' {
			t.Fatalf("%s: byte %d of %q has the position of %q", line, i, v.Value, at)
		}
		if i > 0 && v.At(i) < v.At(i-1) {
			t.Fatalf("%s: byte %d of %q has a smaller position than the byte before it", line, i, v.Value)
		}
	}
}

// drawArguments sets random arguments of r, and returns the texts that spell them.
func drawArguments(t *rapid.T, r *Rule) map[string]string {
	spelled, pairs := map[string]string{}, []any(nil)
	for _, a := range LookUp("rule").Args {
		if !rapid.Bool().Draw(t, a.Name+" given") {
			continue
		}
		var text string
		var value any
		switch a.Kind {
		case FlagKind:
			spelled[a.Name], pairs = a.Name, append(pairs, a.Name, nil)
			continue
		case TemplateKind:
			to := map[string]*Template{"key": &r.Key, "distinct": &r.Distinct, "message": &r.Message}[a.Name]
			*to = drawTemplate(t)
			text = to.Value
		case AmountKind:
			to := map[string]*Amount{"limit": &r.Limit, "cost": &r.Cost}[a.Name]
			*to = Amount{Int: rapid.Int64().Draw(t, a.Name)}
			text = strconv.FormatInt(to.Int, 10)
		case ExprKind:
			to := map[string]*Expr{"when": &r.When, "settle": &r.Settle, "pause": &r.Pause, "anchor": &r.Anchor}[a.Name]
			text = rapid.StringMatching(`[a-z]\PC*`).Draw(t, a.Name)
			*to = expr(text)
		case CountKind:
			n := rapid.Int64Min(1).Draw(t, a.Name)
			text, value = strconv.FormatInt(n, 10), n
		case RangeKind:
			d := [2]time.Duration{time.Duration(rapid.Int64Min(1).Draw(t, a.Name))}
			if text = d[0].String(); rapid.Bool().Draw(t, "range") {
				d[1] = time.Duration(rapid.Int64Min(1).Draw(t, "longest"))
				text += ".." + d[1].String()
			}
			value = d
		case DurationKind:
			d := time.Duration(rapid.Int64Min(1).Draw(t, a.Name))
			text, value = d.String(), d
		case EnumKind:
			text = rapid.SampledFrom(a.words()).Draw(t, a.Name)
			value = text
		case PeriodKind:
			text = rapid.SampledFrom([]string{"1d", "366d", "52w", "3mo", "12mo", "1y", "10y"}).Draw(t, a.Name)
			value = text
		case NameKind:
			text = rapid.StringMatching(`[A-Za-z0-9._/-]+`).Draw(t, a.Name)
			value = text
		case IdentKind: // hold
			r.Hold = Text{Value: rapid.StringMatching(`[a-z]+_[A-Za-z0-9]*`).Draw(t, a.Name)}
			text = r.Hold.Value
		case CronKind, ZoneKind:
			text = rapid.StringMatching(`[0-9*?/,-]+( [0-9*?/,-]+){4,5}`).Draw(t, a.Name)
			value = text
		}
		spelled[a.Name] = a.Name + "=" + drawSpelling(t, text)
		if value != nil {
			pairs = append(pairs, a.Name, value)
		}
	}
	*r = with(*r, pairs...)
	return spelled
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

// drawSpelling spells v at random as a word, a string or a raw string.
func drawSpelling(t *rapid.T, v string) string {
	spellings := []string{strconv.Quote(v), strconv.QuoteToASCII(v)}
	if !strings.ContainsAny(v, "`\n\r") {
		spellings = append(spellings, "`"+v+"`")
	}
	if strings.IndexFunc(v, func(r rune) bool { return !isNoSpace(r) }) < 0 && strings.LastIndexAny(v, ",;") != len(v)-1 &&
		!strings.ContainsAny(v[:1], "='\"`") && !separator.MatchString(v) && strings.IndexAny(v, "“”„‘’‚«»") != 0 {
		spellings = append(spellings, v)
	}
	return rapid.SampledFrom(spellings).Draw(t, "spelling")
}
