// Package once has the command that the client sends at most once.
package once

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// Cmd is a command that the client sends at most once. By itself it would repeat a decision whose reply was lost, and charge one call
// several times. The client does not repeat a pipeline or transaction with such a command either.
type Cmd struct {
	*redis.Cmd
	By *redis.Client // which is to send it, in place of the one it is given to; or nil
}

// New returns the command of the arguments.
func New(ctx context.Context, args ...any) Cmd { return Cmd{Cmd: redis.NewCmd(ctx, args...)} }

// NoRetry implements redis.Cmder.
func (Cmd) NoRetry() bool { return true }

// Clone implements redis.Cmder.
func (c Cmd) Clone() redis.Cmder { return Cmd{c.Cmd.Clone().(*redis.Cmd), c.By} }
