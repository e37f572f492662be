package fleet

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// stalled is a server whose clock is ahead, and which says the time only after a while.
type stalled struct {
	Server
	ahead, before, after time.Duration
}

func (s *stalled) Time(context.Context) (time.Time, error) {
	time.Sleep(s.before)
	at := time.Now().Add(s.ahead)
	time.Sleep(s.after)
	return at, nil
}

// A server that hangs before it says the time makes no clock wrong, but a clock that is wrong is set.
func TestClockOfAServerThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stalled{}
		f := New(s, "shop", false)
		f.offset.Store(int64(time.Since(began.Add(time.Since(began))))) // began was before this bubble
		read := func(what string, ahead time.Duration) {
			t.Helper()
			if err := f.readClock(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := time.Until(f.Now()); (got - ahead).Abs() > 100*time.Millisecond {
				t.Errorf("%s: the clock is ahead by %v; expected %v", what, got, ahead)
			}
		}
		read("it answers at once", 0)
		s.before = 3 * time.Second
		read("it hangs before it looks at its clock", 0)
		s.before, s.after = 0, 3*time.Second
		read("it hangs after that", 0)
		s.ahead = 2 * time.Hour
		s.after = 150 * time.Millisecond
		read("another one took over", 2*time.Hour)
		s.ahead = time.Hour
		s.before, s.after = time.Second, time.Second
		read("another one took over, and hangs", time.Hour)
	})
}
