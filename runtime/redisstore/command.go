package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/runtime/redisstore/internal/breaker"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/internal/once"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/lua"
)

// part is what one script decides: calls of one slot.
type part struct {
	lua.Run
	reply any
	err   error
}

// way is how parts get to their server.
type way struct {
	client       redis.UniversalClient
	verb, script string
}

func (n *node) way() way {
	if n.functions.Load() {
		return way{n.client, "fcall", lua.Function}
	}
	return way{n.client, "evalsha", lua.SHA}
}

// send sends the parts before a deadline and takes in their replies. A part is sent again only if the server says that it has not begun with it.
func (n *node) send(ctx context.Context, deadline time.Time, parts []*part) {
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), deadline)
	defer cancel()
	sent, err := false, ctx.Err()
	if err == nil {
		err = n.breaker.Try(func() error {
			sent = true
			return n.sendAll(ctx, parts)
		})
	}
	for _, p := range parts {
		if !sent {
			p.err = err
		}
		if errors.Is(p.err, context.DeadlineExceeded) {
			p.err = breaker.Unsent{Err: fmt.Errorf("not sent within %v", n.store.timeout)}
		}
	}
	if i := slices.IndexFunc(parts, func(p *part) bool { return !breaker.Reached(p.err) }); sent && i >= 0 {
		n.lost(parts[i].Keys[0].(string), err)
	}
}

func (n *node) sendAll(ctx context.Context, parts []*part) (err error) {
	for w := n.way(); len(parts) > 0; {
		w.exchange(ctx, parts)
		if slices.ContainsFunc(parts, (*part).handedOver) {
			time.Sleep(retryAfter)
		}
		next, again := w, []*part(nil)
		for _, p := range parts {
			if p.err == nil {
				continue
			}
			if n.another(ctx, w, &next, p.err) {
				again = append(again, p)
			} else if err == nil || !breaker.Reached(p.err) {
				err = p.err
			}
		}
		w, parts = next, again
	}
	return err
}

// exchange sends the parts once, together.
func (w *way) exchange(ctx context.Context, parts []*part) {
	commands := make([]redis.Cmder, len(parts))
	for i, p := range parts {
		args := make([]any, 0, 3+len(p.Keys)+len(p.Args))
		args = append(args, w.verb, w.script, len(p.Keys))
		commands[i] = once.New(ctx, append(append(args, p.Keys...), p.Args...)...)
	}
	if !w.process(ctx, commands) {
		for _, p := range parts {
			p.err = fmt.Errorf("no reply of the cluster in time: %w", os.ErrDeadlineExceeded)
		}
		return
	}
	for i, p := range parts {
		cmd := commands[i].(once.Cmd)
		p.reply, p.err = cmd.Val(), lua.Fault(cmd.Err())
	}
}

// process sends the commands. It reports whether they were answered, or failed, before ctx ends: a client for one server sees to that
// itself, by the time-outs it was given, and others may take longer.
func (w *way) process(ctx context.Context, commands []redis.Cmder) bool {
	send := func() {
		if len(commands) == 1 {
			_ = w.client.Process(ctx, commands[0])
			return
		}
		_, _ = w.client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, c := range commands {
				_ = p.Process(ctx, c)
			}
			return nil
		})
	}
	if _, single := w.client.(*redis.Client); single {
		send()
		return true
	}
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		send()
	}()
	select {
	case <-answered:
		return true
	case <-ctx.Done():
		return false
	}
}

// retryAfter is when to ask a server again that is handing over a slot.
const retryAfter = 10 * time.Millisecond

// handedOver reports whether the keys of a part are on their way from one server to another.
func (p *part) handedOver() bool {
	return p.err != nil && strings.HasPrefix(p.err.Error(), "TRYAGAIN ")
}

// another finds the way for a part that a server has not begun with, if there is one.
func (n *node) another(ctx context.Context, w way, next *way, err error) bool {
	text := err.Error()
	cluster, _ := n.store.client.(*redis.ClusterClient)
	switch has := func(prefix string) bool { return strings.HasPrefix(text, prefix) }; {
	case w.verb == "fcall" && has("ERR Function not found"):
		n.load()
		next.verb, next.script = "eval", lua.Script
	case w.verb == "fcall" && (has("ERR unknown command") || has("NOPERM ") && strings.Contains(text, "'fcall'")):
		n.dropFunctions(err)
		next.verb, next.script = "evalsha", lua.SHA
	case w.verb == "evalsha" && has("NOSCRIPT "):
		next.verb, next.script = "eval", lua.Script
	case has("TRYAGAIN "): // some time has passed
		return ctx.Err() == nil
	case cluster != nil && w.client != cluster && (has("MOVED ") || has("ASK ") || has("READONLY ")):
		next.client = cluster
	default:
		return false
	}
	return true
}

// load tells the server our function. No call waits for it.
func (n *node) load() {
	if !n.loading.CompareAndSwap(false, true) {
		return
	}
	go func() {
		defer n.loading.Store(false)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		err := n.client.FunctionLoad(ctx, lua.Library).Err()
		if err != nil && breaker.Reached(err) && !strings.HasSuffix(err.Error(), "already exists") {
			n.dropFunctions(err)
		}
		n.store.lookAtMemory(ctx, n.client)
	}()
}

func (n *node) dropFunctions(err error) {
	if n.functions.Swap(false) {
		n.store.tell("functions are not available; decisions go on with EVALSHA", err)
	}
}

// untaken reports whether a command failed that no server has run, and none will: it was not sent, or a server would not begin
// with it. What breaks off in the middle of a script is called ERR or WRONGTYPE, or names the script.
func untaken(err error) bool {
	if _, ok := errors.AsType[breaker.Unsent](err); ok || errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrClosed) {
		return true
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Op == "dial"
	}
	reply, ok := errors.AsType[redis.Error](err)
	if !ok {
		return false
	}
	text := reply.Error()
	return !strings.HasPrefix(text, "ERR ") && !strings.HasPrefix(text, "WRONGTYPE ") && !strings.Contains(text, "script")
}
