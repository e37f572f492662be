// Package fields carries the arguments of rule directives into the fields of [ratelimit.Rule], and back, by the table of arguments.
// Whether they go together is not decided here.
package fields

import (
	"fmt"
	"iter"
	"reflect"
	"strings"

	"github.com/ratelimit-go/ratelimit/annotations"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// Of returns what a directive says by itself. A limit that is an expression is 1, and a message with expressions is left out: each
// call brings its own.
func Of(d annotations.Rule) ratelimit.Rule {
	r := ratelimit.Rule{Key: d.Key.Value, Distinct: d.Distinct.Value, Limit: d.Limit.Int, Message: static(d.Message)}
	if !d.Limit.Expr.IsZero() {
		r.Limit = 1
	}
	for _, v := range d.Values {
		if v.Field != "" {
			Set(&r, v)
		}
	}
	return r
}

// static is the text of a template without islands.
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

// Set gives the field of a rule the value of an argument.
func Set(rule *ratelimit.Rule, v annotations.Value) {
	field := reflect.ValueOf(rule).Elem().FieldByName(v.Field)
	switch v.Kind {
	case annotations.FlagKind:
		field.SetBool(true)
	case annotations.CountKind:
		field.SetInt(v.Count)
	case annotations.DurationKind:
		field.SetInt(int64(v.Duration))
	case annotations.EnumKind:
		setWord(field, v.Text)
	default:
		field.SetString(v.Text)
	}
}

// setWord gives an enumeration the value whose text is word. Words that are wrong have been reported.
func setWord(field reflect.Value, word string) {
	const values = 32 // more than any enumeration has
	value := reflect.New(field.Type()).Elem()
	for i := range values {
		if value.SetUint(uint64(i)); fmt.Sprint(value.Interface()) == word {
			field.Set(value)
			return
		}
	}
}

// Given returns the arguments of rule whose fields have a value, and that value, in the order of the table.
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
