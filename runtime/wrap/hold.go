package wrap

import (
	"context"
	"io"
	"iter"
	"time"
)

// longest is how long a result holds permits if the call has no context that ends.
const longest = time.Hour

// Hold gives the permits of a call that runs back when the method returns, or, if a result of the method keeps them, when that has ended.
type Hold struct {
	ctx   context.Context
	taken *Taken
	stop  func() bool // forgets what waits for the end of the context; nil if no result keeps the permits
}

// NewHold returns a Hold for the charge of a call. Defer its Return.
func NewHold(ctx context.Context, taken *Taken) *Hold { return &Hold{ctx: ctx, taken: taken} }

// Return gives the permits back, unless a result keeps them.
func (h *Hold) Return() {
	if h.stop == nil {
		h.giveBack()
	}
}

// Keeps reports whether a result keeps the permits: it is not nil, and err is. It does so until release, at the latest until the context ends.
func (h *Hold) Keeps(result any, err error) bool {
	if err != nil || IsNil(result) {
		return false
	}
	if h.ctx.Done() == nil {
		h.stop = time.AfterFunc(longest, h.giveBack).Stop
	} else {
		h.stop = context.AfterFunc(h.ctx, h.giveBack)
	}
	return true
}

// release gives the permits back that a result has kept. Only the first call has an effect.
func (h *Hold) release() {
	if h.stop() {
		h.giveBack()
	}
}

func (h *Hold) giveBack() { h.taken.Release(h.ctx) }

// Closer has the method Close of a result that keeps permits: it gives them back.
type Closer struct {
	of   io.Closer
	hold *Hold
}

// Closer returns the method Close of a result.
func (h *Hold) Closer(of io.Closer) Closer { return Closer{of, h} }

// Close closes the result.
func (c Closer) Close() error {
	defer c.hold.release()
	return c.of.Close()
}

// Receiver has the method Recv of a result that keeps permits: after an error it gives them back.
type Receiver[T any] struct {
	from interface{ Recv() (T, error) }
	hold *Hold
}

// Receive returns the method Recv of a result.
func Receive[T any](h *Hold, from interface{ Recv() (T, error) }) Receiver[T] {
	return Receiver[T]{from, h}
}

// Recv receives the next value, or the error that ends the stream.
func (r Receiver[T]) Recv() (T, error) {
	v, err := r.from.Recv()
	if err != nil {
		r.hold.release()
	}
	return v, err
}

// HoldSeq returns an iterator that keeps permits until its first loop has ended.
func HoldSeq[V any](h *Hold, seq iter.Seq[V]) iter.Seq[V] {
	return func(yield func(V) bool) {
		defer h.release()
		seq(yield)
	}
}

// HoldSeq2 is [HoldSeq] for pairs.
func HoldSeq2[K, V any](h *Hold, seq iter.Seq2[K, V]) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		defer h.release()
		seq(yield)
	}
}

// Body returns the body of an *http.Response that keeps permits until it is closed or its Read returns an error. Without a body, Body gives
// them back. A body that can be written keeps them until it is closed: at the end of what the other side sends, the program may still write.
func (h *Hold) Body(body io.ReadCloser) io.ReadCloser {
	if body == nil {
		h.release()
		return nil
	}
	if w, ok := body.(io.Writer); ok { // after a switch of protocols
		return struct {
			io.Reader
			Closer
			io.Writer
		}{body, h.Closer(body), w}
	}
	return heldBody{body, h.Closer(body)}
}

// heldBody is a body that gives permits back when it is closed, and after an error.
type heldBody struct {
	from io.Reader
	Closer
}

func (b heldBody) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	if err != nil {
		b.hold.release()
	}
	return n, err
}
