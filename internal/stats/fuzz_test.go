package stats

import (
	"encoding/json"
	"reflect"
	"testing"
)

// FuzzParse: a report of the store is one of a bounded size that is written as it was read, or an error.
func FuzzParse(f *testing.F) {
	f.Add(`{"seconds":5.1,"rules":[{"name":"login","tag":"1m","calls":7,"refused":2,"subjects":[{"subject":"ann","calls":7}]}]}`)
	f.Add(`{"seconds":-1}`)
	f.Add(`{"seconds":1e-320,"rules":[null]}`)
	f.Fuzz(func(t *testing.T, text string) {
		r, err := Parse(text)
		if err != nil {
			return
		}
		if len(r.Rules) > MaxRules {
			t.Errorf("%d rules", len(r.Rules))
		}
		written, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := Parse(string(written)); err != nil || !reflect.DeepEqual(again, r) {
			t.Errorf("%s became %s, which is %+v, %v", text, written, again, err)
		}
	})
}
