package ratelimit

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ratelimit-go/ratelimit/internal/decide"
	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/memory"
)

// BenchmarkPatterns asks what is in force for a call without settings, and then with 1,000 settings by pattern, half of them for all rules. The last
// address is in three networks, and has a block and two overrides.
func BenchmarkPatterns(b *testing.B) {
	rules, err := Prepare("p.T.M", Rule{Name: "r", Limit: 1, Per: time.Minute})
	if err != nil {
		b.Fatal(err)
	}
	l := New(memory.New(nil, 100, 1<<20))
	run := func(name string) {
		for _, text := range []string{"somebody", "acme-403-ann", "203.0.113.7", "2001:db8:1::/64", "10.0.40.9"} {
			b.Run(name+"/"+strings.ReplaceAll(text, "/", "-"), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					c := methodOn(l, rules).Open(false)
					c.Add(&decide.Use{Key: text, Cost: 1})
					c.Free()
				}
			})
		}
	}
	run("none")
	edit := fleet.Edit{}
	for i := range fleet.MaxPatterns {
		s := &fleet.Setting{Kind: fleet.Override, Rule: []string{"*", "r"}[i%2], Match: true, Values: fleet.Values{Factor: 2}}
		switch {
		case i < 3:
			s.Key = netip.PrefixFrom(netip.MustParseAddr("10.0.0.0"), 8*i+1).Masked().String()
		case i%4 < 2:
			s.Key = fmt.Sprintf("10.%d.%d.0/24", i/256, i%256)
			s.Kind, s.Until = fleet.Block, time.Now().Add(time.Hour)
		case i%4 == 2:
			s.Key = fmt.Sprintf("2001:db8:%x::/48", i)
		default:
			s.Key = fmt.Sprintf("acme-%d-*", i)
		}
		edit.Settings = append(edit.Settings, s)
	}
	if _, err := l.machine().Fleet().Change(b.Context(), edit); err != nil {
		b.Fatal(err)
	}
	run("1,000")
}

// patterned is an override of a test: which rule and key it is for, and how exact that is.
type patterned struct {
	rule, key, match string
	matches          bool // the rule shop.cart and the address 10.0.0.1
	exact            [2]int
}

var patternedRules = []patterned{
	{rule: "*", matches: true}, {rule: "shop.*", matches: true, exact: [2]int{1: 1}}, {rule: "shop.cart", matches: true, exact: [2]int{1: 2}}, {rule: "shop.cartoon*"},
}

var patternedKeys = []patterned{
	{matches: true}, {match: "1*", matches: true, exact: [2]int{1}}, {match: "10.0.*", matches: true, exact: [2]int{2}}, {match: "0.0.0.0/0", matches: true, exact: [2]int{3}},
	{match: "10.0.0.0/24", matches: true, exact: [2]int{4}}, {key: "10.0.0.1", matches: true, exact: [2]int{5}}, {match: "10.0.1.0/24"}, {key: "10.0.0.2"}, {match: "11*"},
}

// Of several overrides the most exact one that says something of a field wins, whichever of them are set, of the store or of the limiter alone, and end. What a
// call gets is what tools are told.
func TestOverridesByPattern(t *testing.T) {
	now := time.Date(2026, 11, 22, 18, 0, 0, 0, time.UTC)
	rapid.Check(t, func(t *rapid.T) {
		l, all := New(memory.New(func() time.Time { return now }, 100, 1<<20)), map[patterned]Override{}
		locals := map[patterned]Override{}
		rule := Rule{Name: "shop.cart", Limit: 1000, Per: time.Minute, Algorithm: TokenBucket}
		q := Request{Rule: rule, Key: "10.0.0.1"}
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			of := rapid.SampledFrom(patternedRules).Draw(t, "rule")
			k := rapid.SampledFrom(patternedKeys).Draw(t, "key")
			of.key, of.match, of.matches, of.exact[0] = k.key, k.match, of.matches && k.matches, k.exact[0]
			change(t, l, of, now, all, locals)
			now = now.Add(time.Duration(rapid.IntRange(0, 2).Draw(t, "minutes")) * time.Minute)
			want := fold(all, locals, now).apply(rule)
			got, err := l.RuleFor(q)
			if err != nil || got != want {
				t.Fatalf("%+v, and here %+v:\n got %+v\nwant %+v", all, locals, got, want)
			}
			if d, err := l.Peek(t.Context(), q); err != nil || d.Quotas[0].Limit != cmp.Or(want.Burst, want.Limit) && want.Limit > 0 {
				t.Fatalf("a call has %+v, error %v; want %+v", d, err, want)
			}
		}
	})
}

