// Package memstore keeps the counts of rate limits in this process: for one instance, for tests, and for a start without
// anything installed. It is not shared between processes, and forgets everything when the process ends.
package memstore

import (
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/internal/memory"
)

const (
	defaultMaxKeys  = 1_000_000
	defaultMaxBytes = 256 << 20
)

// Option changes a store that [New] makes.
type Option func(*options)

type options struct {
	clock    func() time.Time
	maxKeys  int64
	maxBytes int64
}

// WithClock makes now the store's clock. A test moves it by hand. Many goroutines may call now at once.
func WithClock(now func() time.Time) Option {
	return func(o *options) { o.clock = now }
}

// WithMaxKeys bounds how many counts the store keeps, one for each rule and subject; the default is 1,000,000. State that has
// expired is dropped as calls come in. When all that is kept is live, calls of further subjects get a *ratelimit.StoreError:
// a live count is never forgotten. n below 1 stands for 1.
func WithMaxKeys(n int) Option {
	return func(o *options) { o.maxKeys = int64(max(1, n)) }
}

// WithMaxBytes bounds about how many bytes of memory the counts take, in this store and in what a limiter on it counts by itself; the
// default is 256 MiB. Beyond it, calls of further subjects get a *ratelimit.StoreError. n below 1 stands for 1.
func WithMaxBytes(n int64) Option {
	return func(o *options) { o.maxBytes = max(1, n) }
}

// New returns a store on the system's clock.
func New(opts ...Option) ratelimit.Store {
	o := options{maxKeys: defaultMaxKeys, maxBytes: defaultMaxBytes}
	for _, option := range opts {
		option(&o)
	}
	return memory.New(o.clock, o.maxKeys, o.maxBytes)
}
