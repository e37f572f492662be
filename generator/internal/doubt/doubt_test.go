package doubt_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ratelimit-go/ratelimit/generator"
	"github.com/ratelimit-go/ratelimit/internal/testmodule"
)

// scenario is the body of an interface, which begins at line 8 of a file, and the messages about it as line:col: message.
type scenario struct {
	name, methods string
	found         []string
}

const head = `package x

import ("context"; "time")

const three, six = 3, 2 * three
func f(s string, _ ...time.Time) int { return len(s) }

`

// check generates all scenarios in one run, each in its own package, and compares the messages without their file names.
func check(t *testing.T, scenarios []scenario) {
	t.Helper()
	dir := module(t)
	for i, s := range scenarios {
		src := head + "type X interface {\n" + s.methods + "\nZ(context.Context) error\n}\n"
		testmodule.Write(t, filepath.Join(dir, fmt.Sprintf("x%d", i), "x.go"), src)
	}
	result, err := generator.Generate(t.Context(), generator.Config{Dir: dir, Patterns: []string{"./..."}})
	if _, ok := errors.AsType[generator.Errors](err); err != nil && !ok {
		t.Fatal(err)
	}
	lines := linesOf(result)
	for i, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			var found []string
			for _, l := range lines {
				if l, ok := strings.CutPrefix(l, filepath.Join(fmt.Sprintf("x%d", i), "x.go")+":"); ok {
					found = append(found, l)
				}
			}
			if !slices.Equal(found, s.found) {
				t.Errorf("found\n%s\nexpected\n%s", strings.Join(found, "\n"), strings.Join(s.found, "\n"))
			}
		})
	}
}

// module creates a module that requires this one, replaced by its source.
func module(t *testing.T) string {
	dir := testmodule.Dir(t)
	testmodule.Init(t, dir, "../../..", "example.com/x")
	return dir
}

func TestNeverApplies(t *testing.T) {
	check(t, []scenario{
		{"a condition that is false", "//ratelimit:rule limit=1 per=1m when=\"six < three\"\nM(n int) error",
			[]string{`9:39: when: this is never true, so the rule never applies`}},
		{"a condition that is false, beside what is wrong",
			"//ratelimit:rule limit=1 per=1m when=false key={nope} cost=\"m\"\nM(n int) error", []string{
				`9:38: when: this is never true, so the rule never applies`,
				`9:49: unknown name nope; the parameter is n`,
				`9:61: unknown name m; the parameter is n`}},
		{"a cost of nothing", "//ratelimit:rule limit=1 per=1m cost=\"six - 6\"\nM(n int) error",
			[]string{`9:39: warning: cost: this is always 0, so the rule refuses no call; write at least 1`}},
		{"a number that costs nothing", "//ratelimit:rule limit=1 per=1m cost=0\nM(n int) error",
			[]string{`9:38: warning: cost: this is always 0, so the rule refuses no call; write at least 1`}},
		{"a quoted number that costs nothing", "//ratelimit:rule limit=1 per=1m cost=\"0\"\nM(n int) error",
			[]string{`9:39: warning: cost: this is always 0, so the rule refuses no call; write at least 1`}},
		{"a condition that is true", "//ratelimit:rule limit=1 per=1m when=\"six > three\"\nM(n int) error", nil},
		{"a parameter", "//ratelimit:rule limit=1 per=1m when=\"n < three\" cost=\"n\"\nM(n int) error", nil},
		{"a parameter that hides a constant", "//ratelimit:rule limit=1 per=1m cost=\"six - 6\"\nM(six int) error", nil},
	})
}

