package fleet

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
)

// BenchmarkSettings looks settings up among 10,000.
func BenchmarkSettings(b *testing.B) {
	all := map[string]*Setting{}
	for i := range MaxSettings {
		s := &Setting{Kind: Override, Rule: "login", Key: fmt.Sprint("+8613800", i), Values: Values{Factor: 2}}
		all[s.Name()] = s
	}
	var none *InForce
	in := none.With(maps.Values(all), time.Now())
	subjects := make([]string, 1024)
	for name, from := range map[string]int{"a key without a setting": 1_000_000, "a key with one": 0} {
		for i := range subjects {
			subjects[i] = fmt.Sprint("+8613800", from+i)
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			of, found, i := in.Of("login"), 0, 0
			for b.Loop() {
				if of.OfKey(subjects[i&1023]).Override != nil {
					found++
				}
				i++
			}
			if from == 0 && found == 0 || from > 0 && found > 0 {
				b.Errorf("%d found", found)
			}
		})
	}
}

// BenchmarkChange changes one of 10,000 settings.
func BenchmarkChange(b *testing.B) {
	f := NewLocal(time.Now, nil)
	e := Edit{Actor: Actor{By: "kim"}}
	for i := range MaxSettings {
		e.Settings = append(e.Settings, &Setting{Kind: Override, Rule: "login", Key: fmt.Sprint("+8613800", i), Values: Values{Factor: 2}})
	}
	change := func() {
		if _, err := f.Change(b.Context(), e); err != nil {
			b.Fatal(err)
		}
	}
	change()
	e.Settings = e.Settings[:1]
	b.ReportAllocs()
	for b.Loop() {
		change()
	}
}

// What is in force is what a model knows, whatever is set, cleared and ended, and what was in force before does not change.
func TestInForceLikeModel(t *testing.T) {
	random, now := rand.New(rand.NewPCG(1, 2)), time.Now()
	var in *InForce
	model := map[string]*Setting{}
	for round := range 2000 {
		before, had := in, maps.Clone(model)
		var changed []*Setting
		for range random.IntN(4) {
			kind := []Kind{Override, Block, Pause}[random.IntN(3)]
			s := &Setting{Kind: kind, Rule: fmt.Sprint("r", random.IntN(3)), Key: fmt.Sprint("k", random.IntN(30)), Cleared: random.IntN(2) == 0}
			if s.AllKeys = kind == Override && random.IntN(3) == 0; s.AllKeys {
				s.Key = ""
			}
			if random.IntN(4) == 0 {
				s.Until = now.Add(time.Duration(random.IntN(20)-10) * time.Minute)
			}
			changed = append(changed, s)
			if delete(model, s.Name()); s.holds(now) {
				model[s.Name()] = s
			}
		}
		in = in.With(slices.Values(changed), now)
		check(t, in, model)
		check(t, before, had)
		if t.Failed() {
			t.Fatalf("round %d", round)
		}
	}
}

// check compares what is in force with a model.
func check(t *testing.T, in *InForce, model map[string]*Setting) {
	t.Helper()
	found, keys := map[string]*Setting{}, map[[2]string]bool{}
	first, last := nothing.first, nothing.last
	for s := range in.All() {
		found[s.Name()] = s
		if !s.AllKeys {
			keys[[2]string{s.Rule, s.Key}] = true
		}
		if k := in.Of(s.Rule).OfKey(s.Key); !s.AllKeys && *k.of(s.Kind) != s || s.AllKeys && in.Of(s.Rule).All != s {
			t.Errorf("%s is not found", s.Name())
		}
		first, last = min(first, s.end().UnixMilli()), max(last, s.end().UnixMilli())
	}
	if !maps.Equal(found, model) || int(in.total().settings) != len(model) {
		t.Errorf("%d settings are in force, %d counted, want %d", len(found), in.total().settings, len(model))
	}
	if sum := in.total(); sum.first != first || sum.last != last {
		t.Errorf("they end from %d to %d, want %d to %d", sum.first, sum.last, first, last)
	}
	n := 0
	for _, rule := range []string{"r0", "r1", "r2"} {
		n += in.Of(rule).Len()
	}
	if n != len(keys) {
		t.Errorf("%d keys have settings, %d are counted", len(keys), n)
	}
}

// BenchmarkCount counts a decision in the statistics.
func BenchmarkCount(b *testing.B) {
	for _, n := range []int{1, 100, 100_000} {
		subjects := make([]string, n)
		for i := range subjects {
			subjects[i] = fmt.Sprint("+8613800", i)
		}
		b.Run(fmt.Sprint(n, " subjects"), func(b *testing.B) {
			b.ReportAllocs()
			s, i := newStatistics(), 0
			for b.Loop() {
				s.Lock()
				s.Count(1, "login", "1m", subjects[i], Counts{Calls: 1})
				s.Unlock()
				if i++; i == n {
					i = 0
				}
			}
		})
	}
}

// FuzzSetting parses arbitrary names and texts as settings of the store. Each is either an error, or a setting that is written as the same.
func FuzzSetting(f *testing.F) {
	f.Add("override:login", `{"limit":2,"per":"1m","by":"ann"}`)
	f.Add("override:login:{ann}", `{"factor":2,"cleared":true}`)
	f.Add("block:login:{}", `{"until":"2026-11-22T18:00:00Z"}`)
	f.Add("block*:*:{203.0.113.0/24}*", `{"until":"2026-11-22T18:00:00Z"}`)
	f.Add("override*:shop.*", `{"factor":2}`)
	f.Add("pause*:login:{a%7B*}*", `{"until":"2026-11-22T18:00:00Z"}`)
	f.Add("block:}:{", `null`)
	f.Add("", `{}`)
	f.Fuzz(func(t *testing.T, name, text string) {
		s, err := parse(name, text)
		if err != nil {
			if strings.ContainsFunc(err.Error(), unicode.IsControl) || len(err.Error()) > 1000 {
				t.Errorf("an error of %d bytes: %q", len(err.Error()), err)
			}
			return
		}
		if s.Name() != name {
			t.Errorf("%q became %q", name, s.Name())
		}
		written, err := s.text()
		if err != nil {
			return
		}
		again, err := parse(name, written)
		if err != nil {
			t.Fatalf("%s became %s: %v", text, written, err)
		}
		if rewritten, _ := again.text(); rewritten != written {
			t.Errorf("%s became %s and then %s", text, written, rewritten)
		}
	})
}

// TestSettingName names unnamed rules by their method, and leaves names that a program chose.
func TestSettingName(t *testing.T) {
	for rule, want := range map[string]string{
		"shop.Cart.Add#2": "shop.Cart.Add", "shop.Cart.Add": "shop.Cart.Add", "login#new": "login#new", "login#": "login#", "login#2b": "login#2b",
	} {
		if got := SettingName(rule); got != want {
			t.Errorf("%s: got %s; expected %s", rule, got, want)
		}
	}
}
