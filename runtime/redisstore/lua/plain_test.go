package lua

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/redistest"
)

// TestPlainCallsLikeOthers sends the same calls to the script, and to one that decides every call in the long way. Their replies and the states
// that they leave are equal, also after states that the engine does not have: damaged ones, those of other layouts, and keys of another type.
func TestPlainCallsLikeOthers(t *testing.T) {
	t.Parallel()
	const plain, counted = "plain = flags == 0 or flags == 2", "local function decide_plain(claims, now, at)\n"
	body := join(virtualClock)
	bodies := [2]string{strings.Replace(body, counted, counted+"call('INCR', 'plain')\n", 1), strings.Replace(body, plain, "plain = false", 1)}
	if bodies[0] == body || bodies[1] == body {
		t.Fatal("the script decides plain calls in another way")
	}
	server, w := redistest.Start(t), new(ways)
	for i, body := range bodies {
		w.clients[i] = redis.NewClient(&redis.Options{Addr: server.Addr, DB: i, ReadTimeout: time.Minute})
		defer w.clients[i].Close()
		sha, err := w.clients[i].ScriptLoad(t.Context(), body+"return run(KEYS, ARGV)\n").Result()
		if err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprint("way", i)
		library := "#!lua name=" + name + "\n" + body + "redis.register_function('" + name + "', run)\n"
		if err := w.clients[i].FunctionLoad(t.Context(), library).Err(); err != nil {
			t.Fatal(err)
		}
		w.scripts[i] = [][]any{{"evalsha", sha}, {"fcall", name}}
	}
	left := 40 // of the checks
	taken, calls := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		if left--; left < 0 {
			return
		}
		for i, client := range w.clients {
			if err := client.FlushDB(context.Background()).Err(); err != nil {
				t.Fatal(err)
			}
			w.script[i] = rapid.SampledFrom(w.scripts[i]).Draw(t, "script")
		}
		w.pair = &pair{t: t, now: start, rules: drawRules(t)}
		w.factor = rapid.SampledFrom([]int64{1, 1, 1, 300}).Draw(t, "factor")
		for range stepsOfACheck {
			w.step()
		}
		n, _ := w.clients[0].Get(context.Background(), "plain").Int()
		taken, calls = taken+n, calls+stepsOfACheck
	})
	if taken < calls/10 {
		t.Errorf("%d of about %d calls are decided as plain ones; want a tenth", taken, calls)
	}
}

// places are what differs in the errors of two scripts: their names, and the numbers of their lines.
var places = regexp.MustCompile(`script( script)?: \w+, on @user_\w+:\d+\.|@user_\w+: ?\d+|way[01]|user_\w+:\d+`)

// ways sends calls to two scripts, each with a database of its own.
type ways struct {
	*pair
	clients [2]*redis.Client
	scripts [2][][]any
	script  [2][]any
	factor  int64 // of limits and costs
}

func (w *ways) step() {
	w.now += rapid.SampledFrom([]int64{0, 0, 1, 5, 100, 1000, 100_000, second, 7 * second, 60 * second, -3, -200_000, -25 * 3600 * second}).Draw(w.t, "later")
	for _, client := range w.clients {
		client.Set(context.Background(), "clock", w.now, 0)
	}
	switch n := rapid.IntRange(0, 9).Draw(w.t, "what"); {
	case n < 2 && len(w.taken) > 0:
		w.refund()
	case n == 2:
		w.harm()
	case n == 3:
		w.decide(w.drawCalls(rapid.IntRange(2, 4).Draw(w.t, "calls")))
	default:
		w.decide(w.drawCalls(1))
	}
}

func (w *ways) decide(calls []engine.Call) {
	run := new(Run)
	for i := range calls {
		w.vary(&calls[i])
		run.AddDecision(&calls[i], w.now)
	}
	reply, err := w.run(run)
	replies, several := reply.([]any)
	if !several {
		replies = []any{reply}
	}
	for i := range calls {
		if err != nil || len(replies) != len(calls) {
			return
		}
		if v, err := ReadDecision(replies[i], &calls[i]); err == nil && v.Admitted && !calls[i].Peek && len(w.taken) < 100 {
			w.taken = append(w.taken, calls[i])
		}
	}
}