func TestNeverPasses(t *testing.T) {
	says := func(cost, most int) []string {
		return []string{fmt.Sprintf("9:39: cost: found %d, which is never admitted; expected at most %d", cost, most)}
	}
	check(t, []scenario{
		{"arithmetic", "//ratelimit:rule limit=5 per=1m cost=\"2*3\"\nM(n int) error", says(6, 5)},
		{"a constant", "//ratelimit:rule limit=5 per=1m cost=\"six\"\nM(n int) error", says(6, 5)},
		{"a length", "//ratelimit:rule limit=5 per=1m cost=\"len('length')\"\nM(n int) error", says(6, 5)},
		{"a number beside a constant limit", "//ratelimit:rule per=1m limit=\"six\" cost=7\nM(n int) error",
			[]string{"9:42: cost: found 7, which is never admitted; expected at most 6"}},
		{"more than the burst", "//ratelimit:rule limit=9 per=1m cost=\"six\" algorithm=token-bucket burst=5\nM(n int) error", says(6, 5)},
		{"evenly spaced", "//ratelimit:rule limit=9 per=1m cost=\"six\" algorithm=leaky-bucket\nM(n int) error",
			[]string{"9:39: cost: found 6, but a leaky-bucket holds 1 permit and never admits more; expected prepay, or a token-bucket"}},
		{"members", "//ratelimit:rule limit=5 per=1m cost=\"six\" distinct=\"{n}\"\nM(n int) error",
			[]string{"9:39: cost= does not go with distinct=: each member counts once. To exempt calls, write when="}},
		{"as much as the burst", "//ratelimit:rule limit=1 per=1m cost=\"six\" algorithm=token-bucket burst=6\nM(n int) error", nil},
		{"prepaid", "//ratelimit:rule limit=1 per=1m cost=\"six\" algorithm=token-bucket prepay\nM(n int) error", nil},
		{"a trigger", "//ratelimit:rule limit=1 per=1m cost=\"six\" mode=trigger\nM(n int) error", nil},
		{"a limit of the call's own", "//ratelimit:rule limit=\"n\" per=1m cost=\"six\"\nM(n int) error", nil},
		{"a cost of the call's own", "//ratelimit:rule limit=5 per=1m cost=\"n * six\"\nM(n int) error", nil},
		{"a limit that refuses everything", "//ratelimit:rule limit=0 per=1m cost=\"six\"\nM(n int) error", nil},
	})
}

func TestDearLeaks(t *testing.T) {
	const rule = "//ratelimit:rule limit=9 per=1m algorithm="
	check(t, []scenario{
		{"evenly spaced", rule + "leaky-bucket cost=\"n\"\nM(n int) error",
			[]string{"9:62: warning: cost: a leaky-bucket holds 1 permit, so it never admits a call that costs more; expected prepay, or a token-bucket"}},
		{"prepaid", rule + "leaky-bucket prepay cost=\"n\"\nM(n int) error", nil},
		{"one", rule + "leaky-bucket cost=\"six - 5\"\nM(n int) error", nil},
		{"a burst", rule + "token-bucket cost=\"n\"\nM(n int) error", nil},
		{"what is wrong", rule + "leaky-bucket cost=\"m\"\nM(n int) error", []string{"9:62: unknown name m; the parameter is n"}},
		{"no cost", rule + "leaky-bucket\nM(n int) error", nil},
	})
}

func TestNeverValid(t *testing.T) {
	check(t, []scenario{
		{"a negative limit", "//ratelimit:rule per=1m limit=\"three - six\"\nM(n int) error",
			[]string{"9:32: limit: found -3; expected 0 to 1000000000 for a sliding-window"}},
		{"a trigger at nothing", "//ratelimit:rule per=1m limit=\"six - 6\" mode=trigger\nM(n int) error",
			[]string{"9:32: mode: trigger needs a window of at least one permit that fills up; found a sliding-window of 0"}},
		{"a limit that is valid", "//ratelimit:rule per=1m limit=\"three + six\"\nM(n int) error", nil},
	})
}

func TestBoundaryBurst(t *testing.T) {
	const rule = "//ratelimit:rule algorithm=fixed-window per=1m limit="
	check(t, []scenario{
		{"ten", rule + "10\nM(n int) error",
			[]string{"9:28: warning: up to 19 permits can pass around the end of a fixed window of 10; sliding-window keeps to 10 in any 1m"}},
		{"a constant", rule + "\"six\"\nM(n int) error",
			[]string{"9:28: warning: up to 11 permits can pass around the end of a fixed window of 6; sliding-window keeps to 6 in any 1m"}},
		{"eleven", rule + "11\nM(n int) error", nil},
		{"one", rule + "1\nM(n int) error", nil},
		{"a name, which says that it is meant", rule + "3 name=three\nM(n int) error", nil},
		{"none", rule + "0\nM(n int) error", nil},
		{"a limit of the call's own", rule + "\"n\"\nM(n int) error", nil},
		{"a trigger", rule + "3 mode=trigger\nM(n int) error", nil},
	})
}

