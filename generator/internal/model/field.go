package model

import (
	"fmt"
	"iter"
	"reflect"

	"github.com/ratelimit-go/ratelimit/annotations"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// SetField gives the field of a rule the value of an argument of a directive.
func SetField(rule *ratelimit.Rule, v annotations.Value) {
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

// Arguments returns the arguments of rule whose fields have a value, and that value, in the order of the table.
func Arguments(rule ratelimit.Rule) iter.Seq2[*annotations.Argument, reflect.Value] {
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
