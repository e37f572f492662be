package ratelimit

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/ratelimit-go/ratelimit/internal/decide"
	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/memory"
)

func TestOverrideText(t *testing.T) {
	when := time.Date(2026, 11, 22, 18, 0, 0, 0, time.UTC)
	for text, want := range map[string]Override{
		`{"limit":5}`:                                {Limit: new(int64(5))},
		`{"limit":0}`:                                {Limit: new(int64(0))},
		`{"factor":0.5}`:                             {Factor: 0.5},
		`{"per":"1m30s"}`:                            {Per: 90 * time.Second},
		`{"burst":7}`:                                {Burst: 7},
		`{"mode":"enforce"}`:                         {Mode: new(ModeEnforce)},
		`{"mode":"shadow"}`:                          {Mode: new(ModeShadow)},
		`{"limit":1,"mode":"trigger"}`:               {Limit: new(int64(1)), Mode: new(ModeTrigger)},
		`{"limit":9,"per":"1d"}`:                     {Limit: new(int64(9)), Per: 24 * time.Hour},
		`{"limit":1000000000000000}`:                 {Limit: new(int64(maxLimit))},
		`{"limit":2,"until":"2026-11-22T18:00:00Z"}`: {Limit: new(int64(2)), Until: when},
		`{"burst":2,"by":"ann","at":"2026-11-22T18:00:00Z"}`:  {Burst: 2, By: "ann", At: when},
		`{"key":"ann","limit":2,"by":"kim","reason":"abuse"}`: {Key: "ann", Limit: new(int64(2)), By: "kim", Reason: "abuse"},
	} {
		var got Override
		if err := json.Unmarshal([]byte(text), &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, error %v; want %+v", text, got, err, want)
		}
		if back, err := json.Marshal(want); err != nil || string(back) != text {
			t.Errorf("%+v: got %s, error %v; want %s", want, back, err, text)
		}
		s := Setting{"login", want}
		line, err := json.Marshal(s)
		if err != nil || string(line) != `{"rule":"login",`+text[1:] {
			t.Errorf("got %s, %v", line, err)
		}
		var again Setting
		if err := json.Unmarshal(line, &again); err != nil || !reflect.DeepEqual(again, s) {
			t.Errorf("%s: got %+v, error %v", line, again, err)
		}
	}
	for _, text := range []string{`5`, `{"limits":5}`, `{"limit":NaN}`, `{"limit":1e30}`, `{"limit":0.5}`, `{"rule":"r","limit":1}`, `{"mode":"off"}`, `{"per":"-1s"}`, `{"per":"1mo"}`} {
		if err := json.Unmarshal([]byte(text), new(Override)); err == nil {
			t.Errorf("%s: no error", text)
		}
	}
}

// If the context has ended, nothing is changed.
func TestOverridesAfterTheContextEnded(t *testing.T) {
	o := New(memory.New(nil, 10, 1<<20)).Overrides()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 20 {
		if err := o.Set(ctx, "r", Override{Burst: 2}); !errors.Is(err, context.Canceled) {
			t.Errorf("Set: error %v", err)
		}
	}
	if _, err := o.List(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("List: error %v", err)
	}
	if all, err := o.List(t.Context()); len(all) > 0 || err != nil {
		t.Errorf("got %v, error %v", all, err)
	}
}

// An override puts any rule in shadow or trigger mode, even a rule with arguments that these modes do not allow.
func TestOverrideOfTheMode(t *testing.T) {
	for _, r := range []Rule{
		{Limit: 1, Per: time.Minute, Wait: time.Second, Block: time.Second},
		{Limit: 1, Per: time.Minute, Algorithm: LeakyBucket, Wait: time.Second, Queue: 1},
		{Limit: 1, Per: time.Minute, Lease: time.Millisecond},
	} {
		for _, mode := range []Mode{ModeShadow, ModeTrigger} {
			if mode == ModeTrigger && r.Algorithm == LeakyBucket {
				continue
			}
			if err := cmp.Or(r.Validate(), Override{Mode: &mode}.apply(r).Validate()); err != nil {
				t.Errorf("%+v in mode %s: %v", r, mode, err)
			}
		}
	}
}