func TestUnevenSteps(t *testing.T) {
	const text = "9:32: warning: cron: %s begins anew with each %s, so the last window of the %[2]s is shorter, with the same limit; " +
		"expected a list of numbers, or a step that divides the %[2]s"
	var scenarios []scenario
	for cron, in := range map[string]string{
		"0 */5 * * *": "day", "0 0/7 * * *": "day", "*/7 * * * *": "hour", "*/25 * * * * *": "minute", "0 0 */10 * *": "month", "0 0 1 */5 *": "year",
		"0 */6 * * *": "", "*/15 * * * *": "", "0 0 */1 * *": "", "0 0,5,10 * * *": "", "0 0 * * */2": "", "@daily": "", "0 8-18/5 * * *": "",
	} {
		s := scenario{cron, fmt.Sprintf("//ratelimit:rule limit=9 cron=%q\nM() error", cron), nil}
		if in != "" {
			at := slices.IndexFunc(strings.Fields(cron), func(f string) bool { return strings.Contains(f, "/") })
			s.found = []string{fmt.Sprintf(text, strings.Fields(cron)[at], in)}
		}
		scenarios = append(scenarios, s)
	}
	check(t, scenarios)
}

func TestSharedByAll(t *testing.T) {
	says := func(col int, who string) []string {
		return []string{fmt.Sprintf("9:%d: warning: all callers share this budget, whatever %s is; write key=\"{%[2]s}\", or give the rule a name if that is meant", col, who)}
	}
	check(t, []scenario{
		{"no key", "//ratelimit:rule limit=100 per=1m\nM(ctx context.Context, phone string) error", says(13, "phone")},
		{"a text", "//ratelimit:rule limit=100 per=1m key=sms\nM(tenant_id int64) error", says(39, "tenant_id")},
		{"a constant island", "//ratelimit:rule limit=100 per=1m key=\"{method}:{six}\"\nM(userID string) error", says(40, "userID")},
		{"the first of two", "//ratelimit:rule limit=100 per=1m\nM(n int, apiKey, ip string) error", says(13, "apiKey")},
		{"a key of something else", "//ratelimit:rule limit=100 per=1m key=\"{n}\"\nM(n int, user string) error", nil},
		{"a key of another rule", "//ratelimit:rule limit=100 per=1m\n//ratelimit:rule limit=1 per=1m key=\"{user}\"\nM(n int, user string) error", nil},
		{"no identity", "//ratelimit:rule limit=100 per=1m\nM(users []string, file string) error", nil},
		{"no text", "//ratelimit:rule limit=100 per=1m\nM(user *struct{ ID int }) error", nil},
		{"a name", "//ratelimit:rule limit=100 per=1m name=all\nM(user string) error", nil},
		{"members", "//ratelimit:rule limit=100 per=1m distinct=\"{user}\"\nM(user string) error", nil},
	})
}

