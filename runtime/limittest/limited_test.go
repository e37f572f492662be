package limittest_test

import (
	"fmt"
	"testing"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/limittest"
)

type limited struct{}

func (limited) RateLimits() []ratelimit.Rule { return nil }

type decorator struct{ inner any }

func (d decorator) Unwrap() any { return d.inner }

type loop struct{}

func (l loop) Unwrap() loop { return l }

type asks struct{}

func (asks) Unwrap(any) any { return limited{} }

type pair struct{}

func (pair) Unwrap() (any, error) { return limited{}, nil }

func TestIsLimited(t *testing.T) {
	for v, want := range map[any]bool{
		limited{}: true, decorator{limited{}}: true, decorator{decorator{limited{}}}: true,
		5: false, nil: false, decorator{5}: false, decorator{nil}: false, loop{}: false, asks{}: false, pair{}: false,
	} {
		if got := limittest.IsLimited(v); got != want {
			t.Errorf("%T: got %t", v, got)
		}
	}
}

// A test of a program's wiring checks that it uses the wrapper.
func ExampleIsLimited() {
	var sender any = limited{} // in a program NewLimitedSender(plain, limiter)
	fmt.Println(limittest.IsLimited(sender), limittest.IsLimited(decorator{sender}), limittest.IsLimited(decorator{"plain"}))
	// Output:
	// true true false
}