// Set and SetLocal refuse an override that no rule can have.
func TestImpossibleOverrides(t *testing.T) {
	l := New(memory.New(nil, 10, 1<<20))
	limit := func(n int64) *int64 { return &n }
	for argument, overrides := range map[string][]Override{
		"override": {{}, {By: "ann"}, {Key: "ann"}},
		"limit":    {{Limit: limit(-1)}, {Limit: limit(maxLimit + 1)}, {Limit: limit(maxBucketLimit + 1), Burst: 1}},
		"factor":   {{Factor: -1}, {Factor: 0.0009}, {Factor: 1001}, {Factor: 2, Limit: limit(1)}},
		"per":      {{Per: -time.Second}, {Per: time.Nanosecond}, {Per: maxPer + time.Hour}},
		"burst":    {{Burst: -1}, {Burst: maxBucketLimit + 1}},
		"mode":     {{Mode: new(Mode(3))}, {Limit: limit(0), Mode: new(ModeTrigger)}, {Burst: 1, Mode: new(ModeTrigger)}},
		"key":      {{Limit: limit(1), Key: strings.Repeat("x", decide.MaxText+1)}},
		"name":     {{Limit: limit(1)}},
	} {
		name := "r"
		if argument == "name" {
			name = "a b"
		}
		for _, o := range overrides {
			for _, set := range []error{l.Overrides().SetLocal(name, o), l.Overrides().Set(t.Context(), name, o)} {
				if err, ok := set.(*RuleError); !ok || err.Argument != argument {
					t.Errorf("%+v: got error %v, want one about %s", o, set, argument)
				}
			}
		}
	}
	far := time.Unix(1<<40, 0) // has no JSON text: its year is beyond 9999
	if err, ok := l.Overrides().Set(t.Context(), "r", Override{Limit: limit(1), Until: far}).(*RuleError); !ok || !strings.Contains(err.Reason, "9999") {
		t.Errorf("got error %v", err)
	}
	for _, actor := range [][2]string{{strings.Repeat("x", 201), ""}, {"kim", strings.Repeat("x", 201)}, {"\xff", ""}} {
		err, ok := l.Overrides().Set(WithActor(t.Context(), actor[0], actor[1]), "r", Override{Burst: 2}).(*RuleError)
		if !ok || err.Argument != "actor" {
			t.Errorf("got error %v", err)
		}
	}
	for s := range l.machine().Settings() {
		t.Errorf("%+v is in force", s)
	}
}

// A rule with an override keeps its keys in the store, unless the override changes the window.
func TestOverrideKeepsTheIdentity(t *testing.T) {
	l := New(memory.New(nil, 10, 1<<20))
	rule, err := Rule{Name: "p.T.M", Key: "{phone}", Limit: 3, Per: time.Minute, Wait: time.Second, Block: time.Hour, Burst: 2, Algorithm: TokenBucket}.prepare("p.T.M")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []Override{{Limit: new(int64(1))}, {Burst: 9}, {Mode: new(ModeShadow)}, {Factor: 2}, {Key: "k", Factor: 3}} {
		if err := l.Overrides().SetLocal("p.T.M", o); err != nil {
			t.Fatal(err)
		}
		changed := l.machine().InForce(rule, "k", "k")
		if changed == rule || changed.Numbers.Tag != rule.Numbers.Tag {
			t.Errorf("%+v: %+v has the tag %v, want %v", o, *ruleOf(changed), changed.Numbers.Tag, rule.Numbers.Tag)
		}
	}
	if err := l.Overrides().SetLocal("p.T.M", Override{Per: time.Hour}); err != nil {
		t.Fatal(err)
	}
	if changed := l.machine().InForce(rule, "k", "k"); changed.Numbers.Tag != "bucket:1h:{phone}" {
		t.Errorf("tag %v", changed.Numbers.Tag)
	}
}