func TestLiteralKeys(t *testing.T) {
	says := func(col int, text, instead string) []string {
		return []string{fmt.Sprintf("9:%d: warning: key: the text %q is the same for every call; %s", col, text, instead)}
	}
	keyed := func(key, params string) string {
		return "//ratelimit:rule limit=100 per=1m key=" + key + "\nM(" + params + ") error"
	}
	const order, who = "write {order} for the value", "ctx context.Context, order string"
	check(t, []scenario{
		{"a parameter", keyed("order", who), says(39, "order", order)},
		{"an identity, of which no more is said", keyed("phone", "phone string"), says(39, "phone", "write {phone} for the value")},
		{"a field", keyed("user.ID", "user struct{ ID int }"), says(39, "user.ID", "write {user.ID} for the value")},
		{"a parameter that is no text", keyed("user", "user struct{ ID int }"), says(39, "user", "write an expression over user in braces")},
		{"a call", keyed(`"clientIP(ctx)"`, who), says(40, "clientIP(ctx)", "write {clientIP(ctx)} for the value")},
		{"a call in a text", keyed(`"at {{f(order)}}"`, who), says(40, "at {{f(order)}}", order)},
		{"a part of a text", keyed(`"sms:order"`, who), says(40, "sms:order", order)},
		{"no difference of parameters", keyed("a-b", "a, b int"), says(39, "a-b", "write {a} for the value")},
		{"other braces", keyed(`"{{.Order}}"`, who), says(40, "{{.Order}}", order)},
		{"a text in braces", keyed("{'order'}", who), says(39, "{'order'}", order)},
		{"a number in braces", keyed("sms:{0}", who), says(39, "sms:{0}", "write the name of a parameter in the braces")},
		{"a name, which does not say that it is meant", keyed("order name=orders", who), says(39, "order", order)},
		{"a text in braces, and a value", keyed(`"{'sms:' + order}"`, who), nil},
		{"a label", keyed("orders", who), nil},
		{"a label beside a value", keyed("order:{order}", who), nil},
		{"a constant of the package", keyed("{six}", who), nil},
		{"a constant of the package, unquoted", keyed("six", who), nil},
		{"the context, which is no label", keyed("ctx", who), nil},
	})
}

// TestLiteralKeysOfTypes checks the key of a rule of a type whose methods have different parameters.
func TestLiteralKeysOfTypes(t *testing.T) {
	const rule = "package x\n//ratelimit:rule key=order limit=5 per=1h\ntype X interface {\n"
	for name, c := range map[string]struct {
		methods string
		found   []string
	}{
		"all have it": {"M(order int) error\nN(order string) error\n}\n", []string{
			`x.go:2:22: warning: key: the text "order" is the same for every call; write {order} for the value`}},
		"one has it": {"M(order int) error\nN() error\n}\n", nil},
		"another is left out": {"M(order int) error\n//ratelimit:skip\nN() error\n}\n", []string{
			`x.go:2:22: warning: key: the text "order" is the same for every call; write {order} for the value`}},
	} {
		t.Run(name, func(t *testing.T) { compare(t, map[string]string{"x.go": rule + c.methods}, c.found) })
	}
}

// TestLiteralKeysOfPackages checks keys that name a receiver or a declaration of the package.
func TestLiteralKeysOfPackages(t *testing.T) {
	const rule = "//ratelimit:rule limit=5 per=1h key="
	for name, c := range map[string]struct{ src, found string }{
		"the receiver": {"type S struct{ Host string }\n" + rule + "s.Host\nfunc (s *S) M() error { return nil }\n",
			`x.go:3:37: warning: key: the text "s.Host" is the same for every call; write {s.Host} for the value`},
		"a constant that a parameter is called like": {"const Region = \"eu\"\ntype X interface {\n" +
			rule + "Region\nA(region string) error\n}\n",
			`x.go:4:37: warning: key: the text "Region" is the same for every call; write {region} for the value`},
		"a call over the receiver": {"type S struct{ Host string }\nfunc of(s string) string { return s }\n" +
			rule + "of(s.Host)\nfunc (s *S) M() error { return nil }\n",
			`x.go:4:37: warning: key: the text "of(s.Host)" is the same for every call; write {of(s.Host)} for the value`},
	} {
		t.Run(name, func(t *testing.T) {
			compare(t, map[string]string{"x.go": "package x\n" + c.src}, []string{c.found})
		})
	}
}

func TestOneMember(t *testing.T) {
	says := func(text, instead string) []string {
		return []string{fmt.Sprintf("9:44: distinct: the text %q is the same member for every call, so the rule refuses no call; %s", text, instead)}
	}
	members := func(template string) string {
		return "//ratelimit:rule limit=100 per=1m distinct=" + template + "\nM(friend string) error"
	}
	check(t, []scenario{
		{"a parameter", members("friend"), says("friend", "write {friend} for the value")},
		{"a text", members("friends"), says("friends", "write an expression in braces")},
		{"a name, which other members may have", members("home name=pages"), nil},
		{"members", members("{friend}"), nil},
		{"a constant", members("{six}"), nil},
	})
}

