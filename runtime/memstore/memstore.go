// Package memstore keeps the counts of rate limits in this process. Use it for a program with a single instance, for tests, and to start
// without installing anything. The counts are not shared between processes, and are lost when the process ends.
package memstore

import (
	"time"

	"github.com/ratelimit-go/ratelimit/internal/memory"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// Option changes a store that [New] makes.
type Option func(*options)

type options struct {
	clock    func() time.Time
	maxKeys  int64
	maxBytes int64
}

// WithClock makes the store read the time from now instead of the system's clock, for tests. Several goroutines may call now at the same
// time. A call that waits for permits still sleeps by the system's clock; package limittest has a clock that wakes such calls. WithClock
// panics if now is nil.
func WithClock(now func() time.Time) Option {
	if now == nil {
		panic("memstore.WithClock: the function is nil")
	}
	return func(o *options) { o.clock = now }
}

// WithMaxKeys bounds how many counts the store keeps: one for each rule and key. The default is 1,000,000; a value below 1 means
// 1. Expired counts are removed automatically. When the store is full of counts that still matter, a call with a new key fails with a
// *ratelimit.StoreError, and the rule's failure policy decides. Known keys are not affected. Under FailLocal each limiter has room for as many
// counts again.
func WithMaxKeys(n int) Option {
	return func(o *options) { o.maxKeys = int64(max(1, n)) }
}

// WithMaxBytes bounds how many bytes of memory the counts take. The store estimates the bytes; the counts take at most a quarter more than the
// estimate. The default is 256 MiB; a value below 1 means 1, which has room for no count. A call that needs more memory fails as with
// [WithMaxKeys], even if its key is known: a sliding window, for example, grows with its calls. The estimate of a bucket, or of a fixed or
// calendar window, has room for a block, a pause and a raised limit, which take as much again, so these never fail. In a full store, the place
// that a waiting call gives up stays charged until its time.
func WithMaxBytes(n int64) Option {
	return func(o *options) { o.maxBytes = max(1, n) }
}

// New returns an empty store. Limiters that share it share its bounds. Those with the same prefix also share the counts of rules of the same
// name.
func New(opts ...Option) ratelimit.Store {
	o := options{maxKeys: memory.MaxKeys, maxBytes: memory.MaxBytes}
	for _, option := range opts {
		option(&o)
	}
	return memory.New(o.clock, o.maxKeys, o.maxBytes)
}
