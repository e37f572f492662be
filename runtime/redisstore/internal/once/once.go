// Package once has a command that the client sends at most once.
package once

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// Cmd is a command that the client sends at most once. The client would otherwise repeat a decision whose reply was lost, and so charge a call
// several times. It also does not repeat a pipeline or a transaction with such a command.
type Cmd struct {
	*redis.Cmd
	By *redis.Client // the client that sends the command, instead of the one that it is given to; or nil
}

// New returns a command with the given arguments.
func New(ctx context.Context, args ...any) Cmd { return Cmd{Cmd: redis.NewCmd(ctx, args...)} }

// NoRetry implements redis.Cmder.
func (Cmd) NoRetry() bool { return true }

// Clone implements redis.Cmder.
func (c Cmd) Clone() redis.Cmder { return Cmd{c.Cmd.Clone().(*redis.Cmd), c.By} }