func compare(t *testing.T, files map[string]string, expected []string) {
	t.Helper()
	dir := module(t)
	for name, src := range files {
		testmodule.Write(t, filepath.Join(dir, name), src)
	}
	result, err := generator.Generate(t.Context(), generator.Config{Dir: dir, Patterns: []string{"./..."}})
	if err != nil {
		t.Fatal(err)
	}
	if lines := linesOf(result); !slices.Equal(lines, expected) {
		t.Errorf("found\n%s\nexpected\n%s", strings.Join(lines, "\n"), strings.Join(expected, "\n"))
	}
}

func linesOf(r *generator.Result) (lines []string) {
	for _, m := range r.Messages {
		lines = append(lines, m.String())
	}
	return lines
}

// TestOneScope checks a package a with a type B beside a package a.B.
func TestOneScope(t *testing.T) {
	const rule = "//ratelimit:rule limit=1 per=1m "
	method := func(more string) string {
		return "package a\n\ntype B interface {\n" + rule + more + "\nC() error\nD(s string) error\n}\n"
	}
	ofType := func(more string) string {
		return "package b\n\n" + rule + more + "\ntype C interface { M(s string) error }\n"
	}
	says := []string{"a.B/b.go:3:13: warning: this rule shares its counts with the rule of ../a/a.go:4 in example.com/x/a, since both are called a.B.C; give one of them a name"}
	for name, c := range map[string]struct {
		method, ofType string
		found          []string
	}{
		"one window":          {method(""), ofType(""), says},
		"another limit":       {method(""), strings.Replace(ofType(""), "=1 ", "=2 ", 1), says},
		"two windows":         {method(""), strings.Replace(ofType(""), "1m", "2m", 1), nil},
		"a name":              {method("name=c"), ofType(""), nil},
		"two keys":            {method(""), ofType(`key="{s}"`), nil},
		"another method":      {strings.Replace(method(""), "C()", "E()", 1), ofType(""), nil},
		"a rule of that type": {method(""), "package b\n\ntype C interface {\n" + rule + "\nM() error\n}\n", nil},
	} {
		t.Run(name, func(t *testing.T) { compare(t, map[string]string{"a/a.go": c.method, "a.B/b.go": c.ofType}, c.found) })
	}
}

func TestEmptyKey(t *testing.T) {
	const rule = "//ratelimit:rule limit=1 per=1m key="
	check(t, []scenario{
		{"an empty text", rule + "\"{''}\"\nM(n int) error",
			[]string{"9:38: key: this is empty in every call, so every call fails; without key= there is one budget for everybody",
				"9:38: warning: key: the text \"{''}\" is the same for every call; write the name of a parameter in the braces"}},
		{"a number", rule + "{six}\nM(n int) error", nil},
	})
}

// TestTwins checks pairs of rules on one method.
func TestTwins(t *testing.T) {
	two := func(a, b string) string {
		return "//ratelimit:rule per=1m " + a + "\n//ratelimit:rule per=1m " + b + "\nM(n int, s string) error"
	}
	const same = "10:13: this rule counts the same calls in the same window (1m) as the rule of line 9; " +
		"keep the stricter one"
	const shared = "10:13: this rule shares one count with the rule of line 9, since both are called login, " +
		"so each also counts what the other takes; give one of them a name of its own"
	check(t, []scenario{
		{"two limits", two("limit=1", "limit=2"), []string{same}},
		{"one key, spelled differently", two("limit=1 key=\"{n+1}\"", "limit=2 key=\"{ n + 1 }\""), []string{same}},
		{"two keys", two("limit=1 key={n}", "limit=2 key={s}"), nil},
		{"a name", two("limit=2 cost=2", "limit=2 name=other"), nil},
		{"two costs", two("limit=1 name=login", "limit=20 cost=n name=login"), []string{shared}},
		{"a condition", two("limit=1 when=\"n > 1\" name=login", "limit=2 name=login"), []string{shared}},
		{"one condition", two("limit=1 when=\"n > 1\"", "limit=2 when=\"n>1\""), []string{same}},
		{"one anchor", anchored("key={n} limit=1 anchor=t", "key={n} limit=2 anchor=t"), []string{strings.Replace(same, "1m", "every:1mo", 1)}},
		{"two anchors", anchored("key={n} limit=1 anchor=t name=paid", "key={n} limit=2 anchor=u name=paid"), []string{strings.Replace(shared, "login", "paid", 1)}},
	})
}

