// Package probe asks servers whether they are ready for decisions. If not, it says why in one sentence, and what to do. It does not know which
// commands decisions need: stores tell it what to try.
package probe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/backend"
	"github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/internal/redisinfo"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/internal/breaker"
)

// Life is how long a key that was written for a try lives if it cannot be removed, in milliseconds.
const Life = 1000

// maxKeys bounds the search for a key that a master holds. A search fails for a master with two slots once in 10^7 times.
const maxKeys = 1 << 17

// Each calls try for every server that decides: the single server, each master of a cluster, or each shard of a ring. The key that it passes
// has the prefix, belongs to no count, and is held by that server. The error is that of one server.
func Each(ctx context.Context, client redis.UniversalClient, prefix string, try func(ctx context.Context, server redis.UniversalClient, key string) error) error {
	switch c := client.(type) {
	case *redis.ClusterClient:
		err := c.ForEachMaster(ctx, func(ctx context.Context, master *redis.Client) error {
			held := keyAt(ctx, c, master, prefix)
			err := try(ctx, master, held)
			if IsNode(master, err) { // the slot of the key is just now elsewhere
				err = try(ctx, c, held)
			}
			return at(master, err)
		})
		return Reason(c, err)
	case *redis.Ring:
		return c.ForEachShard(ctx, func(ctx context.Context, shard *redis.Client) error {
			return at(shard, try(ctx, shard, keyOf(prefix, 0)))
		})
	}
	if err := try(ctx, client, keyOf(prefix, 0)); err != nil {
		return err
	}
	return tryOtherSlots(ctx, client, prefix)
}

// tryOtherSlots returns an error if a client that knows only one server is connected to a node of a cluster. Such a node answers for its own
// slots only, so keys of many slots are removed. There are no such keys.
func tryOtherSlots(ctx context.Context, client redis.UniversalClient, prefix string) error {
	if _, single := client.(*redis.Client); !single {
		return nil
	}
	_, err := client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i := range 64 {
			p.Del(ctx, keyOf(prefix, i))
		}
		return nil
	})
	return Reason(client, err)
}

// IsNode reports whether an error says that a client for a single server is connected to a node of a cluster.
func IsNode(client any, err error) bool {
	_, single := client.(*redis.Client)
	return single && err != nil && redis.HasErrorPrefix(err, "MOVED")
}

// at adds the server's address to an error.
func at(server *redis.Client, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", server.Options().Addr, err)
}

func keyOf(prefix string, i int) string { return key.State(prefix, "", strconv.Itoa(i), "ping") }

// keyAt returns a key that a master holds.
func keyAt(ctx context.Context, cluster *redis.ClusterClient, master *redis.Client, prefix string) string {
	for i := range maxKeys {
		if holder, err := cluster.MasterForKey(ctx, keyOf(prefix, i)); err != nil || holder == master {
			return keyOf(prefix, i)
		}
	}
	return keyOf(prefix, 0)
}

// harmless matches errors of commands that the user is permitted to run.
var harmless = regexp.MustCompile("^(WRONGTYPE|NOSCRIPT|ERR no such key)")

// Try sends commands, and returns an error that says why the server did not run them. needed has the names of the commands that the user must be
// permitted to run; nil means all.
func Try(ctx context.Context, server redis.UniversalClient, commands [][]any, needed []string) error {
	tried, err := server.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, args := range commands {
			p.Do(ctx, args...)
		}
		return nil
	})
	if err != nil && !slices.ContainsFunc(tried, func(c redis.Cmder) bool { return errors.Is(err, c.Err()) }) {
		return Reason(server, err) // nothing was sent
	}
	var denied, missing []string
	var broken error
	for _, c := range tried {
		name := strings.ToUpper(c.Name())
		switch err := c.Err(); {
		case err == nil || errors.Is(err, redis.Nil) || harmless.MatchString(err.Error()):
		case strings.Contains(err.Error(), "NOPERM "): // an error of EXEC has other words in front
			if needed == nil || slices.Contains(needed, name) {
				denied = append(denied, name)
			}
		case err.Error() == Old:
			return errOld
		case err.Error() == NoStruct:
			return errors.New("the server's Lua lacks struct, as that of the fake miniredis does: in tests use package memstore, or a real server")
		case IsUnknown(err):
			missing = append(missing, name)
		case broken == nil:
			broken = err
		}
	}
	switch {
	case len(missing) > 0 && isOld(ctx, server):
		return errOld
	case len(missing) > 0:
		return &Missing{missing}
	}
	if len(denied) > 0 {
		return fmt.Errorf("the user may not run %s on keys of this prefix: permit it, as \"ratelimitctl acl\" prints", strings.Join(denied, ", "))
	}
	return Reason(server, broken)
}