// What holds for a key is decided field by field: the key's override, else that of all keys, else what is declared. A reference in rational
// numbers says what a factor gives.
func TestPrecedence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := New(memory.New(nil, 10, 1<<20))
		declared := Rule{Name: "r", Limit: rapid.Int64Range(0, 1000).Draw(t, "limit"), Per: time.Minute, Algorithm: TokenBucket,
			Burst: rapid.Int64Range(1, 100).Draw(t, "burst")}
		if declared.Computed = rapid.Bool().Draw(t, "computed"); declared.Computed {
			declared.Limit = 0
		}
		rule, err := declared.prepare("")
		if err != nil {
			t.Fatal(err)
		}
		draw := func(name string) (v Override) {
			switch rapid.IntRange(0, 3).Draw(t, name+" limit") {
			case 0:
				v.Limit = new(rapid.Int64Range(0, 1000).Draw(t, name+" n"))
			case 1:
				v.Factor = rapid.SampledFrom([]float64{0.1, 0.3, 0.5, 1, 1.1, 1.5, 2, 3.3, 10}).Draw(t, name+" factor")
			}
			if rapid.Bool().Draw(t, name+" per") {
				v.Per = rapid.SampledFrom([]time.Duration{time.Second, time.Hour}).Draw(t, name+" length")
			}
			if rapid.Bool().Draw(t, name+" burst") {
				v.Burst = rapid.Int64Range(1, 100).Draw(t, name+" b")
			}
			if rapid.Bool().Draw(t, name+" mode") {
				v.Mode = new(rapid.SampledFrom([]Mode{ModeEnforce, ModeShadow}).Draw(t, name+" m"))
			}
			return v
		}
		all, own := draw("all"), draw("own")
		own.Key = "ann"
		local := rapid.Bool().Draw(t, "local")
		for _, v := range []Override{all, own} {
			if v.check("r") != nil {
				continue
			}
			if err := l.Overrides().Set(t.Context(), "r", v); err != nil {
				t.Fatal(err)
			}
			if local { // takes the place of the store's
				if err := errors.Join(l.Overrides().Set(t.Context(), "r", Override{Key: v.Key, Limit: new(int64(7777))}), l.Overrides().SetLocal("r", v)); err != nil {
					t.Fatal(err)
				}
			}
		}
		want, factor := declared, 0.0
		for _, v := range []Override{all, own} {
			if v.Limit != nil {
				want.Limit, want.Computed, factor = *v.Limit, false, 0
			}
			want.Per, want.Burst, factor = cmp.Or(v.Per, want.Per), cmp.Or(v.Burst, want.Burst), cmp.Or(v.Factor, factor)
			if v.Mode != nil {
				want.Mode = *v.Mode
			}
		}
		want.Limit, want.Burst = exactly(want.Limit, factor), exactly(want.Burst, factor)
		got := l.machine().InForce(rule, "ann", "ann")
		if *ruleOf(got) != want {
			t.Fatalf("all %+v, own %+v:\n got %+v\nwant %+v", all, own, *ruleOf(got), want)
		}
		given := rapid.Int64Range(0, 1000).Draw(t, "given")
		if n := got.LimitFor(given); !want.Computed && n != want.Limit || want.Computed && n != exactly(given, factor) {
			t.Fatalf("all %+v, own %+v: the limit of a call, %d, becomes %d", all, own, given, n)
		}
		if other := l.machine().InForce(rule, "bob", "bob"); all.check("r") != nil && other != rule {
			t.Fatalf("another key has %+v", *ruleOf(other))
		}
	})
}

// exactly returns n times a factor that has two decimals at most, rounded up.
func exactly(n int64, factor float64) int64 {
	if factor == 0 {
		return n
	}
	r, _ := new(big.Rat).SetString(fmt.Sprintf("%.2f", factor))
	r.Mul(r, new(big.Rat).SetInt64(n))
	sum := new(big.Int).Add(r.Num(), new(big.Int).Sub(r.Denom(), big.NewInt(1)))
	return new(big.Int).Div(sum, r.Denom()).Int64()
}