// anchored returns a method with two rules whose windows begin at times of the keys' own.
func anchored(a, b string) string {
	return "//ratelimit:rule every=1mo " + a + "\n//ratelimit:rule every=1mo " + b + "\nM(n int, t, u time.Time) error"
}

func TestSharedAnchor(t *testing.T) {
	const rule, method = "//ratelimit:rule limit=9 every=1mo ", "\nM(ctx context.Context, user string, since time.Time) error"
	const says = ": warning: anchor: all callers share one window, and the call that opens it says when it begins; " +
		"write key= for those whom the anchor belongs to, or give the rule a name if that is meant"
	check(t, []scenario{
		{"no key", rule + "anchor=since" + method, []string{"9:43" + says}},
		{"a key that is the same for all", rule + "key=\"{method}\" anchor=since" + method, []string{"9:58" + says}},
		{"a key", rule + "key={user} anchor=since" + method, nil},
		{"a name", rule + "name=all anchor=since" + method, nil},
		{"one time for all", rule + "key=all name=n anchor=\"date('2026-01-31')\"" + method, nil},
		{"a lease", rule + "key={user} anchor=since lease=1m" + method, nil},
		{"a wrong anchor beside another", rule + "key={user} name=wrong anchor=since" + method + "\n" + rule + "key={user} name=wrong anchor=sinc\n" +
			"N(user string, since time.Time) error", []string{"11:65: unknown name sinc; did you mean since? the parameters are user, since"}},
		{"another anchor in a stricter rule", anchored("key={n} limit=5 anchor=t", "key={n} limit=9 anchor=u name=n2"), nil},
	})
}

