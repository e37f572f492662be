package fleet

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ratelimit-go/ratelimit/internal/key"
)

// naively reports whether a setting is for a key, and how exact it is: that of a key is more exact than those of networks, of texts, and of all keys, and
// of each the longer one.
func naively(s *Setting, rule, text string) (is bool, exact [4]int) {
	if begin, isGlob := strings.CutSuffix(s.Rule, "*"); isGlob {
		is, exact[2] = strings.HasPrefix(rule, begin), len(begin)-1000
	} else {
		is = s.Rule == rule
	}
	begin, isText := strings.CutSuffix(s.Key, "*")
	switch {
	case s.AllKeys:
		return is, exact
	case !s.Match:
		exact[0] = 3
		return is && s.Key == key.Subject(text), exact
	case isText:
		raw, _ := key.Unescape(begin)
		exact[0], exact[1] = 1, len(begin)
		return is && strings.HasPrefix(text, raw), exact
	}
	network := netip.MustParsePrefix(s.Key)
	exact[0], exact[1] = 2, network.Bits()
	in, err := netip.ParsePrefix(text)
	if a, noNetwork := netip.ParseAddr(text); err != nil {
		in, err = netip.PrefixFrom(a.WithZone("").Unmap(), a.Unmap().BitLen()), noNetwork
	}
	return is && err == nil && in.Bits() >= network.Bits() && network.Contains(in.Addr()), exact
}

var (
	drawnRule    = rapid.SampledFrom([]string{"shop.cart", "shop.", "shop", "s", "login"})
	drawnAddress = rapid.SampledFrom([]string{
		"10.0.0.1", "10.0.1.0", "10.128.0.0", "::ffff:10.0.0.1", "2001:db8::/64", "2001:db8::1", "2001:db8:0:1::/64", "10.0.0.0/24", "fe80::1%eth0", "10.0.0.0",
		"255.255.255.255", "::",
	})
	drawnKey = rapid.OneOf(drawnAddress, rapid.StringMatching(`[1ab.{%é]{0,4}`), rapid.StringMatching(`a{80,150}`),
		rapid.SampledFrom([]string{"10.0.0", "10.0.0.1:80", "1:", "/", "10.0.0.0/33", "::/129", ".", "::ffff:10.0.0.0/90"}))
)

// drawSetting draws a setting, most often one by pattern.
func drawSetting(t *rapid.T, now time.Time) *Setting {
	s := &Setting{Kind: rapid.SampledFrom([]Kind{Override, Override, Block, Pause}).Draw(t, "kind"), Rule: drawnRule.Draw(t, "rule")}
	if rapid.IntRange(0, 2).Draw(t, "glob") > 0 {
		s.Rule = s.Rule[:rapid.IntRange(0, len(s.Rule)).Draw(t, "letters")] + "*"
	}
	s.Until = now.Add(time.Duration(rapid.IntRange(1, 1000).Draw(t, "until")) * time.Minute)
	switch what := rapid.IntRange(0, 4).Draw(t, "what"); {
	case what == 0 && s.Kind == Override:
		s.AllKeys = true
		return s
	case what <= 1:
		s.Key = key.Subject(drawnKey.Draw(t, "key"))
		return s
	case what <= 3:
		a, _ := netip.ParseAddr(strings.TrimSuffix(drawnAddress.Filter(func(a string) bool { return !strings.Contains(a, "/") }).Draw(t, "address"), "%eth0"))
		a = a.Unmap()
		s.Key = netip.PrefixFrom(a, rapid.IntRange(0, a.BitLen()).Draw(t, "bits")).Masked().String()
	default:
		pattern, err := ParseMatch(drawnKey.Filter(func(k string) bool { return k != "" && len(k) < 90 }).Draw(t, "begin") + "*")
		if err != nil {
			t.Fatal(err)
		}
		s.Key = pattern
	}
	s.Match = true
	return s
}