// IsUnknown reports whether an error says that the server lacks a command.
func IsUnknown(err error) bool {
	return err != nil && strings.HasPrefix(err.Error(), "ERR unknown command")
}

// Missing is the error of a server that lacks commands.
type Missing struct{ Commands []string }

func (m *Missing) Error() string {
	return fmt.Sprintf("the server lacks %s: permit it again where its configuration has rename-command", strings.Join(m.Commands, ", "))
}

// The errors of a script that tries what Lua has.
const (
	Old      = "ERR older than Redis 7" // such servers do not tell scripts their version
	NoStruct = "ERR no struct"
)

var errOld = errors.New("the server is older than Redis 7: upgrade it to Redis 7 or Valkey")

// isOld reports whether a server says that it is older than Redis 7.
func isOld(ctx context.Context, server redis.UniversalClient) bool {
	text, err := server.Info(ctx, "server").Result()
	version, _, _ := strings.Cut(redisinfo.Fields(text)["redis_version"], ".")
	major, bad := strconv.Atoi(version)
	return err == nil && bad == nil && major < 7
}

// reasons are the errors of servers and clients, and what to do about them.
var reasons = []struct{ prefix, advice string }{
	{"NOAUTH ", "the server wants a password: set it in the client's options"},
	{"NOPERM ", "the user may not run what decisions need: permit it, as \"ratelimitctl acl\" prints"},
	{"READONLY ", "the server is a read-only replica: connect to its master"},
	{"LOADING ", "the server is still loading its data: wait until it has finished"},
	{"MASTERDOWN ", "the server is a replica that has lost its master: connect to the master"},
	{full, "the server's memory is full: raise its maxmemory"},
	{"MISCONF ", "the server cannot save its data and refuses writes: make room on its disk"},
	{"NOREPLICAS ", "the server has too few replicas and refuses writes: see its min-replicas-to-write"},
	{"EXECABORT ", "the server refused a write: ask \"ratelimitctl doctor\" why"},
	{"CLUSTERDOWN ", "the cluster does not serve all its slots: ask \"ratelimitctl doctor\" which servers fail"},
}

// full begins the error of a server whose memory is at its bound.
const full = "OOM "

// Reason returns an error that says in a sentence why a server did not run a command, and what to do. It takes the user's name from the client.
func Reason(client any, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, redis.ErrClosed):
		return fmt.Errorf("%w: %w", backend.ErrClosed, err)
	}
	if _, unreadable := errors.AsType[*backend.StateError](err); unreadable {
		return err
	}
	if strings.HasPrefix(err.Error(), "WRONGPASS ") {
		if name := user(client); name != "" {
			return fmt.Errorf("the server does not know the user %q, or the password is wrong: check both in the client's options and by ACL LIST: %w", name, err)
		}
		return fmt.Errorf("the password is wrong: check it in the client's options: %w", err)
	}
	if IsNode(client, err) {
		return fmt.Errorf("the server is a node of a cluster, and the client knows only this node: use redis.NewClusterClient: %w", err)
	}
	for _, r := range reasons {
		if strings.HasPrefix(err.Error(), r.prefix) {
			advised := fmt.Errorf("%s: %w", r.advice, err)
			if r.prefix == full {
				return &backend.FullError{Err: advised}
			}
			return advised
		}
	}
	switch _, away := errors.AsType[*backend.AwayError](err); {
	case away || breaker.Reached(err):
		return err
	case strings.Contains(err.Error(), "panic"): // of this module, or of the client, which recovers panics of a dialer
		return &backend.AwayError{Err: fmt.Errorf("the client of the store panics: mend its hooks and its dialer: %w", err)}
	case isLate(err):
		return &backend.AwayError{Err: fmt.Errorf("the server did not answer in time: see whether it runs, hangs or is slow, and check the address: %w", err)}
	}
	return &backend.AwayError{Err: fmt.Errorf("the server cannot be reached: check the address and whether it runs: %w", err)}
}

// isLate reports whether an error says that a server did not answer in time, or did not let a client connect in time: a server that hangs lets no
// more clients connect once its queue of new connections is full.
func isLate(err error) bool {
	timed, ok := errors.AsType[net.Error](err)
	return ok && timed.Timeout()
}

// user returns the name that a client signs in with, or "".
func user(client any) string {
	switch c := client.(type) {
	case *redis.Client:
		return c.Options().Username
	case *redis.ClusterClient:
		return c.Options().Username
	}
	return ""
}
