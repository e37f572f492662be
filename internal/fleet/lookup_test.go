package fleet

import (
	"fmt"
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
	in := newInForce(all, time.Now())
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
