package operate

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// One look waits for a silent store as long as people do, also if each attempt fails sooner. Answers make it wait again.
func TestAttemptsThatFailSoon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var answered atomic.Int64
		p := &patience{longest: time.Second, probe: func() {}, answered: func() time.Time { return time.Unix(0, answered.Load()) }}
		look := func(err error) (took time.Duration, last error) {
			began := time.Now()
			for range 20 {
				last = p.ask(t.Context(), func(context.Context) error {
					time.Sleep(250 * time.Millisecond)
					if err == nil {
						answered.Store(time.Now().UnixNano())
					}
					return err
				})
			}
			return time.Since(began), last
		}
		broken := errors.New("i/o timeout")
		for range 2 {
			took, err := look(broken)
			if _, silent := errors.AsType[*Silence](err); took != time.Second || !silent {
				t.Errorf("a look took %s, and the last error is %v", took, err)
			}
			time.Sleep(fresh)
		}
		if took, err := look(nil); took != 5*time.Second || err != nil {
			t.Errorf("the store answers: a look took %s, and the error is %v", took, err)
		}
		r := &Read[int]{from: func(context.Context, int) (int, error) {
			time.Sleep(250 * time.Millisecond)
			return 0, broken
		}, patience: p}
		began := time.Now()
		for range 20 {
			time.Sleep(time.Nanosecond)
			r.Get(t.Context())
		}
		if took := time.Since(began); took > time.Second+time.Millisecond {
			t.Errorf("20 readings took %s", took)
		}
		time.Sleep(fresh)
		first := true
		began = time.Now()
		for range 20 {
			_ = p.ask(t.Context(), func(context.Context) error {
				if first {
					first = false
					time.Sleep(250 * time.Millisecond)
					return broken
				}
				time.Sleep(4 * time.Second)
				return nil
			})
		}
		if took := time.Since(began); took != time.Second {
			t.Errorf("after an attempt that failed, a look took %s", took)
		}
		time.Sleep(4 * time.Second) // the last ones end
	})
}

// A look waits no longer for a silent store if one of its readings ends with a value: that servers do not answer is one.
func TestValueOfASilentStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &patience{longest: time.Second, probe: func() {}, answered: func() time.Time { return time.Time{} }}
		servers := &Read[int]{patience: p, fresh: seldom, from: func(context.Context, int) (int, error) {
			time.Sleep(750 * time.Millisecond)
			return 1, nil
		}}
		began := time.Now()
		servers.Get(t.Context())
		err := p.ask(t.Context(), func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		})
		if _, silent := errors.AsType[*Silence](err); time.Since(began) != time.Second || !silent {
			t.Errorf("a look took %s, and the last error is %v", time.Since(began), err)
		}
		time.Sleep(3 * time.Second)
		for range 10 { // what is fresh keeps nobody waiting
			servers.Get(t.Context())
		}
		if _, left := p.leftAt(time.Now()); left != time.Second {
			t.Errorf("then people wait only %s", left)
		}
	})
}
