package faults

import (
	"slices"
	"testing"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

func TestEveryAlgorithmHasALaw(t *testing.T) {
	all := append(rules(), running)
	for _, a := range ratelimit.Algorithms() {
		i := slices.IndexFunc(all, func(r ratelimit.Rule) bool { return r.Algorithm == a || a == ratelimit.Calendar && r.Cron != "" })
		if i < 0 {
			t.Errorf("rules lacks %s", a)
			continue
		}
		if law := LawOf(all[i], nil); law.Most == nil || law.Least == nil {
			t.Errorf("the law of %s is %+v", a, law)
		}
	}
}
