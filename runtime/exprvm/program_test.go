package exprvm

import (
	"context"
	"errors"
	"math"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/decide"
)

type role string

func (r role) String() string { return "role-" + string(r) }

type level uint8

type token struct{ raw string }

func (t token) MarshalText() ([]byte, error) {
	if t.raw == "" {
		return nil, errEmpty
	}
	return []byte(t.raw), nil
}

type names []string

func (n names) Error() string { return "names" }

var errEmpty = errors.New("empty token")

type item struct {
	Price int
	Roles []role
	Next  *item
	cents int
}

func (i *item) Load(level) (*item, error) {
	if i.Next == nil {
		return nil, errEmpty
	}
	return i.Next, nil
}

func (i *item) Boom() string { panic("boom") }

// given are the values of the tests, by name.
func given() ([]string, []any) {
	last := &item{Price: 9, cents: 99}
	var none *item
	values := []any{
		&item{Price: 4, Roles: []role{"admin", "user"}, Next: last, cents: 7}, none, role("admin"), level(3), "text", 5, uint64(1) << 63, 1.5, true,
		map[role]int{"admin": 1}, token{}, token{"t"}, func(...level) int { return 8 }, func(r role) role { return r + "!" }, []any{1, "x"},
		time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), context.Background(), Identity("user ID", func(context.Context) string { return "" }), [3]int{1, 2, 3},
		func() {}, func([]string) string { return "listed" }, new(int), math.MaxInt, names(nil), net.IP(nil), func(p *int) int { return *p },
		map[any]string{role("admin"): "role", "admin": "s"},
	}
	return strings.Fields("it none role level s n huge f ok byRole empty token levels shout mixed at ctx ip grid nothing lists ptr most names nowhere addressed ofAny"), values
}

// TestShadowed uses a value with the name of one of expr's functions, together with that function.
func TestShadowed(t *testing.T) {
	for expr, want := range map[string]string{`::len(filter([len, "b"], # == len)) + ::len(len)`: "2", `$env.len + ::upper(len)`: "aA"} {
		if got, err := New(expr, "len").Text("a"); err != nil || got != want {
			t.Errorf("%s: got %q, %v", expr, got, err)
		}
	}
}

// If an expression fails, and would not if the context carried an identity, the error says so. Another error stays as it is.
func TestMissingIdentity(t *testing.T) {
	for expr, want := range map[string]bool{
		`ip(ctx) + "x"`: true, `upper(ip(ctx))`: true, `ip(ctx)`: true, `filter([ip(ctx)], # != nil)[0]`: true,
		`ip(ctx) == nil ? list[9] : "x"`: true, `(ip(ctx) ?? "x") + list[9]`: false, `list[9] + ip(ctx)`: false,
	} {
		for _, ip := range []any{Identity("client IP", func(context.Context) string { return "" }), Known("client IP", "")} {
			got, err := New(expr, "ctx", "ip", "list").Text(t.Context(), ip, []string{"a"})
			if missing, ok := errors.AsType[decide.Missing](err); err == nil || ok != want || ok && missing != "client IP" {
				t.Errorf("%s: got %q, %v", expr, got, err)
			}
		}
	}
	for found, want := range map[string]string{"": "nobody", "::1": "::1"} {
		if got, err := New(`ip(ctx) ?? "nobody"`, "ctx", "ip").Text(t.Context(), Known("client IP", found)); err != nil || got != want {
			t.Errorf("got %q, %v; expected %q", got, err, want)
		}
	}
}

// TestEnv uses $env as a value.
func TestEnv(t *testing.T) {
	env := map[string]any{"in": "x", "n": 5}
	for expr, want := range map[string]string{
		`$env.in`: "x", `$env["in"] + $env?.in`: "xx", `$env[name]`: "x", `$env[name + "to"] ?? "none"`: "none", `$env?.nope ?? "none"`: "none",
		`len($env)`: "2", `name in $env and "nope" not in $env`: "true", `sort(keys($env))[1]`: "n", `1 < len($env) < 3`: "true",
	} {
		got, err := New(expr, "name", "$env").Text("in", env)
		if err != nil || got != want {
			t.Errorf("%s: got %q, %v", expr, got, err)
		}
	}
}

