package doubt_test

import "testing"

func TestKeyIsMember(t *testing.T) {
	const says = "distinct: the key contains the same values, so each key has only one member and the rule refuses no call"
	const rule = "//ratelimit:rule per=1m "
	check(t, []scenario{
		{"the same", rule + "limit=3 key=\"{a}\" distinct=\"{a}\"\nM(a, b string) error", []string{"9:53: " + says}},
		{"a part of it", rule + "limit=3 key=\"{a}:{b}\" distinct=\"of {b}\"\nM(a, b string) error", []string{"9:57: " + says}},
		{"a shadow", rule + "limit=3 key=\"{a}\" distinct=\"{a}\" mode=shadow\nM(a, b string) error", []string{"9:53: " + says}},
		{"more", rule + "limit=3 key=\"{a}\" distinct=\"{a}:{b}\"\nM(a, b string) error", nil},
		{"another one", rule + "limit=3 key=\"{a}\" distinct=\"{b}\"\nM(a, b string) error", nil},
		{"a value of it", rule + "limit=3 key=\"{f(a)}\" distinct=\"{a}\"\nM(a, b string) error", nil},
		{"a name, which others may have", rule + "limit=3 key=\"{a}\" distinct=\"{a}\" name=r\nM(a, b string) error", nil},
		{"a trigger", rule + "limit=1 key=\"{a}\" distinct=\"{a}\" mode=trigger\nM(a, b string) error", nil},
		{"nobody", rule + "limit=0 key=\"{a}\" distinct=\"{a}\"\nM(a, b string) error", nil},
		{"a limit of the call's own", rule + "limit=\"f(b)\" key=\"{a}\" distinct=\"{a}\"\nM(a, b string) error", nil},
		{"what is wrong", rule + "limit=3 key=\"{c}\" distinct=\"{c}\"\nM(a, b string) error",
			[]string{"9:39: unknown name c; the parameters are a, b", "9:54: unknown name c; the parameters are a, b"}},
	})
}

func TestNeverWaits(t *testing.T) {
	const waits, counts = "//ratelimit:rule limit=3 per=1m wait=1s\n", "//ratelimit:rule limit=3 per=1h distinct=\"{a}\""
	check(t, []scenario{
		{"both", waits + counts + "\nM(ctx context.Context, a string) error",
			[]string{"9:38: wait: the rule of line 10 has distinct=, so calls of M do not wait"}},
		{"a condition", waits + counts + " when=\"a != ``\"\nM(ctx context.Context, a string) error",
			[]string{"9:38: warning: wait: the rule of line 10 has distinct=, so calls of M do not wait"}},
		{"the type's wait", counts + "\nM(ctx context.Context, a string) error\nN(ctx context.Context, a string) error\n}\n\n" + waits + "type Y interface {\n" + counts + "\nM(ctx context.Context, a string) error\nN(ctx context.Context, a string) error",
			[]string{"14:38: wait: the rule of line 16 has distinct=, so calls of M do not wait"}},
		{"the type's members", "M(ctx context.Context, a string) error\n}\n\n" + counts + "\ntype Y interface {\n" + waits + "M(ctx context.Context, a string) error\n//ratelimit:skip",
			[]string{"14:38: wait: the rule of line 12 has distinct=, so calls of M do not wait"}},
		{"other methods", waits + "M(ctx context.Context, a string) error\n" + counts + "\nN(ctx context.Context, a string) error", nil},
	})
}

func TestNeverFails(t *testing.T) {
	const says = "warning: on-error: this has no effect with scope=instance, which counts without the store that may fail"
	const rule = "//ratelimit:rule limit=3 per=1m scope="
	check(t, []scenario{
		{"this process", rule + "instance on-error=allow\nM(a string) error", []string{"9:57: " + says}},
		{"the fleet", rule + "fleet on-error=allow\nM(a string) error", nil},
		{"of the type", rule + "instance\nM(a string) error\n}\n\n//ratelimit:wrap on-error=allow\ntype Y interface {\n" + rule + "instance\nM(a string) error", nil},
	})
}
