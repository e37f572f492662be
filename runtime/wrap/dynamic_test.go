package wrap_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

type role string

func (r role) String() string { return "role-" + string(r) }

type level uint8

type token struct{ raw string }

func (t token) MarshalText() ([]byte, error) {
	if t.raw == "" {
		return nil, errors.New("empty token")
	}
	return []byte(t.raw), nil
}

type roles []role

func (roles) String() string { return "roles" }

// The values of these types have methods for their texts, and what a walk through them would not let pass.
type (
	wrong struct{ at *int }
	form  struct{ at *int }
	mark  struct{ All []struct{} }
	field struct{ All []struct{} }
)

func (wrong) Error() string                { return "wrong" }
func (form) Format(s fmt.State, _ rune)    { fmt.Fprint(s, "form") }
func (mark) MarshalText() ([]byte, error)  { return []byte("mark"), nil }
func (field) MarshalJSON() ([]byte, error) { return []byte("[1]"), nil }

type node struct {
	Name string
	Next *node
}

// TestValuesOfAnyType converts values whose types are not known. What begins with ! is an error.
func TestValuesOfAnyType(t *testing.T) {
	const noText = "; expected a text, a bool, an integer, or a type with a method String or MarshalText"
	three, admin := level(3), role("admin")
	pointer := &three
	loop, deep := []any{1}, []any{1}
	loop[0] = loop
	for range 2000 { // a walk would take a stack of many megabytes if it did not end early
		deep = []any{deep}
	}
	for _, c := range []struct {
		v                   any
		text, string, whole string
	}{
		{"5", "5", "5", "5"},
		{three, "3", "3", "3"},
		{&pointer, "3", "3", "3"},
		{int64(-1), "-1", "-1", "-1"},
		{uint64(1) << 63, "9223372036854775808", "9223372036854775808", "!9223372036854775808 does not fit int"},
		{true, "true", "true", "!found bool; expected a number, or a text that shows one"},
		{-2.7, "!float64 has no stable text form" + noText, "-2.7", "-2"},
		{float32(0.1), "!float32 has no stable text form" + noText, "0.1", "0"},
		{1e300, "!float64 has no stable text form" + noText, "1e+300", "!1e+300 does not fit int"},
		{uintptr(7), "!uintptr has no stable text form" + noText, "7", "7"},
		{admin, "role-admin", "role-admin", `!strconv.Atoi: parsing "admin": invalid syntax`},
		{&admin, "role-admin", "role-admin", `!strconv.Atoi: parsing "admin": invalid syntax`},
		{"a\n", "a\n", "a\n", `!strconv.Atoi: parsing "a\n": invalid syntax`},
		{time.Second, "1s", "1s", "1000000000"},
		{netip.MustParseAddr("::1"), "::1", "::1", "!found netip.Addr; expected a number, or a text that shows one"},
		{token{"t"}, "t", "{t}", "!found wrap_test.token; expected a number, or a text that shows one"},
		{token{}, "!empty token", "{}", "!found wrap_test.token; expected a number, or a text that shows one"},
		{net.IP{127, 0, 0, 1}, "127.0.0.1", "127.0.0.1", "!"},
		{[]any{wrong{new(int)}, form{new(int)}}, "!", "[wrong form]", "!"},
		{[]byte("ab"), "![]uint8 has no stable text form" + noText, "ab", "!found []uint8; expected a number, or a text that shows one"},
		{[]any{admin, token{"t"}, nil, (*level)(nil), 0.5}, "![]interface {} has no stable text form" + noText, "[role-admin {t} <nil> <nil> 0.5]",
			"!found []interface {}; expected a number, or a text that shows one"},
		{&node{Name: "n"}, "!*wrap_test.node has no stable text form" + noText, "{n <nil>}",
			"!found *wrap_test.node; expected a number, or a text that shows one"},
		{nil, "!the value is nil", "!the value is nil", "!the value is nil"},
		{(*level)(nil), "!the value is nil", "!the value is nil", "!the value is nil"},
		{(*role)(nil), "!the value is nil", "!the value is nil", "!the value is nil"},
		{new(*level), "!the value is nil", "!the value is nil", "!found **wrap_test.level; expected a number, or a text that shows one"},
		{roles(nil), "!the value is nil", "roles", "!the value is nil"},
		{[]int(nil), "!the value is nil", "[]", "!the value is nil"},
		{struct{ Next *node }{}, "!", "{<nil>}", "!"},
		{roles{}, "roles", "roles", "!found wrap_test.roles; expected a number, or a text that shows one"},
		// A text shows no memory address, and is no larger than others.
		{&node{Next: &node{}}, "!*wrap_test.node has no stable text form" + noText, "!a text would show an address, which differs from call to call", "!"},
		{[]*level{&three}, "!", "!a text would show an address, which differs from call to call", "!"},
		{map[string]any{"a": func() {}}, "!", "!a text would show an address, which differs from call to call", "!"},
		{struct{ c chan int }{make(chan int)}, "!", "!a text would show an address, which differs from call to call", "!"},
		{make(chan int), "!", "!a text would show an address, which differs from call to call", "!"},
		{deep, "!", "!the expression has too much to do for these values", "!"},
		{loop, "!", "!the expression has too much to do for these values", "!"},
		{make([]string, wrap.MaxText), "!", "!found a string of over 65536 bytes", "!"},
		{strings.Repeat("a", wrap.MaxText+1), strings.Repeat("a", wrap.MaxText+1), "!found a string of over 65536 bytes", "!"},
	} {
		text, textErr := wrap.TextOf(c.v)
		shown, shownErr := wrap.StringOf(c.v)
		whole, wholeErr := wrap.IntOf(c.v)
		for _, got := range []struct {
			what string
			v    any
			err  error
			want string
		}{{"TextOf", text, textErr, c.text}, {"StringOf", shown, shownErr, c.string}, {"IntOf", whole, wholeErr, c.whole}} {
			result := fmt.Sprint(got.v)
			if got.err != nil {
				result = "!" + got.err.Error()
			}
			if result != got.want && (got.want != "!" || got.err == nil) {
				t.Errorf("%s(%T): got %.200s, want %.200s", got.what, c.v, result, got.want)
			}
		}
	}
}

