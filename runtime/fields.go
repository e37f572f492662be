package ratelimit

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"reflect"
	"strconv"

	"github.com/ratelimit-go/ratelimit/internal/printable"
)

// The methods named fields return what errors show in a log and as JSON. Durations are texts such as "1m30s". Zero values are left out.

func (e *TooManyRequestsError) fields() []slog.Attr {
	return nonEmpty(slog.String("message", e.Message), slog.String("method", e.Method),
		slog.Duration("retry_after", e.RetryAfter), slog.Bool("never", e.Never), slog.Any("violations", e.Violations))
}

func (v Violation) fields() []slog.Attr {
	return append(nonEmpty(slog.String("rule", v.Rule), slog.String("window", v.Window), slog.String("key", v.Key)),
		append([]slog.Attr{slog.Int64("limit", v.Limit), slog.Int64("remaining", v.Remaining)},
			nonEmpty(slog.Duration("more", v.More), slog.Duration("retry_after", v.RetryAfter), slog.Bool("never", v.Never), slog.Int64("running", v.Running))...)...)
}

func (e *NeverAdmissibleError) fields() []slog.Attr {
	return append(nonEmpty(slog.String("message", e.Error()), slog.String("method", e.Method), slog.String("rule", e.Rule),
		slog.String("key", e.Key)), slog.Int64("cost", e.Cost), slog.Int64("limit", e.Limit))
}

func (e *StoreError) fields() []slog.Attr {
	return nonEmpty(slog.String("message", e.Error()), slog.String("method", e.Method))
}

func (e *KeyError) fields() []slog.Attr {
	return nonEmpty(slog.String("message", e.Error()), slog.String("method", e.Method), slog.String("rule", e.Rule),
		slog.String("expr", e.Expr), slog.Bool("internal", e.Internal))
}

func (e *RuleError) fields() []slog.Attr {
	of := "rule"
	if e.ofMethod {
		of = "method"
	}
	return nonEmpty(slog.String("message", e.Error()), slog.String(of, e.Rule), slog.String("argument", e.Argument))
}

// nonEmpty removes empty texts, false flags, zeros and empty lists. It makes each other text one line, and durations texts.
func nonEmpty(attrs ...slog.Attr) []slog.Attr {
	kept := attrs[:0]
	for _, a := range attrs {
		v := reflect.ValueOf(a.Value.Any())
		if v.IsZero() || v.Kind() == reflect.Slice && v.Len() == 0 {
			continue
		}
		switch a.Value.Kind() {
		case slog.KindString:
			a.Value = slog.StringValue(printable.Line(v.String()))
		case slog.KindDuration:
			a.Value = slog.StringValue(a.Value.Duration().String())
		}
		kept = append(kept, a)
	}
	return kept
}

// object returns fields as a JSON object, in their order.
func object(fields []slog.Attr) ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, f := range fields {
		if i > 0 {
			b.WriteByte(',')
		}
		value, _ := json.Marshal(f.Value.Any()) // texts, numbers, flags and violations: it never fails
		b.WriteString(strconv.Quote(f.Key) + ":")
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// MarshalJSON returns the fields in snake case, with durations such as "1m30s". It leaves out empty fields.
func (e *TooManyRequestsError) MarshalJSON() ([]byte, error) { return object(e.fields()) }

// MarshalJSON returns the fields in snake case, with durations such as "1m30s". It leaves out empty fields.
func (v Violation) MarshalJSON() ([]byte, error) { return object(v.fields()) }

// MarshalJSON returns the text of the error as "message", and its fields in snake case.
func (e *NeverAdmissibleError) MarshalJSON() ([]byte, error) { return object(e.fields()) }

// MarshalJSON returns the text of the error as "message", and its fields in snake case.
func (e *StoreError) MarshalJSON() ([]byte, error) { return object(e.fields()) }

// MarshalJSON returns the text of the error as "message", and Method, Rule, Expr and Internal in snake case. The text includes the reason.
func (e *KeyError) MarshalJSON() ([]byte, error) { return object(e.fields()) }

// MarshalJSON returns the text of the error as "message", and Rule and Argument in snake case. A Rule that is a method is the "method". The text
// includes the reason.
func (e *RuleError) MarshalJSON() ([]byte, error) { return object(e.fields()) }
