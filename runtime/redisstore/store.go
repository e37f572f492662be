// Package redisstore keeps the counts of rate limits on Redis or Valkey, for all processes that share it. On one server, one script decides a
// call, by the server's clock. This package deals with servers, keys and scripts; package engine and the script know what a rule means.
package redisstore

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/backend"
	"github.com/ratelimit-go/ratelimit/internal/fleet"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/internal/servers"
)

// Option changes how a store works.
type Option func(*store)

// WithTimeout bounds how long a decision may take, including the wait for a connection, whatever the client's own options say, and however
// many servers the decision asks. The default is 250 ms. After a timeout it is unknown whether the call was charged. What a decision on a
// cluster or a ring gives back, because another server refused it, goes on in the background when the time is over. With 100 ms, a decision
// that has waited 70 ms for one server has 30 ms left for the next. WithTimeout panics unless d is positive.
func WithTimeout(d time.Duration) Option {
	if d <= 0 {
		panic("redisstore.WithTimeout: found " + d.String() + ", expected a positive duration")
	}
	return func(s *store) { s.servers.Timeout = d }
}

// WithoutFunctions makes the store run its script by EVALSHA. Without this option the store loads the script as a Redis function if the server
// supports that. EVALSHA costs the server about twice as much for each call.
func WithoutFunctions() Option { return func(s *store) { s.functions = false } }

// WithRefusalMemory sets how long this process remembers a refusal of the server. Until then, or until the server would admit the call, the
// process itself refuses such calls. The default is 100 ms; 0 turns this off. If another process gives permits back, this process notices that
// at most d later. With 100 ms, a subject that is refused for 5 seconds and calls every millisecond costs the server ten decisions a second
// instead of a thousand. WithRefusalMemory panics if d is negative.
func WithRefusalMemory(d time.Duration) Option {
	if d < 0 {
		panic("redisstore.WithRefusalMemory: found " + d.String() + ", expected no negative duration")
	}
	return func(s *store) { s.answers.memory = d }
}

// WithStats makes this process publish how many calls each rule decided and refused, and for which subjects. It does so every five seconds
// while it decides calls, for at most 100 rules and about the 128 subjects of each with the most calls. Reports expire after 12 seconds,
// and the sums of all processes after ten minutes. "ratelimitctl top" shows them. Subjects are published in the form of keys, so
// ratelimit.WithSubjectHash hides them here, too.
func WithStats() Option { return func(s *store) { s.servers.Counts = true } }

// store is a backend.Store. answers decides its calls.
type store struct {
	backend.Defaults
	servers   *servers.Servers
	functions bool
	nodes     sync.Map   // of *node by redis.UniversalClient, or by range of slots
	adding    sync.Mutex // held while a node is added
	reloaded  atomic.Int64
	answers   answers
	renewals  renewals
}

// New returns a store on the servers of client: a *redis.Client, a *redis.ClusterClient or a *redis.Ring. The caller has to close the client.
// New panics if client is nil.
//
// On a single server, all rules of a call are decided in one step. On a cluster or a ring, rules with equal subjects are decided in one
// step, and different subjects one after the other. If one of them is refused, the permits that the earlier ones took are given back.
//
// Hooks that the client had before New see the decisions; hooks that are added later may not. The store adds a hook of its own, which gives
// decisions the store's timeout instead of the client's. So make one store for a client, not one for each call. On a cluster or a ring,
// decisions are sent by the clients of the servers. Add your hooks to those clients: of a cluster in OnNewNode, of a ring in
// RingOptions.NewClient. A ring makes its clients before a program can call OnNewNode.
func New(client redis.UniversalClient, options ...Option) ratelimit.Store {
	s := &store{servers: servers.New("redisstore.New", client), functions: true}
	s.servers.Scripts, s.servers.Renew = true, s.renew
	s.answers.store, s.answers.memory = s, defaultRefusalMemory
	s.renewals.permits = map[permit]*renewal{}
	for _, option := range options {
		option(s)
	}
	return s
}

// Fleet implements backend.Store.
func (s *store) Fleet(prefix string) *fleet.Fleet { return s.servers.Fleet(prefix) }

// Notify implements backend.Store.
func (s *store) Notify(notify func(notice string, cause error)) { s.servers.Notify(notify) }

// Lately implements backend.Store.
func (s *store) Lately(what string) int { return s.servers.Lately(what) }
