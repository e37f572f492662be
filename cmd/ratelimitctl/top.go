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

	"github.com/ratelimit-go/ratelimit/internal/operate"
	"github.com/ratelimit-go/ratelimit/internal/traffic"
)

const topEvery = 2 * time.Second // the time between two frames

// clear clears a terminal.
const clear = "\x1b[H\x1b[2J\x1b[3J"

// top shows the decisions of all processes, until it is interrupted or q is pressed. If the store does not answer, it goes on to ask.
func top(ctx context.Context, s *session) error {
	s.every = cmp.Or(s.every, topEvery)
	if s.every < time.Second {
		return misused("top: -every: found " + operate.Duration(s.every) + "; expected 1s or more")
	}
	if traffic.Columns[cmp.Or(s.sort, "decisions")] == nil {
		return misused("top: -sort: expected decisions, refused, blocked, shadow, failed or rule")
	}
	if s.once {
		f, err := readFrame(ctx, s)
		if err != nil {
			return err
		}
		return s.show(f, true)
	}
	ctx, restore := s.untilQ(ctx)
	defer restore()
	var last *frame
	for first := true; ; first = false {
		f, err := readFrame(ctx, s)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			f = last.staleBy(err, s.prefix.Now())
		} else {
			last = f
		}
		if err := s.show(f, first); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(s.every):
		}
	}
}

// readFrame reads a frame.
func readFrame(ctx context.Context, s *session) (*frame, error) {
	processes, at := s.prefix.Processes(ctx)
	followed := s.prefix.Follow(ctx) // overrides may change windows
	sums, summed := s.prefix.Traffic(ctx)
	if err := at.Worse(followed).Worse(summed).Err; err != nil {
		return nil, err
	}
	return newFrame(frameOf{s.options.prefix, processes, sums, s.filter, cmp.Or(s.sort, "decisions"), s.prefix.Now()}), nil
}

// show prints one frame.
func (s *session) show(f *frame, first bool) error {
	if s.json {
		return s.printJSON(f)
	}
	var text string
	switch {
	case isTerminal(s.stdout):
		rows, columns := terminalSize(stty("size"))
		text = clear + cutRows(f.text(columns), rows)
	case first:
		text = f.text(0)
	default:
		text = "\n" + f.text(0)
	}
	_, err := io.WriteString(s.stdout, text)
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
func (s *session) untilQ(ctx context.Context) (_ context.Context, restore func()) {
	ctx, end := context.WithCancelCause(ctx)
	restore = func() {}
	if in, ok := s.stdin.(*os.File); ok && isTerminal(in) {
		if before := stty("-g"); before != "" {
			stty("cbreak", "-echo")
			restore = func() { stty(before) }
		}
	}
	go func() {
		for b := make([]byte, 1); ; {
			n, err := s.stdin.Read(b)
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