// A factor makes no limit of a call higher than the rule can have.
func TestFactorOfALimitThatComesWithCalls(t *testing.T) {
	l := New(memory.New(nil, 10, 1<<20))
	rules, err := Prepare("p.T.M", Rule{Name: "r", Computed: true, Per: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Overrides().Set(t.Context(), "r", Override{Factor: 1000}); err != nil {
		t.Fatal(err)
	}
	take(t, l, rules, decide.Use{Key: "k", Cost: 1, Limit: rules.All[0].MostLimit})
	if err := l.Overrides().Err(); err != nil {
		t.Error(err)
	}
}

// An override of the store may have durations as directives write them, such as 1d. Values that no rule can have are errors.
func TestStoredOverrides(t *testing.T) {
	read := func(text string) (Override, error) {
		s := &fleet.Setting{Kind: fleet.Override, Rule: "r", AllKeys: true}
		if err := json.Unmarshal([]byte(text), &s.Values); err != nil {
			t.Fatal(err)
		}
		return overrideOf(s)
	}
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{"1d": day, "1w2d12h": 9*day + 12*time.Hour, "1.5h": 90 * time.Minute, "90s": 90 * time.Second} {
		if got, err := read(`{"per":"` + text + `"}`); err != nil || got.Per != want {
			t.Errorf("%s: got %+v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		`{}`:                               `rule "r": override: found no change; expected limit, factor, per, burst or mode`,
		`{"until":"2026-11-22T18:00:00Z"}`: `rule "r": override: found no change; expected limit, factor, per, burst or mode`,
		`{"limit":-1}`:                     `rule "r": limit: found -1; expected 0 or more, or mode=shadow, which refuses no call`,
		`{"limit":-2}`:                     `rule "r": limit: found -2; expected 0 to 1000000000000000`,
		`{"limit":5,"factor":2}`:           `rule "r": factor: found limit as well; expected one of the two`,
		`{"limit":5,"per":"day"}`:          `per is "day"; expected a duration above zero, such as 90s, 24h or 1d`,
		`{"mode":"off"}`:                   `mode: found "off"; expected enforce, shadow or trigger`,
		`{"per":"-1s"}`:                    `per is "-1s"; expected a duration above zero, such as 90s, 24h or 1d`,
		`{"per":"1mo"}`:                    `unknown unit "mo" in "1mo"; expected ns, us, ms, s, m, h, d or w`,
		`{"per":"4000d"}`:                  `rule "r": per: found 4000d; expected whole microseconds, up to 3660d`,
	} {
		if _, err := read(text); err == nil || err.Error() != want {
			t.Errorf("%s:\n got %v\nwant %s", text, err, want)
		}
	}
}

// List returns the overrides that can be read, and an error for the others. These have no effect.
func TestListOfUnusableOverrides(t *testing.T) {
	l := New(memory.New(nil, 100, 1<<20))
	edit := fleet.Edit{What: "set", Settings: []*fleet.Setting{
		{Kind: fleet.Override, Rule: "r", AllKeys: true, Values: fleet.Values{Mode: "off", Limit: new(int64(1))}},
		{Kind: fleet.Override, Rule: "s", AllKeys: true, Values: fleet.Values{Limit: new(int64(1))}},
	}}
	if _, err := l.machine().Fleet().Change(t.Context(), edit); err != nil {
		t.Fatal(err)
	}
	all, err := l.Overrides().List(t.Context())
	if len(all) != 1 || all[0].Rule != "s" || err == nil || !strings.Contains(err.Error(), "off") {
		t.Errorf("got %+v, %v", all, err)
	}
	d, err := l.Peek(t.Context(), Request{Rule: Rule{Name: "r", Limit: 5, Per: time.Minute}})
	if err != nil || d.Quotas[0].Limit != 5 || l.Overrides().Err() == nil {
		t.Errorf("got %+v, %v, %v", d.Quotas, err, l.Overrides().Err())
	}
}

// Keys of settings have the form of the store. Where the limiter hashes subjects, it hashes them, unless their rule says that it does not.
func TestOverridesOfKeysAreHashed(t *testing.T) {
	l := New(memory.New(nil, 100, 1<<20), WithSubjectHash(bytes.Repeat([]byte("s"), 32)))
	hashed := Request{Rule: Rule{Name: "hashed", Limit: 5, Per: time.Minute}, Key: "ann"}
	plain := Request{Rule: Rule{Name: "plain", Limit: 5, Per: time.Minute, Hash: HashNever}, Key: "ann"}
	for _, q := range []Request{hashed, plain} {
		if _, err := l.Allow(t.Context(), q); err != nil {
			t.Fatal(err)
		}
		for i, set := range []func() error{
			func() error {
				return l.Overrides().Set(t.Context(), q.Rule.Name, Override{Key: "ann", Limit: new(int64(2))})
			},
			func() error { return l.Overrides().SetLocal(q.Rule.Name, Override{Key: "ann", Limit: new(int64(3))}) },
		} {
			if err := set(); err != nil {
				t.Fatal(err)
			}
			if d, err := l.Peek(t.Context(), q); err != nil || d.Quotas[0].Limit != int64(2+i) {
				t.Errorf("%s: got %+v, %v", q.Rule.Name, d.Quotas, err)
			}
		}
	}
	all, err := l.Overrides().List(t.Context())
	if err != nil || len(all) != 2 || all[0].Key == "ann" || all[1].Key != "ann" {
		t.Errorf("got %+v, %v", all, err)
	}
	for _, q := range []Request{hashed, plain} {
		if err := l.Overrides().Clear(t.Context(), q.Rule.Name, "ann"); err != nil {
			t.Error(err)
		}
		l.Overrides().ClearLocal(q.Rule.Name, "ann")
		if d, err := l.Peek(t.Context(), q); err != nil || d.Quotas[0].Limit != 5 {
			t.Errorf("%s: got %+v, %v", q.Rule.Name, d.Quotas, err)
		}
	}
}

// Err ignores an override that did not suit a rule and has ended, even if nobody has called since.
func TestErrOfAnOverrideThatHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(memory.New(nil, 100, 1<<20))
		rule, err := Rule{Name: "r", Limit: 1, Cron: "@daily"}.prepare("")
		if err != nil {
			t.Fatal(err)
		}
		for _, set := range []func(Override) error{
			func(v Override) error { return l.Overrides().SetLocal("r", v) },
			func(v Override) error { return l.Overrides().Set(t.Context(), "r", v) },
		} {
			if err := set(Override{Per: time.Minute, Until: time.Now().Add(time.Minute)}); err != nil {
				t.Fatal(err)
			}
			if got := l.machine().InForce(rule, "", ""); got != rule {
				t.Errorf("got %+v", got)
			}
			if err := l.Overrides().Err(); err == nil || !strings.Contains(err.Error(), "cron") {
				t.Errorf("got error %v", err)
			}
			time.Sleep(time.Minute)
			if err := l.Overrides().Err(); err != nil {
				t.Error(err)
			}
		}
	})
}

// Settings end at their time by the store's clock, also if that is a clock of a test.
func TestOverrideEnds(t *testing.T) {
	now := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	l := New(memory.New(func() time.Time { return now }, 100, 1<<20))
	q := Request{Rule: Rule{Name: "r", Limit: 1, Per: time.Minute}, Key: "k"}
	for _, v := range []Override{{Limit: new(int64(5)), Until: now.Add(time.Hour)}, {Key: "k", Limit: new(int64(9)), Until: now.Add(time.Minute)}} {
		if err := l.Overrides().Set(t.Context(), "r", v); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Block(t.Context(), time.Second, q); err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		after   time.Duration
		limit   int64
		blocked bool
	}{{0, 9, true}, {time.Second - 1e6, 9, true}, {time.Second, 9, false}, {time.Minute - 1e6, 9, false}, {time.Minute, 5, false},
		{time.Hour - 1e6, 5, false}, {time.Hour, 1, false}} {
		now = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC).Add(want.after)
		d, err := l.Peek(t.Context(), q)
		if err != nil || d.Quotas[0].Limit != want.limit || d.Allowed == want.blocked {
			t.Errorf("after %s: got %+v, %v", want.after, d, err)
		}
	}
	if l.machine().Fleet().InForce() != nil {
		t.Error("ended settings are looked at")
	}
}

