// Package servers has what the stores on Redis have in common: it finds the server of a subject, has commands that are sent at most once and
// what the fleet knows, and passes notices to the operator. It makes no decisions.
package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/backend"
	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/internal/breaker"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/internal/probe"
)

// Servers are the servers of a client.
type Servers struct {
	Client  redis.UniversalClient
	Timeout time.Duration // of a decision
	Split   atomic.Bool   // different subjects may be on different servers

	search   *breaker.Breaker // for the search for the server of a subject
	breakers sync.Map         // of *breaker.Breaker by what Breaker is asked for
	notify   atomic.Pointer[func(string, error)]
	notices  sync.Map // notices that were given

	Renew      func(ctx context.Context, prefix string, all bool) // renews permits of calls that run: see fleet.Server; or nil
	Counts     bool                                               // processes publish statistics
	Scripts    bool                                               // the server may be asked to run scripts
	fleetsLock sync.Mutex
	fleets     map[string]weak.Pointer[fleet.Fleet] // by prefix
}

// searchPause is the time until one call searches again for the server of a subject. The search asks by the pools of all servers.
const searchPause = 100 * time.Millisecond

// New returns the servers of a client, with a timeout of 250 ms. If client is nil or a nil pointer, it panics with a message that names caller.
func New(caller string, client redis.UniversalClient) *Servers {
	if v := reflect.ValueOf(client); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		panic(caller + ": the client is nil")
	}
	s := &Servers{Client: client, Timeout: 250 * time.Millisecond, search: breaker.New(searchPause, nil), fleets: map[string]weak.Pointer[fleet.Fleet]{}}
	switch client.(type) {
	case *redis.ClusterClient, *redis.Ring:
		s.Split.Store(true)
	}
	return s
}

// Of returns the client for a subject's server: a master of a cluster or a shard of a ring. For any other client it returns that client.
func (s *Servers) Of(ctx context.Context, subject string) (server redis.UniversalClient, err error) {
	switch c := s.Client.(type) {
	case *redis.ClusterClient:
		err = s.search.Try(ctx, func() error {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.Timeout)
			defer cancel()
			server, err = c.MasterForKey(ctx, subject)
			return err
		})
	case *redis.Ring:
		server, err = c.GetShardClientForKey(subject)
	default:
		server = c
	}
	if err != nil {
		return nil, breaker.Unsent{Err: breaker.TimedOut(err)}
	}
	return server, nil
}

// Breaker returns the breaker of a server, or of a part of it that id names. The id of a server is its client. Decisions and the
// commands of the background share it, so that none of them dials by the client's pool once one has found the server away.
func (s *Servers) Breaker(id any, server redis.UniversalClient) *breaker.Breaker {
	b, ok := s.breakers.Load(id)
	if !ok {
		b, _ = s.breakers.LoadOrStore(id, breaker.New(breaker.Pause, s.knock(server)))
	}
	return b.(*breaker.Breaker)
}

// Quick returns a copy of a server's client that has the store's timeout, and that gives up when a context ends.
func (s *Servers) Quick(server *redis.Client) *redis.Client {
	own := server.WithTimeout(s.Timeout)
	own.Options().ContextTimeoutEnabled = true // the copy has its own options
	return own
}

// knock returns a function that connects to a server as a subscriber, without the client's pool: after many connections that failed, a pool fails
// all calls, and tries to connect only once a second. It returns nil for a client that hides its servers.
func (s *Servers) knock(server redis.UniversalClient) func(context.Context) error {
	client, single := server.(*redis.Client)
	if !single {
		return nil
	}
	own := s.Quick(client)
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, s.Timeout)
		defer cancel()
		_, err := Await(ctx, s, func() (struct{}, error) { // a dialer may take longer, such as that of go-redis for TLS
			subscriber := own.Subscribe(ctx)
			defer subscriber.Close()
			return struct{}{}, subscriber.Ping(ctx)
		})
		return s.Unsent(ctx, err, os.ErrDeadlineExceeded)
	}
}

