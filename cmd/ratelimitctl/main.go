// Ratelimitctl shows and changes rate limits while programs run: which rules are in use, and how much each key has used. See ratelimitctl -h.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"os/user"
	"slices"
	"strings"
	"syscall"
	"time"
	_ "time/tzdata" // for systems without zone files

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/printable"
	"github.com/ratelimit-go/ratelimit/internal/version"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// The exit status.
const (
	done   = 0
	failed = 1
	misuse = 2
)

// misused is an error in the command line.
type misused string

func (m misused) Error() string { return string(m) }

// tool is a parsed command line and its connection.
type tool struct {
	options
	env    func(name string) string
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer

	listed   []ratelimit.UsedRule // the rules in -rules
	client   redis.UniversalClient
	patience time.Duration   // how long to wait for a decision
	store    ratelimit.Store // of limiter
	limiter  *ratelimit.Limiter
	counts   *ratelimit.Limiter // knows no overrides, blocks or pauses
	fleet    *fleet.Fleet       // of limiter
	kept     string             // says that processes keep settings that the store lost, if any does
}

// silent discards the client's own log messages, because its errors say the same.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

func main() {
	redis.SetLogger(silent{})
	ctx, _ := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	os.Exit(run(ctx, os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr))
}

// run is main with its inputs and outputs as arguments. It returns the exit status.
func run(ctx context.Context, args []string, env func(string) string, stdin io.Reader, stdout, stderr io.Writer) int {
	t := &tool{env: env, stdin: stdin, stdout: stdout, stderr: stderr}
	c, rest, err := t.parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp) && c == nil:
		err = t.helpFor(ctx, rest)
	case errors.Is(err, flag.ErrHelp):
		err = t.help(c)
	case err == nil && t.version:
		_, err = fmt.Fprintln(stdout, version.Of("ratelimitctl"))
	case err == nil:
		err = t.do(ctx, c, rest)
	}
	switch wrong, isMisuse := errors.AsType[misused](err); {
	case err == nil:
		return done
	case isMisuse:
		see := "-h"
		if c != nil {
			see = "help " + c.name
		}
		fmt.Fprintf(stderr, "ratelimitctl: %s; see ratelimitctl %s\n", printable.Text(string(wrong), maxText), see)
		return misuse
	default:
		fmt.Fprintf(stderr, "ratelimitctl: %s\n", printable.Text(err.Error(), maxText))
	}
	return failed
}

// parse parses a command line. Flags may be before and after the command and its arguments. After "--" there are only arguments. The command is
// nil if the line ends before it; with flag.ErrHelp, rest is then the first word of the commands to help with.
func (t *tool) parse(args []string) (c *command, rest []string, err error) {
	flags := t.flagSet("ratelimitctl", common)
	if err := flags.Parse(args); err != nil || t.version {
		return nil, nil, wrongFlag("", err)
	}
	line := flags.Args()
	c, args, err = findCommand(line)
	switch {
	case err == nil:
	case len(line) > 0 && subcommands(line[0]) != nil && errors.Is(flags.Parse(line[1:]), flag.ErrHelp):
		return nil, line[:1], flag.ErrHelp
	default:
		return nil, nil, err
	}
	flags = t.flagSet(c.name, common+" "+c.flags)
	for len(args) > 0 {
		if err := flags.Parse(args); err != nil {
			return c, nil, wrongFlag(c.name+": ", err)
		}
		read := len(args) - flags.NArg()
		if read > 0 && args[read-1] == "--" {
			rest = append(rest, flags.Args()...)
			break
		}
		if args = flags.Args(); len(args) > 0 {
			rest, args = append(rest, args[0]), args[1:]
		}
	}
	return c, rest, nil
}

// wrongFlag returns an error in the flags as an error in the command line.
func wrongFlag(command string, err error) error {
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return err
	}
	return misused(command + err.Error())
}

// findCommand returns the command that a command line begins with, and the rest of the line. The name of a command has one or two words.
func findCommand(line []string) (*command, []string, error) {
	if len(line) == 0 {
		return nil, nil, misused("the command is missing")
	}
	for n := min(2, len(line)); n > 0; n-- {
		name := strings.Join(line[:n], " ")
		if i := slices.IndexFunc(commands, func(c command) bool { return c.name == name }); i >= 0 {
			return &commands[i], line[n:], nil
		}
	}
	if more := subcommands(line[0]); more != nil {
		return nil, nil, misused(line[0] + ": expected " + strings.Join(more, ", "))
	}
	if strings.ContainsAny(line[0], ":@/") { // perhaps a URL with a password
		return nil, nil, misused("the first argument is no command")
	}
	return nil, nil, misused(fmt.Sprintf("unknown command %q%s", line[0], annotations.Suggest(line[0], firstWords())))
}

// do runs a command.
func (t *tool) do(ctx context.Context, c *command, args []string) (err error) {
	if err := c.check(args); err != nil {
		return err
	}
	if err := t.checkShown(c, args); err != nil {
		return err
	}
	if t.rules != "" {
		if t.listed, err = readListed(t.rules); err != nil {
			return err
		}
	}
	if c.local {
		return c.run(t, ctx, args)
	}
	if err := t.connect(ctx); err != nil {
		return err
	}
	defer t.client.Close()
	if !c.anyPrefix && t.rules == "" {
		if err := t.checkPrefix(ctx); err != nil {
			return err
		}
	}
	return c.run(t, ctx, args)
}

// actor is who runs the tool, and why.
func (t *tool) actor() (fleet.Actor, error) {
	a := fleet.Actor{By: "unknown", Reason: t.reason}
	if u, err := user.Current(); err == nil {
		a.By = cmp.Or(u.Username, a.By)
	}
	if wrong := a.Check(); wrong != "" {
		return a, misused("-reason: " + wrong)
	}
	return a, nil
}
