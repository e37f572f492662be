package redisstore

import (
	"context"
	"errors"
	"net"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/runtime/redisstore/internal/breaker"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/internal/probe"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/internal/servers"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/lua"
)

// route says how runs are sent to their server.
type route struct {
	client       redis.UniversalClient
	verb, script string
}

// sendRuns sends the runs before a deadline, and stores their replies in them.
func (n *node) sendRuns(ctx context.Context, deadline time.Time, runs []*run) {
	if len(runs) == 0 {
		return // the breaker would take an empty send for a success
	}
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), deadline)
	defer cancel()
	lost, unsent := n.trySend(ctx, runs)
	for _, r := range runs {
		if unsent != nil {
			r.err = n.unsent(ctx, unsent)
		}
		if r.err != nil {
			r.err = probe.Reason(n.store.servers.Client, r.err)
		}
	}
	if lost != nil {
		n.noteLoss(lost.Keys[0].(string))
	}
}

// trySend sends the runs, or returns why it sends none. lost is a run for which the server was not reached, or nil.
func (n *node) trySend(ctx context.Context, runs []*run) (lost *run, unsent error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	end, err := n.breaker.Begin(ctx)
	if err != nil {
		return runs[0], err
	}
	err = breaker.ErrPanicked
	defer func() { end(err) }()
	n.sendAll(ctx, runs)
	err = nil
	if i := slices.IndexFunc(runs, func(r *run) bool { return !breaker.Reached(r.err) }); i >= 0 {
		lost, err = runs[i], runs[i].err
	}
	return lost, nil
}

// unsent is [servers.Servers.Unsent] for the error of a run. If the last connection failed, it says why.
func (n *node) unsent(ctx context.Context, err error) error {
	why := os.ErrDeadlineExceeded
	if n.refused != nil {
		if refused := n.refused.Load(); refused != nil {
			why = *refused
		}
	}
	return n.store.servers.Unsent(ctx, err, why)
}

// sendAll sends the runs. It sends a run again only if the server says that it has not begun to execute it.
func (n *node) sendAll(ctx context.Context, runs []*run) {
	to := route{n.client, "evalsha", lua.SHA}
	if n.functions.Load() {
		to = route{n.client, "fcall", lua.Function}
	}
	for len(runs) > 0 {
		n.exchange(ctx, to, runs)
		if slices.ContainsFunc(runs, func(r *run) bool { return r.err != nil && to.unsettled(r.err) }) {
			time.Sleep(retryAfter)
		}
		next, again := to, []*run(nil)
		for _, r := range runs {
			if r.err != nil && n.another(ctx, to, &next, r.err) {
				again = append(again, r)
			}
		}
		to, runs = next, again
	}
}

// exchange sends the runs once, together.
func (n *node) exchange(ctx context.Context, to route, runs []*run) {
	commands := make([]redis.Cmder, len(runs))
	for i, r := range runs {
		cmd := redis.NewCmd(ctx, slices.Concat([]any{to.verb, to.script, len(r.Keys)}, r.Keys, r.Args)...)
		commands[i] = servers.Cmd{Cmd: cmd, By: n.own}
	}
	if _, single := to.client.(*redis.Client); single { // its time-outs end with ctx; other clients may take longer
		to.send(ctx, commands)
	} else if _, err := servers.Await(ctx, n.store.servers, func() (struct{}, error) { to.send(ctx, commands); return struct{}{}, nil }); err != nil {
		if ctx.Err() != nil {
			err = n.store.servers.Late(n.store.servers.Timeout)
		}
		for _, r := range runs {
			r.err = err
		}
		return
	}
	for i, r := range runs {
		cmd := commands[i].(servers.Cmd)
		if r.reply, r.err = cmd.Val(), cmd.Err(); r.err != nil {
			r.err = n.unsent(ctx, lua.Fault(r.err))
		}
	}
}

// send sends commands. Each keeps its reply.
func (to route) send(ctx context.Context, commands []redis.Cmder) {
	if len(commands) == 1 {
		_ = to.client.Process(ctx, commands[0])
		return
	}
	_, _ = to.client.Pipelined(ctx, func(p redis.Pipeliner) error { return p.BatchProcess(ctx, commands...) })
}

// retryAfter is the pause before asking a server again that is handing over a slot.
const retryAfter = 10 * time.Millisecond

// unsettled reports whether a run failed because its keys are moving from one server to another, or because the servers do not yet agree
// where they are. A cluster's client itself follows a few replies of MOVED or ASK, so it only returns one after several.
func (to route) unsettled(err error) bool {
	_, single := to.client.(*redis.Client)
	has := func(prefix string) bool { return strings.HasPrefix(err.Error(), prefix) }
	return has("TRYAGAIN ") || !single && (has("MOVED ") || has("ASK "))
}

