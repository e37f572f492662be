package emit

import (
	"strconv"
	"time"

	"github.com/dave/jennifer/jen"

	"github.com/ratelimit-go/ratelimit/generator/internal/model"
	"github.com/ratelimit-go/ratelimit/runtime"
)

// list is how a list is laid out, one element a line.
func list(open, shut string) jen.Options {
	return jen.Options{Open: open, Close: shut, Separator: ",", Multi: true}
}

// rules declares the variables with the rules of methods; nil if there are none.
func (p *planned) rules(f *model.File) *jen.Statement {
	var defs []jen.Code
	for _, w := range f.Wrappers {
		for _, m := range w.Methods {
			if len(m.Rules) == 0 {
				continue
			}
			var args []jen.Code
			for _, r := range m.Rules {
				args = append(args, p.rule(r.Limit))
			}
			prepared := p.of(runtimePackage.Path(), "NewRules").Custom(list("("+quote(m.Scope)+",", ")"), args...)
			defs = append(defs, jen.Id(p.rulesOf[m]).Op("=").Add(prepared))
		}
	}
	switch len(defs) {
	case 0:
		return nil
	case 1:
		return jen.Var().Add(defs...)
	}
	return jen.Var().Defs(defs...)
}

// of is a name of an imported package.
func (p *planned) of(path, name string) *jen.Statement {
	return jen.Id(p.imports.Name(path)).Dot(name)
}

var algorithms = map[runtime.Algorithm]string{
	runtime.FixedWindow: "FixedWindow", runtime.Calendar: "Calendar", runtime.TokenBucket: "TokenBucket",
	runtime.LeakyBucket: "LeakyBucket", runtime.SlidingCounter: "SlidingCounter",
}

// rule is a composite literal without the fields that are zero.
func (p *planned) rule(r runtime.Rule) *jen.Statement {
	var fields []jen.Code
	field := func(name string, value jen.Code) {
		fields = append(fields, jen.Id(name).Op(":").Add(value))
	}
	textField := func(name, value string) {
		if value != "" {
			field(name, text(value))
		}
	}
	textField("Name", r.Name)
	textField("Key", r.Key)
	if name := algorithms[r.Algorithm]; name != "" {
		field("Algorithm", p.of(runtimePackage.Path(), name))
	}
	field("Limit", jen.Id(strconv.FormatInt(r.Limit, 10)))
	if r.Per > 0 {
		field("Per", jen.Id(p.duration(r.Per)))
	}
	textField("Cron", r.Cron)
	textField("TZ", r.TZ)
	if r.Burst > 0 {
		field("Burst", jen.Id(strconv.FormatInt(r.Burst, 10)))
	}
	textField("Message", r.Message)
	return p.of(runtimePackage.Path(), "Rule").Values(fields...)
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

func text(s string) *jen.Statement { return jen.Id(quote(s)) }

// quote writes a string as one would by hand.
func quote(s string) string {
	q := strconv.Quote(s)
	if len(q) > len(s)+2 && strconv.CanBackquote(s) {
		return "`" + s + "`"
	}
	return q
}
