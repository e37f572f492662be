package emit

import (
	"strconv"
	"strings"
	"time"

	"github.com/dave/jennifer/jen"

	"github.com/ratelimit-go/ratelimit/generator/internal/model"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
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

// The names of constants in package ratelimit, but for zero values.
var (
	algorithms = map[ratelimit.Algorithm]string{
		ratelimit.FixedWindow: "FixedWindow", ratelimit.Calendar: "Calendar", ratelimit.TokenBucket: "TokenBucket",
		ratelimit.LeakyBucket: "LeakyBucket", ratelimit.SlidingCounter: "SlidingCounter",
	}
	modes    = map[ratelimit.Mode]string{ratelimit.ModeShadow: "ModeShadow", ratelimit.ModeTrigger: "ModeTrigger"}
	scopes   = map[ratelimit.Scope]string{ratelimit.ScopeInstance: "ScopeInstance"}
	refundOn = map[ratelimit.Refund]string{ratelimit.RefundError: "RefundError"}
	policies = map[ratelimit.FailurePolicy]string{ratelimit.FailClosed: "FailClosed", ratelimit.FailOpen: "FailOpen", ratelimit.FailLocal: "FailLocal"}
)

// rule is a composite literal without the fields that are zero. The name is left to NewRules where that is the method's.
func (p *planned) rule(r *model.Rule, method string) *jen.Statement {
	l := literal{planned: p}
	if r.Limit.Name != method {
		l.text("Name", r.Limit.Name)
	}
	l.text("Key", r.Limit.Key)
	l.text("Distinct", r.Limit.Distinct)
	l.constant("Algorithm", algorithms[r.Limit.Algorithm])
	l.limit(r)
	l.duration("Per", r.Limit.Per)
	l.text("Cron", r.Limit.Cron)
	l.text("TZ", r.Limit.TZ)
	l.number("Burst", r.Limit.Burst)
	if r.Limit.Prepay {
		l.field("Prepay", jen.True())
	}
	l.duration("Warmup", r.Limit.Warmup)
	l.number("Slices", r.Limit.Slices)
	l.duration("Wait", r.Limit.Wait)
	l.number("Queue", r.Limit.Queue)
	l.duration("Block", r.Limit.Block)
	l.constant("Mode", modes[r.Limit.Mode])
	l.constant("Scope", scopes[r.Limit.Scope])
	l.constant("Refund", refundOn[r.Limit.Refund])
	l.constant("OnError", policies[r.Limit.OnError])
	l.text("Message", r.Limit.Message)
	return jen.Id(p.ratelimit("Rule")).Values(l.fields...)
}

// literal is a composite literal in the making.
type literal struct {
	*planned
	fields []jen.Code
}

func (l *literal) field(name string, value jen.Code) {
	l.fields = append(l.fields, jen.Id(name).Op(":").Add(value))
}

func (l *literal) text(name, value string) {
	if value != "" {
		l.field(name, jen.Id(quote(value)))
	}
}

func (l *literal) number(name string, n int64) {
	if n > 0 {
		l.field(name, jen.Id(strconv.FormatInt(n, 10)))
	}
}

func (l *literal) duration(name string, d time.Duration) {
	if d > 0 {
		l.field(name, jen.Id(l.planned.duration(d)))
	}
}

// constant is one of package ratelimit.
func (l *literal) constant(name, value string) {
	if value != "" {
		l.field(name, jen.Id(l.ratelimit(value)))
	}
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