// Who set what, why and when is kept, and listed for people.
func TestActor(t *testing.T) {
	l := New(memory.New(nil, 100, 1<<20))
	ctx, q := WithActor(t.Context(), "kim", "abuse"), Request{Rule: Rule{Name: "r", Limit: 5, Per: time.Minute}, Key: "ann"}
	err := errors.Join(
		l.Overrides().Set(t.Context(), "r", Override{Limit: new(int64(3)), By: "forged"}), // by the program: no change for people
		l.Overrides().Set(ctx, "r", Override{Limit: new(int64(2)), By: "forged", Reason: "none"}),
		l.Block(ctx, time.Hour, q), l.Unblock(ctx, q), l.Overrides().Clear(ctx, "r", ""),
	)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Reset(ctx, q); err != nil {
		t.Fatal(err)
	}
	if err := l.Give(ctx, -2, q); err != nil {
		t.Fatal(err)
	}
	changes, err := l.machine().Fleet().Changes(t.Context())
	if err != nil || len(changes) != 6 {
		t.Fatalf("got %+v, %v", changes, err)
	}
	for i, want := range []string{"give", "reset", "clear", "unblock", "block", "set"} {
		c := changes[i]
		if c.What != want || c.By != "kim" || c.Reason != "abuse" || c.Rule != "r" || time.Since(c.At).Abs() > time.Minute {
			t.Errorf("got %+v, want %s", c, want)
		}
	}
	if give := changes[0]; give.Permits != -2 {
		t.Errorf("got %+v", give)
	}
	if set := changes[5]; set.Before == nil || *set.Before.Limit != 3 || set.Before.By != "" || *set.After.Limit != 2 || set.After.By != "kim" {
		t.Errorf("got %+v", set)
	}
}

