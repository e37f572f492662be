package annotations

import (
	"math"
	"reflect"
	"testing"
	"time"
)

func TestDuration(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"1w2d12h": 9*day + 12*time.Hour,
		"1.5h":    90 * time.Minute, ".5h": 30 * time.Minute, "1.h": time.Hour,
		"1d": day, "1.5d": 36 * time.Hour, "0.1d": day / 10,
		"90s": 90 * time.Second, "1h30m": 90 * time.Minute, "30m1h": 90 * time.Minute,
		"1us": time.Microsecond, "1µs": time.Microsecond, "1μs": time.Microsecond, "1ms1ns": time.Millisecond + 1,
		"9223372036854775807ns": math.MaxInt64, "9223372036854775807.9ns": math.MaxInt64,
	} {
		var p parser
		if got := p.parseDuration("per", Text{Value: text, Pos: 1}); got != want || len(p.errs) > 0 {
			t.Errorf("%s is %v, %v; want %v", text, got, p.errs, want)
		}
	}
	for _, text := range []string{"1", "d", "1m ", "1 m", "+1m", "1H", "1mo", "0", "0s", "0.1ns", "1e3s", "9223372036854775808ns", "15251w", "1m-1s"} {
		var p parser
		if got := p.parseDuration("per", Text{Value: text, Pos: 1}); got != 0 || len(p.errs) != 1 {
			t.Errorf("%s is %v, %v; want an error", text, got, p.errs)
		}
	}
}

func TestTemplate(t *testing.T) {
	for text, want := range map[string][]Part{
		"sms":                        {{Literal: "sms"}},
		"sms:{phone}":                {{Literal: "sms:"}, island("phone")},
		"{a}{b}":                     {island("a"), island("b")},
		"{{{id}}}":                   {{Literal: "{"}, island("id"), {Literal: "}"}},
		"{{id}}":                     {{Literal: "{id}"}},
		`{tenant}-{lookup["}"]}`:     {island("tenant"), {Literal: "-"}, island(`lookup["}"]`)},
		`{ {"a": 1}["a"] }`:          {island(`{"a": 1}["a"]`)},
		`{f({a: [1, 2]}, '\'}')}é}}`: {island(`f({a: [1, 2]}, '\'}')`), {Literal: "é}"}},
		"{`\\`}":                     {island("`\\`")},
	} {
		var p parser
		got := bareTemplate(p.parseTemplate(Text{Value: text, Pos: 1})).Parts
		if len(p.errs) > 0 || !reflect.DeepEqual(got, want) {
			t.Errorf("%s has the parts %+v, %v; want %+v", text, got, p.errs, want)
		}
	}
}
