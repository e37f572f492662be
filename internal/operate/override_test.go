package operate_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/operate"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

var bucket = ratelimit.Rule{Name: "bucket", Key: "{ip}", Limit: 5, Per: time.Hour, Algorithm: ratelimit.TokenBucket}

// An override of a glob says how many rules it is for, besides those that it names.
func TestOverrideOfManyRules(t *testing.T) {
	for n, want := range map[int]string{5: "rule5 declares 5 per hour", 6: "* is for 1 rule more", 8: "* is for 3 rules more"} {
		var rules []ratelimit.Rule
		for i := range n {
			rules = append(rules, ratelimit.Rule{Name: fmt.Sprint("rule", i+1), Limit: 5, Per: time.Hour})
		}
		_, p := inMemory(t, rules...)
		done, err := p.Override(t.Context(), kim, operate.Target{Rule: "*"}, operate.Wish{Factor: 2, Forever: true})
		if err != nil || done.Notes[len(done.Notes)-1] != want {
			t.Errorf("%d rules: %q, %v; want %s", n, done.Notes, err, want)
		}
	}
}

// A factor that is no number is refused as one that is too large is.
func TestFactorIsANumber(t *testing.T) {
	_, p := inMemory(t, bucket)
	for _, factor := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 1e9} {
		_, err := p.Override(t.Context(), kim, operate.Target{Rule: "bucket"}, operate.Wish{Factor: factor, Forever: true})
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("factor: found %g; expected 0.001 to 1000", factor)) {
			t.Errorf("%g: got %v", factor, err)
		}
	}
}

// A limit that is too slow for a burst is refused beside it, whichever of the two is there first, and whatever keys it is for. -force sets it.
func TestUnfitTogether(t *testing.T) {
	const slow, large = 1, 1_000_000 // takes over a hundred years to fill
	limit, burst := operate.Wish{Limit: new(int64(slow)), Forever: true}, operate.Wish{Burst: large, Forever: true}
	all, glob := operate.Target{Rule: "bucket"}, operate.Target{Rule: "buck*"}
	ann, annOfGlob := operate.Target{Rule: "bucket", Keys: []string{"10.0.0.1"}}, operate.Target{Rule: "buck*", Keys: []string{"10.0.0.1"}}
	network, text := operate.Target{Rule: "bucket", Match: "10.0.0.0/8"}, operate.Target{Rule: "b*", Match: "10.*"}
	bob := operate.Target{Rule: "bucket", Keys: []string{"192.0.2.1"}}
	for _, test := range []struct {
		first, second operate.Target
		fits          bool
	}{
		{all, ann, false}, {glob, all, false}, {all, glob, false}, {glob, ann, false}, {network, ann, false}, {text, ann, false}, {text, network, false},
		{annOfGlob, ann, false}, {ann, annOfGlob, false}, {operate.Target{Rule: "*"}, glob, false}, {network, bob, true}, {ann, bob, true},
		{network, operate.Target{Rule: "bucket", Keys: []string{"192.0.2.1", "10.0.0.1"}}, false}, {ann, ann, true},
	} {
		for _, wishes := range [][2]operate.Wish{{limit, burst}, {burst, limit}} {
			_, p := inMemory(t, bucket)
			if _, err := p.Override(t.Context(), kim, test.first, wishes[0]); err != nil {
				t.Fatalf("%+v: %v", test.first, err)
			}
			wishes[1].Replace = true
			_, err := p.Override(t.Context(), kim, test.second, wishes[1])
			if test.fits != (err == nil) || err != nil && !strings.Contains(err.Error(), "over a hundred years") {
				t.Errorf("%+v after %+v: %v, want an error: %t", test.second, test.first, err, !test.fits)
			}
			test.second.Force = true
			if _, err = p.Override(t.Context(), kim, test.second, wishes[1]); err != nil {
				t.Errorf("%+v with force: %v", test.second, err)
			}
			test.second.Force = false
			if _, err = p.Override(t.Context(), kim, operate.Target{Rule: "bucket", Keys: []string{"other"}}, operate.Wish{Factor: 1, Forever: true}); err != nil {
				t.Errorf("%+v after %+v: what others have is refused with the next one: %v", test.second, test.first, err)
			}
		}
	}
}
