package httplimit

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// item is a member of a List of RFC 9651: a String with Integers.
type item struct {
	name   string
	params map[string]int64
}

var itemSyntax = regexp.MustCompile(`^"((?:[ !#-\[\]-~]|\\["\\])*)"((?:;[a-z]+=(?:[0-9]{1,15}|"[a-z-]+"))*)(?:, |$)`)

// parseList parses a field as strictly as RFC 9651 allows.
func parseList(field string) ([]item, error) {
	var items []item
	for rest := field; ; {
		m := itemSyntax.FindStringSubmatch(rest)
		if m == nil {
			return nil, fmt.Errorf("no list: %q of %q", rest, field)
		}
		it := item{regexp.MustCompile(`\\(.)`).ReplaceAllString(m[1], "$1"), map[string]int64{}}
		for _, param := range strings.Split(m[2], ";")[1:] {
			name, value, _ := strings.Cut(param, "=")
			it.params[name], _ = strconv.ParseInt(value, 10, 64)
		}
		items = append(items, it)
		if rest = rest[len(m[0]):]; rest == "" {
			if strings.HasSuffix(m[0], ", ") {
				return nil, fmt.Errorf("no list: %q", field)
			}
			return items, nil
		}
	}
}

// Whatever the names and counts of rules are, both fields are lists of the same distinct names, and no number is better than the truth.
func TestFieldsAreLists(t *testing.T) {
	type added struct {
		id     string
		policy ratelimit.QuotaPolicy
		left   int64
		more   time.Duration
		wait   time.Duration
	}
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) added {
			return added{
				rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "id"),
				ratelimit.QuotaPolicy{
					Name:   rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"a", "a-2", `"`, `\`, "rule-1", "é", "\x00"})).Draw(t, "name"),
					Quota:  rapid.Int64Range(0, 1e16).Draw(t, "quota"),
					Window: time.Duration(rapid.Int64Range(0, 5).Draw(t, "window")) * 500 * time.Millisecond, Concurrent: rapid.Bool().Draw(t, "concurrent"),
				},
				rapid.Int64Range(0, 1e16).Draw(t, "left"), time.Duration(rapid.Int64Range(0, 3e9).Draw(t, "more")),
				time.Duration(rapid.Int64Range(0, 3e9).Draw(t, "wait")),
			}
		}), 1, 6).Draw(t, "limits")
		var ls limits
		names := map[string]string{}
		for _, a := range all {
			name := ls.add(a.id, a.policy, limit{remaining: a.left, more: a.more, wait: a.wait})
			if first, ok := names[a.id]; ok && first != name {
				t.Fatalf("%q is called %q and then %q", a.id, first, name)
			}
			names[a.id] = name
		}
		policies, err := parseList(ls.policies())
		if err != nil {
			t.Fatal(err)
		}
		left, err := parseList(ls.left())
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for i, p := range policies {
			if seen[p.name] || left[i].name != p.name {
				t.Fatalf("%q is twice in %s, or is not in %s", p.name, ls.policies(), ls.left())
			}
			seen[p.name] = true
		}
		for _, a := range all {
			for _, l := range left {
				more := time.Duration(l.params["t"]) * time.Second
				if l.name == names[a.id] && (l.params["r"] > a.left || l.params["r"] == a.left && more < a.more) {
					t.Fatalf("%s promises more than %+v", ls.left(), a)
				}
			}
		}
	})
}

func TestPrintable(t *testing.T) {
	for name, want := range map[string]string{" a~": " a~", "a\x1f\x7f": "a%1F%7F", "é": "%C3%A9"} {
		if got := printable(name); got != want {
			t.Errorf("%q: got %s; expected %s", name, got, want)
		}
	}
}

func TestSecondsRoundUp(t *testing.T) {
	for d, want := range map[time.Duration]int64{0: 0, 1: 1, time.Second: 1, time.Second + 1: 2, time.Hour: 3600, math.MaxInt64: 9_223_372_037} {
		if got := seconds(d); got != want {
			t.Errorf("%s: got %d; expected %d", d, got, want)
		}
	}
}

// Whatever is drawn, a delay becomes no shorter, and longer by no more than the share. A longer delay becomes no shorter than a shorter one.
func TestBoundsOfJitter(t *testing.T) {
	duration := rapid.OneOf(rapid.Int64Range(0, 1e11), rapid.Int64Range(0, math.MaxInt64))
	rapid.Check(t, func(t *rapid.T) {
		j := jitter{rapid.Float64Range(0, 1).Draw(t, "share"), rapid.Uint64().Draw(t, "part")}
		short, long := time.Duration(duration.Draw(t, "a")), time.Duration(duration.Draw(t, "b"))
		if short > long {
			short, long = long, short
		}
		if j.seconds(short) > j.seconds(long) {
			t.Fatalf("%+v: %s becomes %d, and %s %d", j, short, j.seconds(short), long, j.seconds(long))
		}
		most := float64(long) * (1 + j.share) / float64(time.Second)
		if got := j.seconds(long); got < seconds(min(long, math.MaxInt64/2)) || float64(got) > math.Ceil(most*(1+1e-12)) {
			t.Fatalf("%+v: %s becomes %d", j, long, got)
		}
	})
	for part, want := range map[uint64]int64{0: 10, math.MaxUint64 / 2: 12, math.MaxUint64: 15} {
		if got := (jitter{0.5, part}).seconds(10 * time.Second); got != want {
			t.Errorf("10 seconds become %d; expected %d", got, want)
		}
	}
}