// A program cannot take the room that is kept for people.
func TestSettingsAreBounded(t *testing.T) {
	l := New(memory.New(nil, 100, 1<<20))
	block := func(ctx context.Context, from, n int) error {
		var all []Request
		for i := range n {
			all = append(all, Request{Rule: Rule{Name: "r"}, Key: fmt.Sprint(from + i)})
		}
		return l.Block(ctx, time.Hour, all...)
	}
	if err := block(t.Context(), 0, fleet.MaxByProgram); err != nil {
		t.Fatal(err)
	}
	full, ok := errors.AsType[*RuleError](l.Overrides().Set(t.Context(), "r", Override{Burst: 2}))
	if !ok || !strings.Contains(full.Error(), "expected at most 9000") {
		t.Errorf("got %v", full)
	}
	people := WithActor(t.Context(), "kim", "")
	if err := block(people, fleet.MaxByProgram, fleet.MaxSettings-fleet.MaxByProgram); err != nil {
		t.Fatal(err)
	}
	if full, ok := errors.AsType[*RuleError](l.Overrides().Set(people, "r", Override{Burst: 2})); !ok {
		t.Errorf("got %v", full)
	}
	if err := block(t.Context(), 7, 3); err != nil { // they are there
		t.Error(err)
	}
}

// BenchmarkSettings asks what is in force for a call: no settings at all, some by key of which the call's key has none, and one of its key.
func BenchmarkSettings(b *testing.B) {
	rules, err := Prepare("p.T.M", Rule{Name: "r", Limit: 1, Per: time.Minute})
	if err != nil {
		b.Fatal(err)
	}
	l := New(memory.New(nil, 100, 1<<20))
	run := func(name, subject string) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c := methodOn(l, rules).Open(false)
				c.Add(&decide.Use{Key: subject, Cost: 1})
				c.Free()
			}
		})
	}
	run("no settings", "+8613800000000")
	var edit fleet.Edit
	for i := range fleet.MaxByProgram {
		edit.Settings = append(edit.Settings, &fleet.Setting{Kind: fleet.Override, Rule: "r", Key: fmt.Sprint("+8613800", i), Values: fleet.Values{Factor: 2}})
	}
	if _, err := l.machine().Fleet().Change(b.Context(), edit); err != nil {
		b.Fatal(err)
	}
	run("a key without one", "+86138001234567")
	run("a key with one", "+86138007000")
	if err := l.Block(WithActor(b.Context(), "kim", ""), time.Hour, Request{Rule: Rule{Name: "r"}, Key: "+86138007001"}); err != nil {
		b.Fatal(err)
	}
	run("a blocked key", "+86138007001")
}

// An override of a key may be set before its rule is used, and the rule then says whether the key is hashed.
func TestOverridesOfKeysOfRulesToCome(t *testing.T) {
	l := New(memory.New(nil, 100, 1<<20), WithSubjectHash(bytes.Repeat([]byte("s"), 32)))
	for _, rule := range []Rule{
		{Name: "hashed", Limit: 5, Per: time.Minute},
		{Name: "plain", Limit: 5, Per: time.Minute, Hash: HashNever},
	} {
		if err := l.Overrides().SetLocal(rule.Name, Override{Key: "ann", Limit: new(int64(2))}); err != nil {
			t.Fatal(err)
		}
		q := Request{Rule: rule, Key: "ann"}
		for call := range 4 {
			if d, err := l.Allow(t.Context(), q); err != nil || d.Allowed != (call < 2) {
				t.Errorf("%s: call %d: %+v, error %v", rule.Name, call, d, err)
			}
		}
		if status := l.Status(); status.Settings != 1 {
			t.Errorf("%s: %d settings are in force, want 1", rule.Name, status.Settings)
		}
		l.Overrides().ClearLocal(rule.Name, "ann")
		if d, err := l.Peek(t.Context(), q); err != nil || !d.Allowed {
			t.Errorf("%s: without the override %+v, error %v", rule.Name, d, err)
		}
	}
	registered, err := Prepare("p.T.M", Rule{Name: "declared", Key: "{user}", Limit: 5, Per: time.Minute, Hash: HashNever})
	if err != nil {
		t.Fatal(err)
	}
	methodOn(l, registered)
	if err := l.Overrides().Set(t.Context(), "declared", Override{Key: "ann", Limit: new(int64(2))}); err != nil {
		t.Fatal(err)
	}
	if all, err := l.Overrides().List(t.Context()); err != nil || len(all) != 1 || all[0].Key != "ann" {
		t.Errorf("the override of a rule that is declared here has the keys %+v; error %v", all, err)
	}
}