func TestSharedNames(t *testing.T) {
	method := func(rules ...string) string {
		return "//ratelimit:rule name=login " + strings.Join(rules, "\n//ratelimit:rule name=login ") + "\nM(s string, n int) error\n"
	}
	a := func(body string) string { return "package a\n\ntype A interface {\n" + body + "}\n" }
	b := func(body string) string {
		return strings.NewReplacer("package a", "package b", "type A", "type B", "s string", "t string").Replace(a(body))
	}
	const windows = "rules called login share a budget only if they have one window: this rule has "
	const limits = "rules called login share one budget, but have different limits: this rule has "
	const keys = "rules called login share one budget, but have different keys: this rule has "
	const anchors = "rules called login share one budget, but have different anchors: this rule has "
	const oneAnchor = "; the call that opens a window says when it begins, so write one anchor, or give this rule another name"
	anchored := func(anchor string) string {
		return "//ratelimit:rule name=login limit=1 every=1mo key={c.N} anchor=" + anchor + "\nM(c struct{N int; Paid, Since time.Time}) error\n"
	}
	timed := func(source string) string { return strings.Replace(source, "\n", "\n\nimport \"time\"\n", 1) }
	started := func(source string) string {
		return timed(source) + "\nfunc Start(n int) time.Time { return time.Unix(int64(n), 0) }\n"
	}
	for name, c := range map[string]struct {
		first, second string
		found         []string
	}{
		"two windows": {a(method("limit=1 per=1m")), b(method("limit=1 per=1h")),
			[]string{"b/b.go:4:23: warning: " + windows + "1h, the rule of ../a/a.go:4 has 1m"}},
		"one window": {a(method("limit=1 per=1m")), b(method("limit=1 per=60s")), nil},
		"two limits": {a(method("limit=1 per=1m")), b(method("limit=2 per=60s")),
			[]string{"b/b.go:4:23: warning: " + limits + "2, the rule of ../a/a.go:4 has 1"}},
		"a limit of the call's own": {a(method("limit=1 per=1m")), b(method("limit=n per=60s")), nil},
		"two windows on one method": {a(method("limit=9 per=1h", "limit=1 per=1m")), b("//ratelimit:rule limit=1 per=1m\nM() error\n"),
			[]string{"a/a.go:5:23: warning: " + windows + "1m, the rule of line 4 has 1h"}},
		"two keys": {a(method("limit=1 per=1m key={s}")), b(method("limit=1 per=1m key={n}")),
			[]string{"b/b.go:4:23: warning: " + keys + `"{n}", the rule of ../a/a.go:4 has "{s}"`}},
		"no key": {a(method("limit=1 per=1m key={s}")), b(method("limit=1 per=1m")),
			[]string{"b/b.go:4:23: warning: " + keys + `"", the rule of ../a/a.go:4 has "{s}"`}},
		"a key that means the same": {a(method("limit=1 per=1m key={n}")), b("//ratelimit:rule name=login limit=1 per=1m key={m.N}\nM(m struct{N int}) error\n"), nil},
		"two algorithms": {a(method("limit=100 per=1m")), b(method("limit=100 per=1m algorithm=fixed-window")),
			[]string{"b/b.go:4:23: warning: " + windows + "fixed:1m, the rule of ../a/a.go:4 has 1m"}},
		"two anchors": {timed(a(anchored("c.Since"))), timed(b(anchored("c.Paid"))),
			[]string{"b/b.go:6:23: warning: " + anchors + `"c.Paid", the rule of ../a/a.go:6 has "c.Since"` + oneAnchor}},
		"two dates": {timed(a(anchored("date('2026-01-31')"))), timed(b(anchored("date('2026-02-28')"))),
			[]string{"b/b.go:6:23: warning: " + anchors + `"date('2026-02-28')", the rule of ../a/a.go:6 has "date('2026-01-31')"` + oneAnchor}},
		"another time for some": {timed(a(anchored("c.Since"))), timed(b(anchored("\"c.N > 0 ? c.Since : c.Paid\""))),
			[]string{"b/b.go:6:23: warning: " + anchors + `"c.N > 0 ? c.Since : c.Paid", the rule of ../a/a.go:6 has "c.Since"` + oneAnchor}},
		"an anchor that means the same": {timed(a(anchored("c.Since"))), timed(b(strings.NewReplacer("c.", "d.", "(c", "(d").Replace(anchored("c.Since")))), nil},
		"a date in other quotes":        {timed(a(anchored("date('2026-01-31')"))), timed(b(anchored("`date(\"2026-01-31\")`"))), nil},
		"a function of what means the same": {started(a(anchored("Start(c.N)"))),
			started(b("//ratelimit:rule name=login limit=1 every=1mo key={n} anchor=\"Start( n )\"\nM(n int) error\n")), nil},
		"other prefixes": {a(method("limit=1 per=1m")), strings.Replace(b(method("limit=1 per=1h")), "type", "//ratelimit:wrap prefix=b\ntype", 1), nil},
	} {
		t.Run(name, func(t *testing.T) { compare(t, map[string]string{"a/a.go": c.first, "b/b.go": c.second}, c.found) })
	}
}