func TestEqual(t *testing.T) {
	three, huge := level(3), uint64(1<<64-3)
	for _, c := range []struct {
		v, literal any
		want       bool
	}{
		{three, 3, true}, {&three, 3.0, true}, {3.0, 3, true}, {float32(0.5), 0.5, true}, {3.5, 3, false}, {huge, -3, false}, {int64(-3), -3, true},
		{time.Second, 1_000_000_000, true}, {role("a"), "a", true}, {"3", 3, false}, {3, "3", false}, {true, true, true}, {true, "true", false},
		{nil, "", false}, {(*level)(nil), 0, false}, {nil, false, false}, {[]int{3}, 3, false}, {"3", 3.0, false},
		{5, int64(5), true}, {int8(-3), int64(-3), true}, {uint64(7), int64(7), true}, {2.0, int64(2), true}, {5, int64(6), false}, {"5", int64(5), false},
	} {
		if got := wrap.Equal(c.v, c.literal); got != c.want {
			t.Errorf("%T %v and %T %v: %t", c.v, c.v, c.literal, c.literal, got)
		}
	}
}

// TestFloatOf reads texts and numbers of all types as floats.
func TestFloatOf(t *testing.T) {
	three := level(3)
	for v, want := range map[any]float64{three: 3, &three: 3, role("1.5"): 1.5, -2: -2, float32(0.5): 0.5} {
		if got, err := wrap.FloatOf(v); err != nil || got != want {
			t.Errorf("%v: %v, %v", v, got, err)
		}
	}
	for v, want := range map[any]string{
		nil: "the value is nil", true: "found bool; expected a number, or a text that shows one", "x\n": `strconv.ParseFloat: parsing "x\n": invalid syntax`,
	} {
		if got, err := wrap.FloatOf(v); err == nil || err.Error() != want {
			t.Errorf("%v: %v, %v", v, got, err)
		}
	}
}

// FuzzJSON parses a text, and makes JSON of its value: that has the form of package json, or is an error if it is too large.
func FuzzJSON(f *testing.F) {
	f.Add(`{"a": [1, {}, [], {"b\"": null}], "c": "\\"}`, 1)
	f.Add(`["<", "\u2028", true, -1.5e9]`, 2)
	f.Add(`{"k": ""}`, 300)
	f.Add("[]", 2000)
	f.Add(`"1234567890123456789012345678901234567890"`, 1)
	f.Add("["+strings.Repeat("[],{},", 5000)+"[]]", 0)
	for n := wrap.MaxText - 7; n <= wrap.MaxText-5; n++ {
		f.Add(`"`+strings.Repeat("a", n-2)+`"`, 1) // six bytes more are around it
	}
	f.Fuzz(func(t *testing.T, text string, depth int) {
		v, err := wrap.FromJSON(text)
		var want any
		if wrong := json.Unmarshal([]byte(text), &want); (err == nil) != (wrong == nil) && len(text) <= wrap.MaxText {
			t.Fatalf("error %v; package json gives %v", err, wrong)
		}
		if err != nil {
			return
		}
		for range uint(depth) % 500 {
			v = []any{v}
		}
		indented, wrong := json.MarshalIndent(v, "", "  ")
		got, err := wrap.ToJSON(v)
		if fits := wrong == nil && len(indented) <= wrap.MaxText; fits != (err == nil) || fits && got != string(indented) {
			t.Fatalf("%d bytes, error %v; package json gives %d bytes, error %v", len(got), err, len(indented), wrong)
		}
	})
}

// TestJSONOfMethods leaves the JSON of a value to its methods.
func TestJSONOfMethods(t *testing.T) {
	all := make([]struct{}, 1<<21)
	if got, err := wrap.ToJSON([]any{mark{all}, field{all}, time.Unix(0, 0).UTC()}); err != nil || strings.Join(strings.Fields(got), "") != `["mark",[1],"1970-01-01T00:00:00Z"]` {
		t.Errorf("got %s, error %v", got, err)
	}
	if got, err := wrap.ToJSON(field{}); err != nil || got != "[\n  1\n]" {
		t.Errorf("got %s, error %v", got, err)
	}
	type hidden struct{ all []struct{} }
	if got, err := wrap.ToJSON(&hidden{all}); err != nil || got != "{}" {
		t.Errorf("got %s, error %v", got, err)
	}
}

// One instant is one text, whatever the zone of the time is.
func TestTextOfATime(t *testing.T) {
	at := time.Date(2026, 11, 29, 12, 0, 0, 5, time.UTC)
	for _, zone := range []*time.Location{time.UTC, time.FixedZone("", 3600), time.Local} {
		moved := at.In(zone)
		for _, v := range []any{moved, &moved} {
			if text, err := wrap.TextOf(v); err != nil || text != "2026-11-29T12:00:00.000000005Z" {
				t.Errorf("%T in %v: got %q, %v", v, zone, text, err)
			}
		}
	}
}
