// Package once has what keeps the stores on Redis from charging a call twice: the command that the client sends once at most,
// and the waiting for its reply no longer than the caller does. It is not for commands that may be repeated.
package once

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// Cmd is a command that the client sends once at most. Otherwise it would repeat a decision whose reply got lost, and one call
// would be charged several times. A transaction that holds one is not repeated either.
type Cmd struct{ *redis.Cmd }

// New returns the command of the arguments.
func New(ctx context.Context, args ...any) Cmd { return Cmd{redis.NewCmd(ctx, args...)} }

// NoRetry implements redis.Cmder.
func (Cmd) NoRetry() bool { return true }

// Clone implements redis.Cmder.
func (c Cmd) Clone() redis.Cmder { return Cmd{c.Cmd.Clone().(*redis.Cmd)} }

// Undated returns ctx without its deadline. Clients can be told to make that the connection's: then the reply would be lost,
// so that nothing could be undone, and the caller's impatience would look like a time-out of the server.
func Undated(ctx context.Context) context.Context { return undated{ctx} }

type undated struct{ context.Context }

// Deadline implements context.Context.
func (undated) Deadline() (time.Time, bool) { return time.Time{}, false }
