// Package fields converts the arguments of rule directives to the fields of [ratelimit.Rule], and back, by the table of arguments. It
// does not check whether arguments fit together.
package fields

import (
	"fmt"
	"iter"
	"reflect"
	"strings"

	"github.com/ratelimit-go/ratelimit/annotations"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// Of returns the rule of a directive. If the limit is an expression, the rule has Computed, and counts amounts if there is a cost. It has no
// message if the message has expressions. Each call computes these values.
func Of(d annotations.Rule) ratelimit.Rule {
	r := ratelimit.Rule{
		Key: d.Key.Value, Distinct: d.Distinct.Value, Limit: d.Limit.Int, Computed: !d.Limit.Expr.IsZero(), Message: static(d.Message),
	}
	for _, v := range d.Values {
		if v.Field != "" {
			Set(&r, v)
		}
	}
	r.Pausable = !d.Pause.IsZero()
	r.Amounts = r.Computed && d.Cost.Pos.IsValid() && r.Cron == "" && r.Every == "" && r.Algorithm == ratelimit.SlidingWindow && r.Distinct == ""
	return r
}

// static returns the text of a template, or "" if it has expressions.
func static(t annotations.Template) string {
	var b strings.Builder
	for _, p := range t.Parts {
		if !p.Island.IsZero() {
			return ""
		}
		b.WriteString(p.Literal)
	}
	return b.String()
}

// Set sets the field of a rule to the value of an argument.
func Set(rule *ratelimit.Rule, v annotations.Value) {
	field := reflect.ValueOf(rule).Elem().FieldByName(v.Field)
	switch v.Kind {
	case annotations.FlagKind:
		field.SetBool(true)
	case annotations.CountKind:
		field.SetInt(v.Count)
	case annotations.DurationKind:
		field.SetInt(int64(v.Duration))
	case annotations.RangeKind:
		field.SetInt(int64(v.Duration))
		rule.BlockMax = v.Longest
	case annotations.EnumKind:
		if field.Kind() == reflect.Bool {
			field.SetBool(v.Text == v.Words[1].Text)
			return
		}
		setWord(field, v.Text)
	default:
		field.SetString(v.Text)
	}
}

// setWord sets an enumeration to the value whose text is word. It ignores unknown words, which the parser has reported.
func setWord(field reflect.Value, word string) {
	const values = 32 // no enumeration has more values
	value := reflect.New(field.Type()).Elem()
	for i := range values {
		if value.SetUint(uint64(i)); fmt.Sprint(value.Interface()) == word {
			field.Set(value)
			return
		}
	}
}

// Given returns the arguments whose fields in rule are not zero, with the values of these fields, in the order of the table.
func Given(rule ratelimit.Rule) iter.Seq2[*annotations.Argument, reflect.Value] {
	return func(yield func(*annotations.Argument, reflect.Value) bool) {
		args, fields := annotations.LookUp("rule").Args, reflect.ValueOf(rule)
		for i := range args {
			if args[i].Field == "" {
				continue
			}
			if field := fields.FieldByName(args[i].Field); !field.IsZero() && !yield(&args[i], field) {
				return
			}
		}
	}
}