func TestNeverRefuses(t *testing.T) {
	const rule, strict = "//ratelimit:rule key={a} per=1m ", "//ratelimit:rule key={a} per=1m limit=5\n"
	const says = "warning: this rule never refuses a call: the rule of line %d counts the same calls in the same window (1m) " +
		"and admits at most 5; leave one of them out"
	check(t, []scenario{
		{"a name", strict + rule + "limit=100 name=n1\nM(a string) error", []string{"10:13: " + fmt.Sprintf(says, 9)}},
		{"the other's name", rule + "limit=100\n" + rule + "limit=5 name=n2\nM(a string) error", []string{"9:13: " + fmt.Sprintf(says, 10)}},
		{"two names and one limit", rule + "limit=5 name=m3\n" + rule + "limit=5 name=n3\nM(a string) error", []string{"10:13: " + fmt.Sprintf(says, 9)}},
		{"the type's", "M() error\n}\n\n//ratelimit:rule per=1m limit=5\ntype Y interface {\n" +
			"//ratelimit:rule per=1m limit=10\nM() error", []string{"14:13: " + fmt.Sprintf(says, 12)}},
		{"a name that others have", strict + rule + "limit=100 name=n5\nM(a string) error\n" + rule + "limit=100 name=n5\nN(a string) error", nil},
		{"another window", strict + "//ratelimit:rule key={a} per=1s limit=100 name=n6\nM(a string) error", nil},
		{"another key", strict + "//ratelimit:rule key={b} per=1m limit=100 name=n7\nM(a, b string) error", nil},
		{"another condition", strict + rule + "limit=100 name=n8 when=\"a != ``\"\nM(a string) error", nil},
		{"another cost", strict + rule + "limit=100 name=n9 cost=2\nM(a string) error", nil},
		{"permits that come back", rule + "limit=5 refund=error\n" + rule + "limit=100 name=n10\nM(a string) error", nil},
		{"another scope", strict + rule + "limit=100 name=n11 scope=instance\nM(a string) error", nil},
		{"a trigger", strict + rule + "limit=100 name=n12 mode=trigger\nM(a string) error", nil},
		{"limits of calls", strict + rule + "limit=\"f(a)\" name=n13\nM(a string) error", nil},
	})
}

func TestShortWait(t *testing.T) {
	const rule, method = "//ratelimit:rule limit=10 per=1m ", "\nM(context.Context) error"
	says := func(column int, each string) []string {
		return []string{fmt.Sprintf("9:%d: warning: wait: the permits of a call come within %s, so most calls that find none are refused after all; expected at least %[2]s",
			column, each)}
	}
	check(t, []scenario{
		{"a token bucket", rule + "wait=5s algorithm=token-bucket burst=10" + method, says(39, "6s")},
		{"a leaky bucket", rule + "wait=5s algorithm=leaky-bucket" + method, says(39, "6s")},
		{"a cost", rule + "wait=10s algorithm=token-bucket cost=2" + method, says(39, "12s")},
		{"as long as one permit takes", rule + "wait=6s algorithm=token-bucket" + method, nil},
		{"a window", rule + "wait=5s" + method, nil},
		{"no wait", rule + "algorithm=token-bucket" + method, nil},
		{"a cost of the call's own", rule + "wait=1s algorithm=token-bucket cost=n\nM(ctx context.Context, n int) error", nil},
		{"a debt", rule + "wait=1s algorithm=token-bucket prepay" + method, nil},
	})
}

func TestFreeText(t *testing.T) {
	const rule = "//ratelimit:rule limit=10 per=1m "
	says := func(text string) []string {
		return []string{"9:38: warning: key: " + text + " is free text, and a text that differs in one letter has a budget of its own; write {lower(" + text +
			")} or a part of it, or give the rule a name if that is meant"}
	}
	check(t, []scenario{
		{"a parameter", rule + "key={query}\nM(query string) error", says("query")},
		{"in upper case", rule + "key=\"q:{Comment}\"\nM(Comment string) error", []string{strings.Replace(says("Comment")[0], ":38:", ":39:", 1)}},
		{"a field", rule + "key={r.Body}\nM(r struct{ Body string }) error", says("r.Body")},
		{"lower", rule + "key={lower(query)}\nM(query string) error", nil},
		{"a cut", rule + "key={query[:8]}\nM(query string) error", nil},
		{"a function", rule + "key={f(query)}\nM(query string) error", nil},
		{"a user's text", rule + "key=\"{user}:{text}\"\nM(user, text string) error", nil},
		{"a number", rule + "key={message}\nM(message int) error", nil},
		{"a name", rule + "key={body} name=n\nM(body string) error", nil},
		{"another parameter", rule + "key={textile}\nM(textile string) error", nil},
	})
}