// vary makes most calls plain, and some that have the same claim twice.
func (w *ways) vary(call *engine.Call) {
	plain := rapid.IntRange(0, 3).Draw(w.t, "plain") > 0
	if plain {
		call.Peek, call.UpTo, call.Refused, call.Lease = false, false, false, 0
		call.Claims = call.Claims[:rapid.IntRange(1, len(call.Claims)).Draw(w.t, "claims")]
	}
	for i := range call.Claims {
		c := &call.Claims[i]
		if plain {
			rule := *c.Rule
			rule.Block, rule.BlockMax, rule.Pausable = 0, 0, false
			c.Rule, c.Mode, c.Wait, c.Limit, c.Burst = &rule, engine.Enforce, max(0, c.Wait), 5*c.Limit, 5*c.Burst
		}
		if !c.Rule.Kind.CountsMembers() {
			c.Limit, c.Burst, c.Cost = c.Limit*w.factor, c.Burst*w.factor, c.Cost*w.factor
		}
	}
	if rapid.IntRange(0, 7).Draw(w.t, "twice") == 0 {
		call.Claims = append(call.Claims, call.Claims[0])
	}
}

// refund gives a charge back or adds to it.
func (w *ways) refund() {
	i := rapid.IntRange(0, len(w.taken)-1).Draw(w.t, "which")
	call := w.taken[i]
	w.taken = slices.Delete(w.taken, i, i+1)
	call.Rollback = rapid.Bool().Draw(w.t, "rollback")
	for j := range call.Claims {
		c := &call.Claims[j]
		c.Delta = -max(c.Charged, 1)
		if !c.Rule.Kind.CountsMembers() && !c.Rule.Kind.Row().Releases && !call.Rollback && rapid.Bool().Draw(w.t, "adds") {
			c.Delta = 3
		}
	}
	run := new(Run)
	run.AddAdjustment(&call, w.now)
	w.run(run)
}

// run runs both scripts, and compares their replies and what they leave.
func (w *ways) run(r *Run) (any, error) {
	var replies [2]any
	var errs [2]error
	var left [2]map[string]string
	var told [2]string
	for i, client := range w.clients {
		args := append(append(slices.Clone(w.script[i]), len(r.Keys)), r.Keys...)
		replies[i], errs[i] = client.Do(context.Background(), append(args, r.Args...)...).Result()
		told[i], left[i] = places.ReplaceAllString(fmt.Sprint(replies[i], Fault(errs[i])), ""), w.left(client)
	}
	if told[0] != told[1] {
		w.t.Fatalf("the plain way replies %q, the long way %q, to %q of %q", told[0], told[1], r.Args, r.Keys)
	}
	if !maps.Equal(left[0], left[1]) {
		w.t.Fatalf("the plain way leaves %q, the long way %q, after %q of %q", left[0], left[1], r.Args, r.Keys)
	}
	return replies[0], errs[0]
}

// left returns the states and their expiries.
func (w *ways) left(client *redis.Client) map[string]string {
	ctx, states := context.Background(), make(map[string]string)
	for _, key := range client.Keys(ctx, "p:*").Val() {
		states[key] = fmt.Sprint(client.PExpireTime(ctx, key).Val(), client.Dump(ctx, key).Val())
	}
	return states
}

// harm changes a state in a way that the script never does.
func (w *ways) harm() {
	ctx, keys := context.Background(), w.clients[0].Keys(context.Background(), "p:*").Val()
	if len(keys) == 0 {
		return
	}
	slices.Sort(keys)
	key := rapid.SampledFrom(keys).Draw(w.t, "harmed")
	number := rapid.SampledFrom([]float64{0, -1, 0.5, 3, start - second, start + second, start + 1e15}).Draw(w.t, "number")
	at := rapid.Int64Range(0, 4).Draw(w.t, "at")
	how := rapid.IntRange(0, 6).Draw(w.t, "how")
	for _, client := range w.clients {
		switch state := client.Get(ctx, key).Val(); {
		case how == 6:
			client.Del(ctx, key)
			client.SAdd(ctx, key, "of another type")
		case client.Type(ctx, key).Val() == "list" && how < 4:
			client.LSet(ctx, key, -at%2, packed(number))
		case client.Type(ctx, key).Val() == "list":
			client.LSet(ctx, key, -at%2, "of sixteen bytes")
		case client.Type(ctx, key).Val() == "zset":
			client.ZAdd(ctx, key, redis.Z{Score: number, Member: "x"})
		case state == "":
		case how < 2:
			client.SetRange(ctx, key, 1+8*at, packed(number))
		case how == 2:
			client.Set(ctx, key, state[1:], redis.KeepTTL)
		case how == 3:
			client.SetRange(ctx, key, 0, string(rune(at)))
		case how == 4:
			client.Set(ctx, key, state[:len(state)/2], redis.KeepTTL)
		default:
			client.Append(ctx, key, packed(number, number, number, number)[:8*at])
		}
	}
}
