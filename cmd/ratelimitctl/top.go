package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/internal/traffic"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

const topEvery = 2 * time.Second // the time between two frames

// clear clears a terminal.
const clear = "\x1b[H\x1b[2J\x1b[3J"

// top shows the decisions of all processes, until it is interrupted or q is pressed. If the store does not answer, it goes on to ask.
func (t *tool) top(ctx context.Context, _ []string) error {
	t.every = cmp.Or(t.every, topEvery)
	if t.every < time.Second {
		return misused("top: -every: found " + words(t.every) + "; expected 1s or more")
	}
	if traffic.Columns[cmp.Or(t.sort, "decisions")] == nil {
		return misused("top: -sort: expected decisions, refused, blocked, shadow, failed or rule")
	}
	if t.once {
		f, err := t.frame(ctx)
		if err != nil {
			return err
		}
		return t.show(f, true)
	}
	ctx, restore := t.untilQ(ctx)
	defer restore()
	var last *frame
	for first := true; ; first = false {
		f, err := t.frame(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			f = last.staleBy(err, t.fleet.Now())
		} else {
			last = f
		}
		if err := t.show(f, first); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(t.every):
		}
	}
}

// frame reads a frame.
func (t *tool) frame(ctx context.Context) (*frame, error) {
	if err := t.fleet.Follow(ctx); err != nil { // overrides may change windows
		return nil, err
	}
	rules, err := t.usedRules(ctx)
	if err != nil {
		return nil, err
	}
	processes, err := t.fleet.Processes(ctx)
	if err != nil {
		return nil, err
	}
	reports, err := t.fleet.Reports(ctx, processes)
	if err != nil {
		return nil, err
	}
	return newFrame(frameOf{t.prefix, processes, reports, t.names(rules), t.filter, cmp.Or(t.sort, "decisions"), t.fleet.Now()}), nil
}

// show prints one frame.
func (t *tool) show(f *frame, first bool) error {
	if t.json {
		return t.printJSON(f)
	}
	var text string
	switch {
	case isTerminal(t.stdout):
		rows, columns := terminalSize(stty("size"))
		text = clear + cutRows(f.text(columns), rows)
	case first:
		text = f.text(0)
	default:
		text = "\n" + f.text(0)
	}
	_, err := io.WriteString(t.stdout, text)
	return err
}

// cutRows cuts a text to the rows of a terminal, unless that is 0. The last row stays empty.
func cutRows(text string, rows int) string {
	lines := strings.SplitAfter(text, "\n")
	if rows < 2 || len(lines) <= rows {
		return text
	}
	return strings.Join(lines[:rows-1], "")
}

// terminalSize returns the numbers of rows and columns that stty prints, or 0 if there are none.
func terminalSize(printed string) (rows, columns int) {
	if n, _ := fmt.Sscan(printed, &rows, &columns); n != 2 {
		return 0, 0
	}
	return rows, columns
}

// stty runs the command of this name for the terminal, and returns its output, or "" if it failed.
func stty(args ...string) string {
	c := exec.Command("stty", args...)
	c.Stdin = os.Stdin
	out, _ := c.Output()
	return strings.TrimSpace(string(out))
}

// untilQ returns a context that ends when q is pressed, and a function that restores the terminal.
func (t *tool) untilQ(ctx context.Context) (_ context.Context, restore func()) {
	ctx, end := context.WithCancelCause(ctx)
	restore = func() {}
	if in, ok := t.stdin.(*os.File); ok && isTerminal(in) {
		if before := stty("-g"); before != "" {
			stty("cbreak", "-echo")
			restore = func() { stty(before) }
		}
	}
	go func() {
		for b := make([]byte, 1); ; {
			n, err := t.stdin.Read(b)
			if n == 1 && b[0] == 'q' {
				end(errors.New("q was pressed"))
			}
			if err != nil {
				return
			}
		}
	}()
	return ctx, restore
}

func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// names returns rules as people know them, by their names in keys.
func (t *tool) names(rules []ratelimit.UsedRule) map[traffic.Named]traffic.Known {
	return traffic.Names(t.limiter, key.Escape(t.prefix), rules)
}
