package fleet

import (
	"fmt"
	"hash/maphash"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ratelimit-go/ratelimit/internal/key"
)

// A sketch counts all decisions. It gives no subject more decisions than it had. A subject with more than an eighth of all decisions is always
// reported, except for decisions that may belong to earlier subjects of its way.
func TestSketch(t *testing.T) {
	seed := maphash.MakeSeed()
	rapid.Check(t, func(t *rapid.T) {
		var s Sketch
		var all Counts
		had := map[string]*Counts{}
		heavy := rapid.IntRange(1, 8).Draw(t, "heavy")
		for _, n := range rapid.SliceOfN(rapid.IntRange(0, 1000), 1, 3000).Draw(t, "stream") {
			if n%2 == 0 {
				n %= 2 * heavy
			}
			subject := fmt.Sprint("subject", n)
			if had[subject] == nil {
				had[subject] = new(Counts)
			}
			c := Counts{Calls: 1, Refused: int64(n % 2), Shadow: int64(n / 2 % 2)}
			s.Count(subject, maphash.String(seed, subject), c)
			had[subject].Add(c)
			all.Add(c)
		}
		if s.Counts() != all {
			t.Fatalf("counted %+v of %+v", s.Counts(), all)
		}
		told := map[string]Counts{}
		for _, subject := range s.Subjects() {
			if h := had[subject.Name]; h == nil || subject.Calls > h.Calls || subject.Refused > h.Refused || subject.Shadow > h.Shadow {
				t.Fatalf("told %+v of %+v", subject, h)
			}
			told[subject.Name] = subject.Counts
		}
		if len(told) != len(s.Subjects()) || len(told) > MaxSubjects {
			t.Fatalf("told %d subjects, some of them twice", len(s.Subjects()))
		}
		for subject, h := range had {
			if h.Calls > all.Calls/ways+1 && told[subject].Calls < h.Calls-all.Calls/ways {
				t.Fatalf("told %+v of %s, which had %+v of %d", told[subject], subject, h, all.Calls)
			}
		}
	})
}

// The largest report can be read, whichever subjects callers choose.
func TestLargestReport(t *testing.T) {
	for _, c := range []string{"<", "&", `"`, "\u00e9", "x"} {
		text := strings.Repeat(c, maxSubject/len(c))
		if key.Escape(text) != text {
			t.Fatalf("%q is no subject in the form of keys", text)
		}
		r := Report{Seconds: 5}
		for range MaxReportRules {
			rule := RuleCounts{Name: text, Tag: text}
			for range sets * ways {
				rule.Subjects = append(rule.Subjects, Subject{text, Counts{Calls: 1e9, Refused: 1e9}})
			}
			r.Rules = append(r.Rules, rule)
		}
		if read, err := ParseReport(string(r.text())); err != nil || len(read.Rules) != MaxReportRules || read.Rules[0].Subjects[0].Name != text {
			t.Errorf("subjects of %s: %d bytes, error %v", c, len(r.text()), err)
		}
	}
}

func TestParse(t *testing.T) {
	if r, err := ParseReport(`{"seconds":5,"rules":[{"name":"r","tag":"1m","calls":3,"subjects":[{"subject":"k","calls":2}]}]}`); err != nil ||
		r.Rules[0].Calls != 3 || r.Rules[0].Subjects[0].Calls != 2 {
		t.Errorf("got %+v, error %v", r, err)
	}
	for _, text := range []string{``, `[]`, `{}`, `{"seconds":-1}`, `{"seconds":1e9}`, `{"seconds":1,"rules":[` + fmt.Sprintf("%0*d]}", MaxReport, 1)} {
		if _, err := ParseReport(text); err == nil {
			t.Errorf("%.20s: no error", text)
		}
	}
}
