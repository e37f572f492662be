package main

import (
	"context"
	"io"
	"os"
	"strings"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/key"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

const topEvery = 2 * time.Second // the time between two frames

// clear clears a terminal.
const clear = "\x1b[H\x1b[2J\x1b[3J"

// top shows the decisions of all processes, until it is interrupted.
func (t *tool) top(ctx context.Context, _ []string, o options) error {
	if o.every == 0 {
		o.every = topEvery
	}
	if o.every < time.Second {
		return misused("top: -every: found " + o.every.String() + "; expected 1s or more")
	}
	_ = t.limiter.Ping(ctx) // reads overrides, which may change windows; without them, top shows windows in the form of keys
	for first := true; ; first = false {
		err := t.show(ctx, first)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil || o.once {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(o.every):
		}
	}
}

// show prints one frame.
func (t *tool) show(ctx context.Context, first bool) error {
	rules, err := t.rules(ctx)
	if err != nil {
		return err
	}
	reports, err := t.fleet.Reports(ctx)
	if err != nil {
		return err
	}
	f := newFrame(t.prefix, reports, t.names(rules))
	if t.json {
		return t.print(f)
	}
	text := f.text(time.Now())
	switch {
	case isTerminal(t.stdout):
		text = clear + text
	case !first:
		text = "\n" + text
	}
	_, err = io.WriteString(t.stdout, text)
	return err
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// named is a rule under the names that people know.
type named struct{ Rule, Window string }

// names returns the names under which rules are shown, by their names and tags in keys.
func (t *tool) names(rules []ratelimit.UsedRule) map[named]named {
	names := map[named]named{}
	for _, r := range rules {
		state, err := t.limiter.StateKey(ratelimit.Request{Rule: r.Rule, Key: "x"})
		if err != nil {
			continue
		}
		parts, _ := key.Split(state)
		tag := parts.Tag
		names[named{strings.TrimPrefix(parts.Owner, key.Escape(t.prefix)+":"), tag}] = named{r.Name, strings.TrimSuffix(tag, ":"+r.Key)}
	}
	return names
}