func TestText(t *testing.T) {
	names, values := given()
	for _, c := range []struct{ expr, want, err string }{
		// Values of named types count as values of their underlying types, but keep their methods.
		{`role == "admin" and "admin" in it.Roles and any(it.Roles, # == "user")`, "true", ""},
		{`role`, "role-admin", ""},
		{`role + "x"`, "adminx", ""},
		{`string(role)`, "role-admin", ""},
		{`map(it.Roles, #.String())[-1]`, "role-user", ""},
		{`join(it.Roles, "+")`, "admin+user", ""},
		{`groupBy(it.Roles, #)["user"][0]`, "role-user", ""},
		{`level + 1`, "4", ""},
		{`level in [1, 3]`, "true", ""},
		{`byRole["admin"] + byRole.nobody`, "1", ""},
		{`"admin" in byRole and not ("x" in byRole)`, "true", ""},
		{`get(byRole, "x") ?? "none"`, "none", ""},
		{`get(it.Roles, 7) ?? "none"`, "none", ""},
		{`sum(map(1..3, # * level))`, "18", ""},
		{`level in 1..3 and 2.0 in 1..3`, "true", ""},
		{`4 in 1..3 or 0 in 1..3 or f in 1..3 or huge in 1..3 or s in 1..3`, "false", ""},
		{`n in 1..huge`, "", "9223372036854775808 does not fit an int"},
		{`n in huge..9`, "", "9223372036854775808 does not fit an int"},
		{`role != "user" and n != 4 and not (level != 3)`, "true", ""},
		{`int(float(level) + floor(f)) + bitand(level, 1)`, "5", ""},
		{`duration("1s") + duration("2s")`, "3s", ""},
		{`int(duration("1us"))`, "1000", ""},
		{`nil in byRole`, "false", ""},
		{`5 in byRole`, "", "found int, expected exprvm.role"},
		{`get(byRole, 5) ?? "none"`, "none", ""},
		{`byRole[5]`, "", "found int, expected exprvm.role"},
		{`n % huge`, "", "9223372036854775808 does not fit an int"},
		{`huge % huge`, "", "9223372036854775808 does not fit an int"},
		{`huge + 1`, "", "9223372036854775808 does not fit an int"},
		{`-huge`, "", "9223372036854775808 does not fit an int"},
		{`abs(level) + abs(-n)`, "8", ""},
		{`f % 2`, "", "invalid operation: float64 % int"},
		{`string(none)`, "", "the value is nil"},
		{`nowhere()`, "", "net.IP cannot be called"},

		// A text contains no memory address.
		{`string([ptr ?? 1, n])`, "[0 5]", ""},
		{`string([ptr, n])`, "", "a text would show an address, which differs from call to call"},
		{`string({"a": [it]})`, "", "a text would show an address, which differs from call to call"},
		{`string(it)`, "", "a text would show an address, which differs from call to call"},
		{`string(it.Next)`, "{9 [] <nil> 99}", ""},
		{`string([role, token, nil, none, at - at])`, "[role-admin {t} <nil> <nil> 0s]", ""},
		{`string([at])`, "[2026-01-02 03:04:05 +0000 UTC]", ""},
		{`addressed(ptr ?? most)`, "0", ""},

		// A key keeps its type if the keys of the map have several types.
		{`ofAny[role] + ofAny["admin"] + get(ofAny, role) + (role in ofAny ? "!" : "")`, "rolesrole!", ""},
		{`ofAny[mixed]`, "", "runtime error: hash of unhashable type []interface {}"},
		{`mixed in ofAny`, "", "runtime error: hash of unhashable type []interface {}"},
		{`byRole[s + ""] + byRole[role]`, "1", ""},

		// Calls convert their arguments.
		{`levels(1, 2, n)`, "8", ""},
		{`levels(n, 1000)`, "", "argument 2: found int, expected exprvm.level"},
		{`shout(s)`, "role-text!", ""},
		{`shout(n)`, "", "argument 1: found int, expected exprvm.role"},
		{`shout()`, "", "0 arguments for func(exprvm.role) exprvm.role"},
		{`lists(map(1..2, string(#)))`, "listed", ""},
		{`lists(mixed)`, "", "argument 1: found int, expected string"},
		{`nothing()`, "", "a function returns 0 values; expected one, or one and an error"},
		{`s()`, "", "string cannot be called"},
		{`it.Load(5).Price`, "9", ""},
		{`it.Load(5).Load(5).Price`, "", "empty token"},

		// A field or method of nil is an error, except with ?. or ??.
		{`none.Price`, "", "Price of nil"},
		{`none.Load(1).Price`, "", "Load of nil"},
		{`(none ?? it).Load(5).Price`, "9", ""},
		{`none?.Load(1).Price ?? "none"`, "none", ""},
		{`it?.Next?.Next?.Price ?? it?.Price`, "4", ""},
		{`none`, "", "the value is nil"},
		{`most > 0 ? nowhere : s`, "", "the value is nil"},
		{`ip(ctx)`, "", "the context carries no user ID"},
		{`ip(ctx) ?? s`, "text", ""},
		{`it.cents + it?.Next.cents`, "106", ""},

		// The middle of two comparisons is computed twice.
		{`0 < (none?.Price ?? n) < 6 and not (0 < (level ?? n) < 3)`, "true", ""},
		{`1 < ((none ?? it)?.Price ?? n) < 5 and 4 < -((none?.Price ?? 0) - n) < ((none ?? it).Price ?? n) + 2`, "true", ""},
		{`"a" < ((none?.Roles ?? it.Roles)[0] ?? s) < (role ?? s) + "x" and 1 < sum(map(it.Roles, none?.Price ?? 1)) < 3`, "true", ""},

		{`none?.Next?.["Price"] ?? "none"`, "none", ""},
		{`shout(none?.Load(1)?.Load(2) ?? s)`, "role-text!", ""},
		{`none?.Roles?.[it.Price - most - most] ?? "none"`, "none", ""},

		// $env has all values.
		{`$env.s + $env["s"]`, "texttext", ""},
		{`$env?.nope?.Price ?? "none"`, "none", ""},
		{`$env?.nope.Price ?? "none"`, "", "Price of nil"},
		{`$env?.it?.Price`, "4", ""},
		{`filter(["s", "x"], # == "s" and $env.s == "text")[0]`, "s", ""},

		// in finds the fields of a struct.
		{`"Price" in it and s not in it and "cents" not in it`, "true", ""},
		{`"Price" in none`, "false", ""},
		{`n in it`, "", "cannot use int as field name of exprvm.item"},

		// A search from the end leaves nothing on the stack.
		{`s + findLast(["a", "b", "c"], # < "c") + s`, "textbtext", ""},
		{`max(n, findLast(grid, # < 3), findLastIndex(grid, # < 3) * 9)`, "9", ""},
		{`1 <= findLastIndex(it.Roles, # == "user") < 3`, "true", ""},
		{`findLastIndex(mixed, # == "y") ?? findLast(mixed, # == "y") ?? s`, "text", ""},
		{`findLast(it.Roles, any(mixed, # == "x")).String()`, "role-user", ""},
		{`findLast(n, true)`, "", "cannot reverse int"},

		// Values with a text form.
		{`token`, "t", ""},
		{`empty`, "", "empty token"},
		{`huge`, "9223372036854775808", ""},
		{`ok`, "true", ""},
		{`ptr`, "0", ""},
		{`at`, "2026-01-02T03:04:05Z", ""},
		{`at - duration("1h") < at`, "true", ""},
		{`f`, "", "float64 has no stable text form"},
		{`grid[1:]`, "", "[]int has no stable text form"},
		{`grid[1:][-1]`, "3", ""},

		{`it.Boom()`, "", "boom"},
		{`let list = filter(mixed, type(#) == "string"); let plain = list[0]; plain + list[0]`, "xx", ""},

		// An integer that overflows is an error.
		{`most + 1`, "", "9223372036854775807 + 1 overflows"},
		{`-most - 2`, "", "-9223372036854775807 - 2 overflows"},
		{`most * 2`, "", "9223372036854775807 * 2 overflows"},
		{`-(-most - 1)`, "", "the opposite of -9223372036854775808 overflows"},
		{`abs(-most - 1)`, "", "the opposite of -9223372036854775808 overflows"},
		{`-level`, "", "the opposite of 3 overflows"},
		{`0 - level`, "-3", ""},
		{`sum([most, 1])`, "", "9223372036854775807 + 1 overflows"},
		{`sum(map(1..3, #), # * most)`, "", "2 * 9223372036854775807 overflows"},
		{`reduce([most, 1], #acc + #)`, "", "9223372036854775807 + 1 overflows"},
		{`sum([level, n]) + sum([])`, "8", ""},
		{`sum([1.5, n]) > 6`, "true", ""},
		{`bitshl(1, 64)`, "", "bitshl(1, 64) overflows"},
		{`bitshl(n, 2)`, "20", ""},
		{`at - at + duration("2562047h") * 2`, "", "9223369200000000000 * 2 overflows"},
		{`int(f * 1e300)`, "", "1.5e+300 does not fit an int"},
		{`int(-f)`, "-1", ""},
		{`s[max(huge, 2):]`, "", "9223372036854775808 does not fit an int"},
		{`int(huge)`, "", "9223372036854775808 does not fit an int"},
		{`huge + 1`, "", "9223372036854775808 does not fit an int"},
		{`huge % 10`, "8", ""},
		{`huge % -10`, "", "the divisor is not above 0"},
		{`huge > n and n < huge and huge >= huge and -n <= huge`, "true", ""},
		{`max(huge, n)`, "9223372036854775808", ""},
		{`min([huge, [n, 1.5]])`, "", "float64 has no stable text form"},
		{`min(s, n)`, "", "expected numbers, found string"},
		{`mixed[huge]`, "", "9223372036854775808 does not fit an int"},
		{`s[:huge]`, "", "9223372036854775808 does not fit an int"},
		{`names.Error()`, "", "Error of nil"},
		{`[1, 2][n]`, "", "index out of range: 5 (array length is 2)"},
		{`s matches "^t.*t$"`, "true", ""},
		{`len(1..n)`, "5", ""},
		{`let x = filter(mixed, type(#) == "string"); x[0]`, "x", ""},
	} {
		p := Hidden(New(c.expr, names...), "cents", func(i *item) any { return i.cents })
		got, err := p.Text(values...)
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: got %q, %v; want %q, %s", c.expr, got, err, c.want, c.err)
		}
	}
}

