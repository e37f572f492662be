package once

import "context"

// Await returns what ask returns, or ctx's error as soon as ctx ends, which the client by itself does not look at. The asking
// goes on then, so it must use nothing of the caller's that may change; late, unless it is nil, gets the result.
func Await[T any](ctx context.Context, ask func() (T, error), late func(T, error)) (T, error) {
	if ctx.Done() == nil {
		return ask()
	}
	type answer struct {
		value T
		err   error
	}
	answered := make(chan answer, 1)
	go func() {
		value, err := ask()
		answered <- answer{value, err}
	}()
	select {
	case a := <-answered:
		return a.value, a.err
	case <-ctx.Done():
	}
	if late != nil {
		go func() {
			a := <-answered
			late(a.value, a.err)
		}()
	}
	var none T
	return none, ctx.Err()
}