// Unsent replaces a context.DeadlineExceeded, which says nothing, by the reason why commands were not sent: why if ctx has ended; otherwise the
// client waited too long for a connection. The result does not wrap err, so that nobody takes it for an error of the caller's context.
func (s *Servers) Unsent(ctx context.Context, err, why error) error {
	switch {
	case !errors.Is(err, context.DeadlineExceeded):
		return err
	case ctx.Err() == nil:
		return breaker.Unsent{Err: fmt.Errorf("the client has no connection: %w", breaker.TimedOut(err))}
	}
	return breaker.Unsent{Err: fmt.Errorf("not sent within %v: %w", s.Timeout, breaker.TimedOut(why))}
}

// Cmd is a command that the client sends at most once. The client would otherwise repeat a decision whose reply was lost, and so charge a call
// several times. It also does not repeat a pipeline or a transaction with such a command.
type Cmd struct {
	*redis.Cmd
	By *redis.Client // the client that sends the command, instead of the one that it is given to; or nil
}

// NoRetry implements redis.Cmder.
func (Cmd) NoRetry() bool { return true }

// Clone implements redis.Cmder.
func (c Cmd) Clone() redis.Cmder { return Cmd{c.Cmd.Clone().(*redis.Cmd), c.By} }

// Notify sets the function that gets notices. The first one stays.
func (s *Servers) Notify(notify func(notice string, cause error)) {
	if s.notify.Load() == nil && s.notify.CompareAndSwap(nil, &notify) {
		s.tellOfRouting()
	}
}

// tellOfRouting tells the operator if it is not known where the client reads.
func (s *Servers) tellOfRouting() {
	switch s.Client.(type) {
	case *redis.Client, *redis.ClusterClient, *redis.Ring:
	default:
		s.Tell("overrides, blocks and pauses may be read from a replica that is behind: it is not known where the client of the rate limit store reads",
			fmt.Errorf("found a client of type %T; expected *redis.Client, *redis.ClusterClient or *redis.Ring", s.Client))
	}
}

// Tell passes a notice to the operator, once.
func (s *Servers) Tell(notice string, cause error) {
	if notify := s.notify.Load(); notify != nil {
		if _, again := s.notices.LoadOrStore(notice, true); !again {
			(*notify)(notice, cause)
		}
	}
}

// Guard calls do. If do panics, for example in a hook of the client, Guard tells the operator, and returns an error. Goroutines of a store need
// it: a panic there would end the program.
func (s *Servers) Guard(do func()) error {
	err := backend.Guard(do)
	if err != nil {
		s.Tell("the client of the rate limit store panicked; calls on its way fail", err)
	}
	return err
}

// Await is [fleet.Await] for work that may panic, for example in a hook of the client.
func Await[T any](ctx context.Context, s *Servers, do func() (T, error)) (T, error) {
	return fleet.Await(ctx, func() (v T, err error) {
		if panicked := s.Guard(func() { v, err = do() }); panicked != nil {
			err = panicked
		}
		return v, err
	})
}

// Late returns the error of work that has used up its time. Its server may still do it.
func (s *Servers) Late(timeout time.Duration) error {
	return probe.Reason(s.Client, fmt.Errorf("no reply within %v: %w", timeout, os.ErrDeadlineExceeded))
}

// PingEach is [probe.Each] with a timeout, for servers that are not away.
func (s *Servers) PingEach(ctx context.Context, timeout time.Duration, prefix string,
	try func(ctx context.Context, server redis.UniversalClient, key string) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, s.Late(timeout))
	defer cancel()
	_, err := Await(ctx, s, func() (struct{}, error) {
		return struct{}{}, probe.Each(ctx, s.Client, prefix, func(ctx context.Context, server redis.UniversalClient, key string) error {
			if err := s.Breaker(server, server).Knock(ctx); err != nil {
				return probe.Reason(server, err)
			}
			return try(ctx, server, key)
		})
	})
	return err
}

var errDamaged = errors.New("the expiry or the length of a key, or a number in it, is not that of a count")

// TellDamage tells the operator, once, that a state was damaged.
func (s *Servers) TellDamage() { s.Tell("counts were damaged; they start anew", errDamaged) }
