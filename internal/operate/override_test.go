package operate_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/operate"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

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