// The settings by pattern for a key are those that a naive search finds, in the same order; the latest end counts. They stay the same after each is written
// and read, and the settings of before do not change.
func TestPatternsLikeNaiveSearch(t *testing.T) {
	now := time.Now().UTC().Truncate(time.Millisecond)
	rapid.Check(t, func(t *rapid.T) {
		all := map[string]*Setting{}
		var in *InForce
		for range rapid.IntRange(1, 30).Draw(t, "settings") {
			s := drawSetting(t, now)
			text, err := s.text()
			if err != nil {
				t.Fatal(err)
			}
			if s, err = parse(s.Name(), text); err != nil {
				t.Fatal(err)
			}
			if s.Cleared = rapid.IntRange(0, 9).Draw(t, "cleared") == 0; s.Cleared {
				delete(all, s.Name())
			} else {
				all[s.Name()] = s
			}
			in = in.With(slices.Values([]*Setting{s}), now)
		}
		if found := maps.Collect(named(in.All())); !maps.Equal(found, all) {
			t.Fatalf("%d hold, want %d", len(found), len(all))
		}
		for range 8 {
			rule, text := drawnRule.Draw(t, "rule"), drawnKey.Draw(t, "key")
			checkMatch(t, in, all, rule, text)
		}
	})
}

func named(all func(func(*Setting) bool)) func(func(string, *Setting) bool) {
	return func(yield func(string, *Setting) bool) {
		all(func(s *Setting) bool { return yield(s.Name(), s) })
	}
}

func checkMatch(t *rapid.T, in *InForce, all map[string]*Setting, rule, text string) {
	var want []*Setting
	var block, pause *Setting
	exact := map[*Setting][4]int{}
	for _, s := range all {
		if is, e := naively(s, rule, text); is {
			switch exact[s] = e; s.Kind {
			case Block:
				block = Later(block, s)
			case Pause:
				pause = Later(pause, s)
			default:
				want = append(want, s)
			}
		}
	}
	slices.SortFunc(want, func(a, b *Setting) int { return -compareAll(exact[a], exact[b]) })
	subject := key.Subject(text)
	got := in.ForKey(rule, text, subject, false)
	found := in.ByPattern(rule).Match(text, subject, false)
	for _, m := range found {
		if m != nil && slices.ContainsFunc(m.Overrides, func(s *Setting) bool { return s.Until.Before(m.Until) }) {
			t.Errorf("%s %q: one ends before %v", rule, text, m.Until)
		}
	}
	if !slices.Equal(got.Overrides, want) {
		t.Fatalf("%s %q: got %v, want %v", rule, text, names(got.Overrides), names(want))
	}
	for _, pair := range [][2]*Setting{{got.Block, block}, {got.Pause, pause}} {
		if (pair[0] == nil) != (pair[1] == nil) || pair[0] != nil && !pair[0].Until.Equal(pair[1].Until) {
			t.Fatalf("%s %q: a block or pause is %+v, want %+v", rule, text, pair[0], pair[1])
		}
	}
	if other := in.ByPattern(rule).Match(text, "hash", true); other[0] != nil || other[1] != found[1] {
		t.Fatalf("%s %q: a hashed key is found by its text, or not by its network", rule, text)
	}
}

func compareAll(a, b [4]int) (order int) {
	for i := range a {
		order = cmp.Or(order, a[i]-b[i])
	}
	return order
}

func names(all []*Setting) (names []string) {
	for _, s := range all {
		names = append(names, s.Name())
	}
	return names
}