// change sets or clears an override, in the store or in the limiter alone.
func change(t *rapid.T, l *Limiter, of patterned, now time.Time, stored, local map[patterned]Override) {
	v := Override{Key: of.key, Match: of.match}
	switch rapid.IntRange(0, 2).Draw(t, "field") {
	case 0:
		v.Limit = new(rapid.Int64Range(1, 100).Draw(t, "limit"))
	case 1:
		v.Factor = float64(rapid.IntRange(2, 9).Draw(t, "factor"))
	default:
		v.Per = time.Duration(rapid.IntRange(2, 9).Draw(t, "per")) * time.Minute
	}
	if rapid.IntRange(0, 2).Draw(t, "ends") == 0 {
		v.Until = now.Add(time.Duration(rapid.IntRange(1, 4).Draw(t, "until")) * time.Minute)
	}
	o, clears := l.Overrides(), rapid.IntRange(0, 3).Draw(t, "clears") == 0
	all, set, err := stored, func() error { return o.Set(t.Context(), of.rule, v) }, error(nil)
	clear := func() error { return o.clear(t.Context(), of.rule, of.key, of.match) }
	if rapid.Bool().Draw(t, "local") {
		all, set, clear = local, func() error { return o.SetLocal(of.rule, v) }, func() error {
			if of.match != "" {
				o.ClearLocalMatch(of.rule, of.match)
			} else {
				o.ClearLocal(of.rule, of.key)
			}
			return nil
		}
	}
	if clears {
		delete(all, of)
		err = clear()
	} else {
		all[of] = v
		err = set()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// fold returns what the overrides that match say together.
func fold(stored, local map[patterned]Override, now time.Time) (v Override) {
	in := map[patterned]Override{}
	for _, all := range []map[patterned]Override{stored, local} {
		for of, v := range all {
			if of.matches && (v.Until.IsZero() || now.Before(v.Until)) {
				in[of] = v
			}
		}
	}
	var order []patterned
	for of := range in {
		order = append(order, of)
	}
	slices.SortFunc(order, func(a, b patterned) int { return cmp.Or(b.exact[0]-a.exact[0], b.exact[1]-a.exact[1]) })
	for _, of := range order {
		v = v.or(in[of])
	}
	return v
}

// A broken glob or pattern is refused where it is typed, and so is one where only a key goes.
func TestBrokenMatch(t *testing.T) {
	l := New(memory.New(nil, 100, 1<<20), WithSubjectHash(bytes.Repeat([]byte("s"), 32)))
	ctx, hour := t.Context(), time.Hour
	v := func(key, match string) Override { return Override{Key: key, Match: match, Limit: new(int64(1))} }
	q := func(rule, key, match string) Request {
		return Request{Rule: Rule{Name: rule, Limit: 1, Per: hour}, Key: key, Match: match}
	}
	if err := l.Check(Rule{Name: "hashed", Limit: 1, Per: hour}, Rule{Name: "plain", Limit: 1, Per: hour, Hash: HashNever}); err != nil {
		t.Fatal(err)
	}
	plain := q("plain", "", "ann*")
	plain.Rule.Hash = HashNever
	for what, test := range map[string]struct {
		err      error
		argument string
	}{
		"set host bits": {l.Overrides().Set(ctx, "r", v("", "10.0.0.1/8")), "match"}, "local": {l.Overrides().SetLocal("r", v("", "a*b")), "match"},
		"set both": {l.Overrides().Set(ctx, "r", v("ann", "10.0.0.0/8")), "match"}, "glob": {l.Overrides().Set(ctx, "s*p", v("", "")), "name"},
		"clear": {l.Overrides().ClearMatch(ctx, "r", "*x"), "match"}, "clear nothing": {l.Overrides().ClearMatch(ctx, "r", ""), "match"},
		"clear a glob": {l.Overrides().Clear(ctx, "**", ""), "name"},
		"hashed text":  {l.Overrides().Set(ctx, "hashed", v("", "ann*")), "match"}, "local hashed text": {l.Overrides().SetLocal("hashed", v("", "ann*")), "match"},
		"block": {l.Block(ctx, hour, q("r", "", "10.0.0.1/8")), "match"}, "unblock": {l.Unblock(ctx, q("r", "", "ann")), "match"},
		"pause": {l.Pause(ctx, hour, q("r", "ann", "ann*")), "match"}, "resume": {l.Resume(ctx, q("s*p", "", "10.0.0.0/8")), "name"},
		"block hashed text": {l.Block(ctx, hour, q("r", "", "ann*")), "match"}, "block a glob alone": {l.Block(ctx, hour, q("*", "", "")), "name"},
		"allow": {second(l.Allow(ctx, q("r", "", "10.0.0.0/8"))), "match"}, "peek": {second(l.Peek(ctx, q("r", "ann", "ann*"))), "match"},
		"wait": {second(l.Wait(ctx, q("r", "", "10.0.0.0/8"))), "match"}, "reset": {second(l.Reset(ctx, q("r", "", "10.0.0.0/8"))), "match"},
		"give": {l.Give(ctx, 1, q("r", "", "10.0.0.0/8")), "match"}, "allow a glob": {second(l.Allow(ctx, q("shop.*", "ann", ""))), "name"},
		"a rule's name": {Rule{Name: "*", Limit: 1, Per: hour}.Validate(), "name"},
	} {
		if e, ok := errors.AsType[*RuleError](test.err); !ok || e.Argument != test.argument {
			t.Errorf("%s: got %v; want one about %s", what, test.err, test.argument)
		}
	}
	for _, err := range []error{
		l.Block(ctx, hour, plain), l.Overrides().Set(ctx, "plain", v("", "ann*")), l.Overrides().Set(ctx, "*", v("", "ann*")), l.Overrides().Set(ctx, "later", v("", "ann*")),
		l.Block(ctx, hour, q("hashed", "", "10.0.0.0/8")), l.Overrides().Set(ctx, "shop.*", v("", "")),
	} {
		if err != nil {
			t.Error(err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// A limiter that hashes ends settings by text that another one set, although they match none of its keys.
func TestClearTextOfHashedKeys(t *testing.T) {
	store := memory.New(nil, 100, 1<<20)
	plain, hashes := New(store), New(store, WithSubjectHash(bytes.Repeat([]byte("s"), 32)))
	rule, ctx := Rule{Name: "login", Limit: 1, Per: time.Hour}, t.Context()
	q := Request{Rule: rule, Match: "ann*"}
	err := errors.Join(plain.Check(rule), hashes.Check(rule), plain.Block(ctx, time.Hour, q), plain.Pause(ctx, time.Hour, q),
		plain.Overrides().Set(ctx, "login", Override{Match: "ann*", Factor: 2}))
	if err != nil {
		t.Fatal(err)
	}
	if n := plain.Status().Settings; n != 3 {
		t.Fatalf("%d settings, want 3", n)
	}
	if err := errors.Join(hashes.Unblock(ctx, q), hashes.Resume(ctx, q), hashes.Overrides().ClearMatch(ctx, "login", "ann*")); err != nil {
		t.Error(err)
	}
	if s := hashes.Status(); s.Settings != 0 || s.Unusable != 0 {
		t.Errorf("left are %+v", s)
	}
	if err := hashes.Overrides().ClearMatch(ctx, "login", ""); err == nil || !strings.Contains(err.Error(), "match: found nothing") {
		t.Errorf("no match: got %v", err)
	}
}

// A text has no effect on a rule whose keys turn out to be hashed, and Err says so. An override by glob that a rule cannot have leaves it as its other
// overrides make it.
func TestUnusableByPattern(t *testing.T) {
	l := New(memory.New(nil, 100, 1<<20), WithSubjectHash(bytes.Repeat([]byte("s"), 32)))
	calendar := Request{Rule: Rule{Name: "calendar", Limit: 10, Cron: "@daily"}, Key: "ann"}
	err := errors.Join(l.Overrides().Set(t.Context(), "*", Override{Per: time.Hour, Limit: new(int64(7))}),
		l.Overrides().Set(t.Context(), "calendar", Override{Match: "a*", Limit: new(int64(0))}), l.Overrides().Set(t.Context(), "cal*", Override{Factor: 2}))
	if err != nil {
		t.Fatal(err)
	}
	if d, err := l.Peek(t.Context(), calendar); err != nil || d.Quotas[0].Limit != 20 {
		t.Errorf("got %+v, error %v; want a limit of 20", d, err)
	}
	got := fmt.Sprint(l.Overrides().Err())
	for _, want := range []string{`rule "calendar": match: found the text a*; expected a network`, `rule "calendar": per: does not apply: the rule has cron=@daily`} {
		if !strings.Contains(got, want) {
			t.Errorf("got %s; want %s", got, want)
		}
	}
	if err := errors.Join(l.Overrides().Clear(t.Context(), "*", ""), l.Overrides().ClearMatch(t.Context(), "calendar", "a*")); err != nil {
		t.Fatal(err)
	}
	if err := l.Overrides().Err(); err != nil {
		t.Errorf("nothing is wrong any more: %v", err)
	}
}

// An override of one limiter that has no room beside the settings by pattern in the store is not in force, and Err says so until there is room.
func TestNoRoomForLocalPattern(t *testing.T) {
	l := New(memory.New(nil, 100, 1<<20))
	var full []Request
	for i := range fleet.MaxPatterns {
		full = append(full, Request{Rule: Rule{Name: "login"}, Match: fmt.Sprintf("10.%d.%d.0/24", i/256, i%256)})
	}
	if err := errors.Join(l.Block(t.Context(), time.Hour, full...), l.Overrides().SetLocal("shop.*", Override{Limit: new(int64(1))})); err != nil {
		t.Fatal(err)
	}
	cart := Request{Rule: Rule{Name: "shop.cart", Limit: 5, Per: time.Minute}}
	if r, err := l.RuleFor(cart); err != nil || r.Limit != 5 {
		t.Fatalf("the limit is %d, error %v", r.Limit, err)
	}
	if err := l.Overrides().Err(); err == nil || !strings.Contains(err.Error(), "have no room") || l.Status().Unusable != 1 {
		t.Errorf("got %v, %+v", err, l.Status())
	}
	if err := l.Unblock(t.Context(), full[0]); err != nil {
		t.Fatal(err)
	}
	if r, err := l.RuleFor(cart); err != nil || r.Limit != 1 || l.Overrides().Err() != nil {
		t.Errorf("with room the limit is %d, error %v, %v", r.Limit, err, l.Overrides().Err())
	}
}
