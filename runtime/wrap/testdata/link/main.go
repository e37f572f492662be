// Command link asks an error for a delay. Nothing calls the method Unused.
package main

import (
	"fmt"
	"os"

	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

type failure struct{ error }

func (failure) Unused() {}

func main() { fmt.Println(wrap.RetryAfter(failure{os.ErrClosed})) }
