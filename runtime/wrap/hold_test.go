package wrap_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

type stream struct{ left int }

func (s *stream) Recv() (int, error) {
	if s.left--; s.left < 0 {
		return 0, io.EOF
	}
	return s.left, nil
}

// running starts calls of one rule, and counts those that run.
type running struct {
	testing.TB
	limiter *ratelimit.Limiter
	rules   *wrap.Rules
}

func newRunning(t testing.TB) running {
	return running{t, ratelimit.New(memstore.New()), wrap.NewRules("p.T.M", ratelimit.Rule{Algorithm: ratelimit.Concurrency, Limit: 3})}
}

// begin returns the Hold of a call that was admitted.
func (r running) begin(ctx context.Context) *wrap.Hold {
	r.Helper()
	taken, err := wrap.Begin(ctx, r.rules.On(r.limiter), r.rules, wrap.Charge{Cost: 1})
	if err != nil {
		r.Fatal(err)
	}
	return wrap.NewHold(ctx, taken)
}

func (r running) want(n int64, when string) {
	r.Helper()
	d, err := r.limiter.Peek(context.Background(), ratelimit.Request{Rule: r.rules.Rules()[0]})
	if err != nil {
		r.Fatal(err)
	}
	if got := 3 - d.Quotas[0].Remaining; got != n {
		r.Errorf("%s: %d permits are held, want %d", when, got, n)
	}
}

// A result keeps the permit after the method has returned, and gives it back when it has ended, once: another call keeps its own permit.
func TestHoldUntilTheEnd(t *testing.T) {
	pairs := func(yield func(int, error) bool) { _ = yield(1, nil) && yield(2, nil) }
	numbers := func(yield func(int) bool) { _ = yield(1) && yield(2) }
	body := io.NopCloser(strings.NewReader("text"))
	var cancel context.CancelFunc
	for what, keep := range map[string]func(h *wrap.Hold) (end func()){
		"Close": func(h *wrap.Hold) func() {
			c := h.Closer(body)
			return func() { _ = c.Close() }
		},
		"a body that is closed": func(h *wrap.Hold) func() {
			b := h.Body(body)
			if n, err := b.Read(make([]byte, 2)); n != 2 || err != nil {
				t.Errorf("read %d bytes, %v", n, err)
			}
			return func() { _ = b.Close() }
		},
		"a body that ends": func(h *wrap.Hold) func() {
			b := h.Body(io.NopCloser(strings.NewReader("text")))
			return func() { _, _ = io.ReadAll(b) }
		},
		"a body that fails": func(h *wrap.Hold) func() {
			b := h.Body(io.NopCloser(iotest.ErrReader(io.ErrUnexpectedEOF)))
			return func() {
				if _, err := b.Read(nil); err != io.ErrUnexpectedEOF {
					t.Errorf("read %v", err)
				}
			}
		},
		"Recv": func(h *wrap.Hold) func() {
			r := wrap.Receive(h, &stream{left: 1})
			if n, err := r.Recv(); n != 0 || err != nil {
				t.Errorf("received %d, %v", n, err)
			}
			return func() {
				if _, err := r.Recv(); !errors.Is(err, io.EOF) {
					t.Errorf("received %v after the end", err)
				}
			}
		},
		"a loop": func(h *wrap.Hold) func() {
			seq := wrap.HoldSeq(h, numbers)
			return func() {
				sum := 0
				for n := range seq {
					sum += n
				}
				if sum != 3 {
					t.Errorf("looped over %d", sum)
				}
			}
		},
		"a loop that breaks": func(h *wrap.Hold) func() {
			seq := wrap.HoldSeq2(h, pairs)
			return func() {
				for n := range seq {
					if n != 1 {
						t.Errorf("looped over %d", n)
					}
					break
				}
			}
		},
		"a loop that panics": func(h *wrap.Hold) func() {
			seq := wrap.HoldSeq2(h, pairs)
			return func() {
				defer func() { _ = recover() }()
				for range seq {
					panic("in the loop")
				}
			}
		},
		"the context": func(*wrap.Hold) func() {
			return func() {
				cancel()
				synctest.Wait()
			}
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRunning(t)
			ctx, cancelled := context.WithCancel(t.Context())
			cancel = cancelled
			defer cancel()
			h := r.begin(ctx)
			if !h.Keeps(h, nil) {
				t.Errorf("%s: the result does not keep the permit", what)
			}
			end := keep(h)
			h.Return()
			r.want(1, what+" before the end")
			end()
			r.want(0, what)
			r.begin(t.Context())
			end()
			r.want(1, what+" again")
		})
	}
}

// Without a context that ends, a result keeps the permit for an hour.
func TestHoldForAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRunning(t)
		h := r.begin(context.Background())
		h.Keeps(h, nil)
		h.Return()
		time.Sleep(time.Hour - time.Second)
		r.want(1, "before the hour has passed")
		time.Sleep(time.Second)
		synctest.Wait()
		r.want(0, "after an hour")
	})
}

// Nothing is kept by a result that is nil, nor beside an error, nor by a response without a body.
func TestHoldOfNothing(t *testing.T) {
	r := newRunning(t)
	for what, keep := range map[string]func(h *wrap.Hold) bool{
		"nil":         func(h *wrap.Hold) bool { return h.Keeps((*stream)(nil), nil) },
		"an error":    func(h *wrap.Hold) bool { return h.Keeps(new(stream), io.EOF) },
		"no body":     func(h *wrap.Hold) bool { return h.Keeps(h, nil) && h.Body(nil) != nil },
		"not decided": func(h *wrap.Hold) bool { return false },
	} {
		h := r.begin(t.Context())
		if keep(h) {
			t.Errorf("%s keeps the permit", what)
		}
		h.Return()
		r.want(0, what)
	}
}

type upgraded struct {
	io.ReadCloser
	io.Writer
}

// A body that can be written, as after a switch of protocols, stays so.
func TestHoldOfAnUpgrade(t *testing.T) {
	r := newRunning(t)
	h := r.begin(t.Context())
	var written strings.Builder
	h.Keeps(h, nil)
	b, ok := h.Body(upgraded{io.NopCloser(strings.NewReader("")), &written}).(io.Writer)
	if !ok {
		t.Fatal("the body cannot be written")
	}
	if text, err := io.ReadAll(b.(io.Reader)); err != nil || len(text) > 0 {
		t.Errorf("read %q, %v", text, err)
	}
	if _, err := io.WriteString(b, "text"); err != nil || written.String() != "text" {
		t.Errorf("wrote %q, %v", written.String(), err)
	}
	r.want(1, "a body that is read to its end, and can be written")
	if err := b.(io.Closer).Close(); err != nil {
		t.Error(err)
	}
	r.want(0, "a closed body that can be written")
}