func TestIntAndBool(t *testing.T) {
	for _, c := range []struct {
		v    any
		n    int64
		nErr string
		b    bool
		bErr string
	}{
		{level(3), 3, "", false, "a bool is needed; this is exprvm.level"},
		{new(int), 0, "", false, "a bool is needed; this is *int"},
		{uint64(1) << 63, 0, "9223372036854775808 does not fit an int", false, "a bool is needed; this is uint64"},
		{time.Second, int64(time.Second), "", false, "a bool is needed; this is time.Duration"},
		{true, 0, "an integer is needed; this is bool", true, ""},
		{1.0, 0, "an integer is needed; this is float64", false, "a bool is needed; this is float64"},
		{nil, 0, "the value is nil", false, "the value is nil"},
	} {
		p := New("v", "v")
		n, nErr := p.Int(c.v)
		b, bErr := p.Bool(c.v)
		if n != c.n || message(nErr) != c.nErr || b != c.b || message(bErr) != c.bErr {
			t.Errorf("%v: got %d, %v and %t, %v", c.v, n, nErr, b, bErr)
		}
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestCause finds the error of a function in the program's error.
func TestCause(t *testing.T) {
	_, err := New("f()", "f").Text(func() (string, error) { return "", errEmpty })
	if !errors.Is(err, errEmpty) {
		t.Errorf("got %v", err)
	}
}

// TestPanics uses results whose methods panic outside the machine.
func TestPanics(t *testing.T) {
	if _, err := New("v", "v").Text(panicker{}); message(err) != "panic: no text" {
		t.Errorf("got %v", err)
	}
}

type panicker struct{}

func (panicker) String() string { panic("no text") }

func TestWrongPrograms(t *testing.T) {
	if _, err := New("1 +").Text(); !strings.Contains(message(err), "does not compile") {
		t.Errorf("got %v", err)
	}
	if _, err := New("a", "a").Text(); message(err) != "0 values for 1 names" {
		t.Errorf("got %v", err)
	}
}

// TestNames uses values with the names of expr's functions.
func TestNames(t *testing.T) {
	p := New("len(now) + at(call) + get", "len", "now", "at", "call", "get")
	twice := func(s string) string { return s + s }
	if got, err := p.Text(twice, "n", twice, "c", "g"); got != "nnccg" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestConcurrently is for the race detector.
func TestConcurrently(t *testing.T) {
	p := New(`any(list, # == name) ? name : "-"`, "list", "name")
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 100 {
				if got, err := p.Text([]role{"a", "b"}, "b"); got != "b" || err != nil {
					t.Errorf("got %q, %v", got, err)
				}
			}
		})
	}
	group.Wait()
}

