package emit

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dave/jennifer/jen"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/model"
)

// list is how a list is laid out, one element a line.
func list(open, shut string) jen.Options {
	return jen.Options{Open: open, Close: shut, Separator: ",", Multi: true}
}

// rules declares the variables with the rules of methods and with their programs; nil if there are none.
func (p *planned) rules(f *model.File) *jen.Statement {
	var defs []jen.Code
	for _, w := range f.Wrappers {
		for _, m := range w.Methods {
			if len(m.Rules) == 0 {
				continue
			}
			var args []jen.Code
			for _, r := range m.Rules {
				args = append(args, p.rule(r, m.Scope))
			}
			prepared := jen.Id(p.wrap("NewRules")).Custom(list("("+quote(m.Scope)+",", ")"), args...)
			defs = append(defs, jen.Id(p.rulesOf[m]).Op("=").Add(prepared))
		}
	}
	defs = append(defs, p.programDefs()...)
	switch len(defs) {
	case 0:
		return nil
	case 1:
		return jen.Var().Add(defs...)
	}
	return jen.Var().Defs(defs...)
}

// rule is a composite literal without the fields that are zero. The name is left to NewRules where that is the method's.
func (p *planned) rule(r *model.Rule, method string) *jen.Statement {
	l := literal{planned: p}
	rule := r.Limit
	if rule.Name == method {
		rule.Name = ""
	}
	if rule.Limit == 0 {
		rule.Limit = -1 // to be among the fields
	}
	for arg, value := range model.Arguments(rule) {
		switch arg.Kind {
		case annotations.AmountKind:
			l.limit(r)
		case annotations.DurationKind:
			l.field(arg.Field, jen.Id(p.duration(time.Duration(value.Int()))))
		case annotations.CountKind:
			l.field(arg.Field, jen.Id(strconv.FormatInt(value.Int(), 10)))
		case annotations.FlagKind:
			l.field(arg.Field, jen.True())
		case annotations.EnumKind:
			l.field(arg.Field, jen.Id(p.ratelimit(constant(arg, value.Interface()))))
		default:
			l.field(arg.Field, jen.Id(quote(value.String())))
		}
	}
	return jen.Id(p.ratelimit("Rule")).Values(l.fields...)
}

// constant is the name of the constant with a value.
func constant(arg *annotations.Argument, value any) string {
	text := fmt.Sprint(value)
	return arg.Words[slices.IndexFunc(arg.Words, func(w annotations.Word) bool { return w.Text == text })].Const
}

// literal is a composite literal in the making.
type literal struct {
	*planned
	fields []jen.Code
}

func (l *literal) field(name string, value jen.Code) {
	l.fields = append(l.fields, jen.Id(name).Op(":").Add(value))
}

// limit also stands where it is zero. Where each call brings its own, it says which that is.
func (l *literal) limit(r *model.Rule) {
	value := strconv.FormatInt(r.Limit.Limit, 10)
	if e := r.Rule.Limit.Expr; !e.IsZero() {
		value += " /* replaced in each call by " + strings.ReplaceAll(oneLine(e.Value), "*/", "* /") + " */"
	}
	l.field("Limit", jen.Id(value))
}

var units = []struct {
	name string
	time.Duration
}{
	{"Hour", time.Hour}, {"Minute", time.Minute}, {"Second", time.Second},
	{"Millisecond", time.Millisecond}, {"Microsecond", time.Microsecond}, {"Nanosecond", 1},
}

// duration writes d in the largest unit that leaves no fraction.
func (p *planned) duration(d time.Duration) string {
	for _, u := range units {
		if d%u.Duration != 0 {
			continue
		}
		unit := p.imports.Name("time") + "." + u.name
		if n := d / u.Duration; n != 1 {
			return strconv.FormatInt(int64(n), 10) + " * " + unit
		}
		return unit
	}
	return "0"
}

// quote writes a string as one would by hand.
func quote(s string) string {
	q := strconv.Quote(s)
	if len(q) > len(s)+2 && strconv.CanBackquote(s) && !strings.Contains(s, "\t") {
		return "`" + s + "`"
	}
	return q
}