// A broken pattern is refused with what was found and what to write.
func TestBrokenPatterns(t *testing.T) {
	for pattern, want := range map[string]string{
		"":                            "found nothing; expected a network such as 203.0.113.0/24, or a text with a * at its end such as ann*",
		"ann":                         "found ann; expected a network such as 203.0.113.0/24, or a text with a * at its end such as ann*",
		"*":                           "found * alone, which is every key; expected a text before it, such as ann*",
		"a*b":                         "found a*b; expected a network such as 203.0.113.0/24, or a text with a * at its end such as ann*",
		"*x":                          "found *x; expected a network such as 203.0.113.0/24, or a text with a * at its end such as ann*",
		"a*b*":                        "found a*b*; expected one * at the end, such as ann*",
		"203.0.113.7/24":              "found 203.0.113.7/24, which is no network; write 203.0.113.0/24 for the network, or 203.0.113.7/32 for the address alone",
		"2001:db8::1/64":              "found 2001:db8::1/64, which is no network; write 2001:db8::/64 for the network, or 2001:db8::1/128 for the address alone",
		"::ffff:10.0.0.0/104":         "found ::ffff:10.0.0.0/104; write 10.0.0.0/8",
		"::ffff:0.0.0.0/90":           "found ::ffff:0.0.0.0/90; expected a network of IPv4 or of IPv6 addresses",
		"203.0.113.7":                 "found the address 203.0.113.7; write 203.0.113.7/32, or write it as the key",
		"10.0.0.0/33":                 "found 10.0.0.0/33; expected a network such as 203.0.113.0/24, or a text with a * at its end such as ann*",
		"a\xff*":                      `found a\xff*, which is no UTF-8`,
		strings.Repeat("é", 46) + "*": "found 92 bytes before the *; expected at most 90",
	} {
		if _, err := ParseMatch(pattern); err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", pattern, err, want)
		}
	}
	for pattern, want := range map[string]string{"10.0.0.0/8": "10.0.0.0/8", "2001:DB8::/32": "2001:db8::/32", "0.0.0.0/0": "0.0.0.0/0", "5%*": "5%25*"} {
		if got, err := ParseMatch(pattern); got != want || err != nil {
			t.Errorf("%s: got %s, %v; want %s", pattern, got, err, want)
		}
	}
	for glob, ok := range map[string]bool{"*": true, "shop.*": true, "shop": true, "s*p": false, "*p": false, "**": false} {
		if err := CheckGlob(glob); (err == nil) != ok {
			t.Errorf("%s: %v", glob, err)
		}
	}
}

// FuzzMatch parses arbitrary texts as patterns of keys. Each is either an error of few bytes, or gives a pattern that settings can have.
func FuzzMatch(f *testing.F) {
	for _, pattern := range []string{"203.0.113.0/24", "2001:db8::/32", "ann*", "%*", "{*", "a\xff*", "10.1.1.1/8", "::ffff:1.1.1.1/100", "*"} {
		f.Add(pattern)
	}
	f.Fuzz(func(t *testing.T, pattern string) {
		parsed, err := ParseMatch(pattern)
		if err != nil {
			if len(err.Error()) > 1000 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
			return
		}
		s := &Setting{Kind: Block, Rule: "*", Key: parsed, Match: true, Values: Values{Until: time.Now().UTC()}}
		text, err := s.text()
		if err != nil || !IsMatch(parsed) {
			t.Fatalf("%q became %q: %v", pattern, parsed, err)
		}
		if again, err := parse(s.Name(), text); err != nil || again.Key != parsed || !again.Match {
			t.Errorf("%q became %q: %v", pattern, parsed, err)
		}
		begin, isText := strings.CutSuffix(pattern, "*")
		var in *InForce
		in = in.With(slices.Values([]*Setting{s}), time.Now().Add(-time.Hour))
		if found := in.ByPattern("r").Match(begin+"rest", key.Subject(begin+"rest"), false); isText && found[0] == nil {
			t.Errorf("%q does not match a key that begins like it", pattern)
		}
	})
}

// BenchmarkPatterns looks a key up among 1,000 settings by pattern, and among none. The key is in the longest of four networks.
func BenchmarkPatterns(b *testing.B) {
	var none *InForce
	var all []*Setting
	for i := range MaxPatterns {
		s := &Setting{Kind: Block, Rule: []string{"*", "login"}[i%2], Match: true, Values: Values{Until: never}}
		switch {
		case i < 4:
			s.Key = netip.PrefixFrom(netip.MustParseAddr("10.0.0.0"), 8*i).Masked().String()
		case i%4 < 2:
			s.Key = fmt.Sprintf("10.%d.%d.0/24", i/256, i%256)
		case i%4 == 2:
			s.Key = fmt.Sprintf("2001:db8:%x::/48", i)
		default:
			s.Key = fmt.Sprintf("acme-%d*", i)
		}
		all = append(all, s)
	}
	for name, in := range map[string]*InForce{"1,000": none.With(slices.Values(all), time.Now()), "none": none} {
		by := in.ByPattern("login")
		for what, text := range map[string]string{"IPv4": "10.0.40.9", "IPv6": "2001:db8:1a::/64", "text": "acme-404-ann", "unknown": "somebody"} {
			b.Run(name+"/"+what, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					by.Match(text, text, false)
				}
			})
		}
	}
}
