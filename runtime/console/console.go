package console

import (
	"embed"
	"net/http"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/operate"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

//go:embed asset
var assets embed.FS

// Option changes a console that [New] makes.
type Option func(*console)

// WithWrites lets people change limits: reset counts, give permits back, block and pause keys, and override rules. actor says who sent a
// request; the name is in the list of changes. If actor returns an error, the request is answered 403 with the error's text, and changes
// nothing. WithWrites panics if actor is nil.
func WithWrites(actor func(*http.Request) (string, error)) Option {
	if actor == nil {
		panic("console.WithWrites: the function is nil")
	}
	return func(c *console) { c.actor = actor }
}

// console shows one prefix on one store.
type console struct {
	prefix *operate.Prefix
	actor  func(*http.Request) (string, error) // nil if nobody may write
}

const (
	longest  = time.Second     // how long a page waits for a store that does not answer
	patience = 5 * time.Second // and for one that answers slowly
)

// New returns a handler of the console. Store, prefix and secret are those of the limiter. Paths begin at the root: mount it elsewhere by
// http.StripPrefix. New panics if the limiter is nil.
func New(limiter *ratelimit.Limiter, options ...Option) http.Handler {
	if limiter == nil {
		panic("console.New: the limiter is nil")
	}
	c := &console{prefix: operate.New(limiter, longest)}
	for _, option := range options {
		option(c)
	}
	return guarded(bounded(c.routes()))
}

// routes are the six screens. A subject is in no URL, so a search is a POST.
func (c *console) routes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", c.now)
	mux.HandleFunc("GET /rules", c.rules)
	mux.HandleFunc("GET /rule", c.rule)
	mux.HandleFunc("GET /refusing", c.refusing)
	mux.HandleFunc("GET /subject", c.subject)
	mux.HandleFunc("POST /subject", c.subject)
	mux.HandleFunc("GET /live", c.live)
	mux.HandleFunc("GET /changes", c.changes)
	mux.Handle("GET /asset/", http.FileServerFS(assets))
	if c.actor != nil {
		mux.Handle("POST /change", fromHere(http.HandlerFunc(c.change)))
	}
	return mux
}
