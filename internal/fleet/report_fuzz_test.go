package fleet

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
)

// FuzzParse parses arbitrary texts as reports. Each is either an error, or a report of bounded size. Writing the report and parsing it again gives
// the same.
func FuzzParse(f *testing.F) {
	f.Add(`{"seconds":5.1,"rules":[{"name":"login","tag":"1m","calls":7,"refused":2,"subjects":[{"subject":"ann","calls":7}]}]}`)
	f.Add(`{"seconds":-1}`)
	f.Add(`{"seconds":1e-320,"rules":[null]}`)
	f.Add(`{"seconds":1,"rules":[null` + strings.Repeat(",null", MaxReportRules) + `]}`)
	f.Add(`{"seconds":1,"rules":[{"subjects":[]}]}`)
	f.Add(`{"seconds":1,"unknown":"` + strings.Repeat("x", MaxReport) + `"}`)
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseReport(text)
		if err != nil {
			return
		}
		if len(r.Rules) > MaxReportRules || len(text) > MaxReport || math.IsInf(math.MaxInt64/r.Seconds, 0) {
			t.Errorf("%d rules, %d bytes, %g seconds", len(r.Rules), len(text), r.Seconds)
		}
		written, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		for i, rule := range r.Rules {
			if len(rule.Subjects) == 0 {
				r.Rules[i].Subjects = nil // an empty list is not written
			}
		}
		if again, err := ParseReport(string(written)); err != nil || !reflect.DeepEqual(again, r) {
			t.Errorf("%s became %s, which is %+v, %v", text, written, again, err)
		}
	})
}