func BenchmarkText(b *testing.B) {
	p := New(`"u:" + string(id) + ":" + phone`, "id", "phone")
	for b.Loop() {
		if _, err := p.Text(55, "15550100"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAny(b *testing.B) {
	p := New(`any(roles, # == "admin")`, "roles")
	roles := []role{"user", "editor", "admin"}
	for b.Loop() {
		if _, err := p.Bool(roles); err != nil {
			b.Fatal(err)
		}
	}
}

// TestFunctionOfPackage calls a function of an imported package, which generated code passes in a map.
func TestFunctionOfPackage(t *testing.T) {
	auth := map[string]any{"UserID": func(prefix string) string { return prefix + "-ann" }}
	if got, err := New(`auth.UserID(p)[0:3]`, "auth", "p").Text(auth, "u"); err != nil || got != "u-a" {
		t.Errorf("%q, %v", got, err)
	}
}

// The value of pause= is a time.Duration, not a number.
func TestDuration(t *testing.T) {
	wait, backoff := 3*time.Second, func(n int) time.Duration { return time.Duration(n) * time.Second }
	for source, want := range map[string]time.Duration{
		"wait": wait, "wait * 2": 6 * time.Second, "wait + duration('1s')": 4 * time.Second, "max(wait, duration('5s'))": 5 * time.Second,
		"wait > duration('1m') ? wait : duration('1m')": time.Minute, "backoff(7)": 7 * time.Second, "-wait": -wait, "wait / 2": 0,
		"5": 0, "'3s'": 0, "nil": 0, "nil ?? wait": wait,
	} {
		got, err := New(source, "wait", "backoff").Duration(wait, backoff)
		if got != want || (err == nil) != (want != 0) {
			t.Errorf("%s: got %s, %v; want %s", source, got, err, want)
		}
	}
}
