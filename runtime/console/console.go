package console

import (
	"embed"
	"net/http"

	"github.com/ratelimit-go/ratelimit/internal/decide"
	"github.com/ratelimit-go/ratelimit/internal/fleet"
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
	limiter *ratelimit.Limiter // takes keys as people write them
	view    *ratelimit.Limiter // takes keys as pages show them
	prefix  string             // in the form of keys
	fleet   *fleet.Fleet
	known   known
	actor   func(*http.Request) (string, error) // nil if nobody may write
}

// New returns a handler of the console. Store, prefix and secret are those of the limiter. Paths begin at the root: mount it elsewhere by
// http.StripPrefix. New panics if the limiter is nil.
func New(limiter *ratelimit.Limiter, options ...Option) http.Handler {
	if limiter == nil {
		panic("console.New: the limiter is nil")
	}
	c := &console{limiter: limiter}
	view := (*decide.Limiter)(limiter).View()
	c.view, c.prefix, c.fleet = (*ratelimit.Limiter)(view), view.Prefix(), view.Fleet()
	k := &c.known
	k.health.from, k.processes.from, k.changes.from = c.fleet.Health, c.fleet.Processes, c.fleet.Changes
	k.rules.from, k.history.from, k.sums.from = c.readRules, c.readHistory, c.sum
	for _, option := range options {
		option(c)
	}
	return guarded(c.routes())
}

// routes are the five screens. A subject is in no URL, so a search is a POST.
func (c *console) routes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", c.now)
	mux.HandleFunc("GET /rules", c.rules)
	mux.HandleFunc("GET /rule", c.rule)
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