// another looks for another route for a run that a server has not begun to execute. It reports whether there is one.
func (n *node) another(ctx context.Context, from route, next *route, err error) bool {
	text := err.Error()
	cluster, _ := n.store.servers.Client.(*redis.ClusterClient)
	switch has := func(prefix string) bool { return strings.HasPrefix(text, prefix) }; {
	case from.verb == "fcall" && has("ERR Function not found"):
		n.loadFunction()
		next.verb, next.script = "eval", lua.Script
	case from.verb == "fcall" && (has("ERR unknown command") || has("NOPERM ") && strings.Contains(text, "'fcall'")):
		n.dropFunctions(err)
		next.verb, next.script = "evalsha", lua.SHA
	case from.verb == "evalsha" && has("NOSCRIPT "):
		next.verb, next.script = "eval", lua.Script
	case from.unsettled(err): // after a pause, the same route may work
		return ctx.Err() == nil
	case cluster != nil && from.client != cluster && (has("MOVED ") || has("ASK ") || has("READONLY ")):
		next.client = cluster
	default:
		return false
	}
	return true
}

// loadFunction loads the function into the server, in the background. No call waits for it.
func (n *node) loadFunction() {
	if !n.loading.CompareAndSwap(false, true) {
		return
	}
	go n.store.servers.Guard(func() {
		defer n.loading.Store(false)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		err := n.breaker.Ask(ctx, func() error { return n.quick().FunctionLoad(ctx, lua.Library).Err() })
		if err != nil && neverLoads(err.Error()) {
			n.dropFunctions(err)
		}
	})
}

// neverLoads reports whether a reply says that the server cannot load functions, or that the user may not. Other replies pass: the server is full,
// for example, and decisions fail with the same reply.
func neverLoads(reply string) bool {
	return strings.HasPrefix(reply, "NOPERM ") || strings.HasPrefix(reply, "ERR ") && !strings.HasSuffix(reply, "already exists")
}

func (n *node) dropFunctions(err error) {
	n.functions.Store(false)
	n.store.servers.Tell("functions are not available; decisions go on with EVALSHA, which costs the server about twice as much", err)
}

// untaken reports whether no server has run a command that failed, and none will: it was not sent, or a server refused to begin with it. An
// error in the middle of a script begins with ERR or WRONGTYPE, or names the script.
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

// inTime is a hook of a server's client. It passes the commands of a node on to a copy of the client that has the store's timeout. Copies that
// go-redis makes have no hooks. So the commands are given to the client itself, pass through the hooks that it had before this one, and go on
// through the copy. The hook also keeps why the last connection failed. The error of a command does not say that if the command is given up
// while the client tries to connect again and again.
type inTime struct {
	own     *redis.Client          // the copy
	refused *atomic.Pointer[error] // why the last connection failed; it points to nil if that succeeded
}

// newCopy returns a copy of a server's client with the store's timeout, and makes the client pass commands on to it.
func (s *store) newCopy(client *redis.Client) inTime {
	h := inTime{s.servers.Quick(client), new(atomic.Pointer[error])}
	client.AddHook(h)
	return h
}

func (h inTime) owns(cmd redis.Cmder) bool {
	c, ok := cmd.(servers.Cmd)
	return ok && c.By == h.own
}

// DialHook implements redis.Hook.
func (h inTime) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		connection, err := next(ctx, network, addr)
		switch {
		case err == nil:
			h.refused.Store(nil)
		case ctx.Err() == nil:
			h.refused.Store(&err)
		}
		return connection, err
	}
}

// ProcessHook implements redis.Hook.
func (h inTime) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if h.owns(cmd) {
			return h.send(func(own *redis.Client) error { return own.Process(ctx, cmd) })
		}
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook implements redis.Hook.
func (h inTime) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if len(cmds) == 0 || !h.owns(cmds[0]) {
			return next(ctx, cmds)
		}
		return h.send(func(own *redis.Client) error {
			_, err := own.Pipelined(ctx, func(p redis.Pipeliner) error { return p.BatchProcess(ctx, cmds...) })
			return err
		})
	}
}

// send passes the copy to do. After as many connections that failed as it has places, the client's pool fails all calls, and tries to connect only
// once a second. If the last connection succeeded, the server is back; then send does it again with a client that has one connection of its own.
func (h inTime) send(do func(own *redis.Client) error) error {
	err := do(h.own)
	if op, ok := errors.AsType[*net.OpError](err); !ok || op.Op != "dial" || h.refused.Load() != nil {
		return err
	}
	options := *h.own.Options()
	options.PoolSize, options.PipelinePoolSize, options.MinIdleConns, options.MaxActiveConns = 1, -1, 0, 0
	options.DialerRetries, options.MaxRetries = 1, -1
	options.Protocol, options.PushNotificationProcessor = 2, nil // without what only a client that lives long needs
	apart := redis.NewClient(&options)
	defer apart.Close()
	return do(apart)
}
