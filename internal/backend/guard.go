package backend

import (
	"fmt"
	"runtime/debug"
)

// PanicError is the error of work that panicked on a goroutine of this module, for example in a hook of a store's client.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Guard calls do. If do panics, the error is a *PanicError. Goroutines of this module need it, because a panic there would end the program.
func Guard(do func()) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{v, debug.Stack()}
		}
	}()
	do()
	return nil
}
