package exprvm

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ratelimit-go/ratelimit/runtime/exprvm/checked"
)

// Whatever a caller sends, an expression neither takes much memory nor runs for long.
func TestWorkIsBounded(t *testing.T) {
	text := strings.Repeat("a", maxSize-1)
	list := make([]string, 3000)
	for i := range list {
		list[i] = "b"
	}
	for _, source := range []string{
		`any(list, any(list, # + "x" == "y"))`,
		`any(list, text in list)`,
		`any(list, text contains "b" + #)`,
		`any(list, upper(text) == "")`,
		`any(list, sum(map(list, 1)) == 0)`,
		`len(join(map(list, text))) > 0`,
		`len(join(list, text)) > 0`,
		`len(join(split(text, ""), text)) > 0`,
		`len(replace(text, "", text)) > 0`,
		`len(replace(text, "a", text)) > 0`,
		`len(repeat(text, 100000)) > 0`,
		`len(reduce(list, #acc + text, "")) > 0`,
		`len(flatten(map(list, list))) > 0`,
		`any(list, len(filter(list, true)) == 0)`,
		`any(1..1000, any(1..1000, any(1..1000, # == 0)))`,
		`len(1..100000000) > 0`,
		`any(list, text matches "(a*)*b")`,
		`len(toJSON(fromJSON(repeat("[", 3000) + repeat("]", 3000)))) > 0`,
		`len(toJSON(map(list, text))) > 0`,
		`len(toJSON(reduce(1..60, [#acc, #acc], 1))) > 0`,
		`len(string(reduce(1..60, [#acc, #acc], 1))) > 0`,
		`len(flatten(reduce(1..60, [#acc, #acc], [1]))) > 0`,
		`len(uniq(split(text, ""))) == 0`,
		`len(uniq(1..60000)) == 0`,
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := New(source, "list", "text").Bool(list, text)
		runtime.ReadMemStats(&after)
		if err == nil {
			t.Errorf("%s is computed", source)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 64<<20 {
			t.Errorf("%s takes %d bytes", source, used)
		}
	}
}

// Values of usual sizes do not exceed the bounds.
func TestUsualWork(t *testing.T) {
	list := strings.Split(strings.Repeat("+4917012345678 ", 500), " ")
	for _, source := range []string{
		`len(join(sort(map(list, trim(#))), ",")) > 0`, `count(list, # in list) > 0`, `all(list, any(1..100, # > 0))`,
		`len(repeat(list[0], 1000)) > 0`, `len(replace(list[0], "1", "one")) > 0`,
		`len(uniq(list)) > 0`, `len(toJSON({"phones": list})) > 0`, `len(string(list)) > 0`, `len(flatten([list, list])) > 0`,
	} {
		if ok, err := New(source, "list").Bool(list); err != nil || !ok {
			t.Errorf("%s: %t, error %v", source, ok, err)
		}
	}
}

// A text or list of more than 64 KiB is an error before anything is evaluated, even in a field or as the result of a function.
func TestSizeOfArguments(t *testing.T) {
	type document struct {
		Body string
		Tags []string
		ID   int
	}
	called := false
	names := []string{"text", "list", "doc", "f"}
	f := func() string { called = true; return strings.Repeat("a", maxSize+1) }
	small, long := document{ID: 1}, document{Body: f(), Tags: []string{f()}, ID: 1}
	for _, c := range []struct {
		source string
		values []any
		fits   bool
	}{
		{`f() == text`, []any{f(), nil, small, f}, false},
		{`len(text) > 0`, []any{strings.Repeat("a", maxSize), nil, small, f}, true},
		{`text == ""`, []any{new(f()), nil, small, f}, false},
		{`len(list) > 0`, []any{"", []string{f()}, small, f}, false},
		{`len(list) > 0`, []any{"", make([]int, maxSize/8+1), small, f}, false},
		{`len(list) > 0`, []any{"", make([]int, maxSize/8), small, f}, true},
		{`doc.ID == 1`, []any{"", nil, long, f}, true},
		{`doc.Body == ""`, []any{"", nil, long, f}, false},
		{`len(doc.Tags) == 1`, []any{"", nil, long, f}, false},
		{`f() == ""`, []any{"", nil, small, f}, false},
	} {
		called = false
		got, err := New(c.source, names...).Bool(c.values...)
		if (err == nil) != c.fits || c.fits && !got || called && c.values[0] != "" {
			t.Errorf("%s: %t, error %v, called %t", c.source, got, err, called)
		}
		if err != nil && (errors.Is(err, errWork) || len(err.Error()) > 200) {
			t.Errorf("%s: %v", c.source, err)
		}
	}
}

// A replacement and a split give the same text and the same error on the machine as in plain Go. A split text has its parts.
func TestTextsAreLikeThoseOfPlainGo(t *testing.T) {
	replace, split := New("replace(text, old, new)", "text", "old", "new"), New("split(text, old)", "text", "old")
	piece := rapid.StringMatching(`[ab]{0,2}`)
	rapid.Check(t, func(t *rapid.T) {
		long := func(name string) string {
			return strings.Repeat(piece.Draw(t, name), rapid.SampledFrom([]int{1, 100, 30_000}).Draw(t, "times "+name))
		}
		text, old, new := long("text"), piece.Draw(t, "old"), long("new")
		got, err := replace.Text(text, old, new)
		want, wrong := checked.Replace(text, old, new)
		if got != want || fmt.Sprint(err) != fmt.Sprint(wrong) || len(want) > maxSize || wrong == nil && want != strings.ReplaceAll(text, old, new) {
			t.Fatalf("%d bytes, error %v; in plain Go %d bytes, error %v", len(got), err, len(want), wrong)
		}
		parts, err := split.Value(text, old)
		if err != nil || !slices.Equal(parts.([]string), strings.Split(text, old)) {
			t.Fatalf("split: got %d bytes, error %v", len(fmt.Sprint(parts)), err)
		}
	})
}
