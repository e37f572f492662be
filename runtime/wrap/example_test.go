package wrap_test

import (
	"fmt"

	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// A test of a program's wiring checks that it uses the wrapper.
func ExampleIsLimited() {
	var sender any = limited{} // in a program NewLimitedSender(plain, limiter)
	fmt.Println(wrap.IsLimited(sender), wrap.IsLimited(decorator{sender}), wrap.IsLimited(decorator{"plain"}))
	// Output:
	// true true false
}
