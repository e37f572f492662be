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
	_ "time/tzdata" // for systems without zone files

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/operate"
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

// input is a parsed command line, and what else a command may read.
type input struct {
	options
	args   []string
	env    func(name string) string
	stdin  io.Reader
	listed []ratelimit.UsedRule // the rules in -rules
}

// session is what a command works with.
type session struct {
	*input
	*output
	client  redis.UniversalClient
	store   ratelimit.Store
	prefix  *operate.Prefix
	limiter *ratelimit.Limiter // of prefix
	loss    operate.Loss
	told    bool // the command prints the loss
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
	s := &session{input: &input{env: env, stdin: stdin}, output: &output{stdout: stdout, stderr: stderr}}
	c, err := s.parse(args)
	s.output.json = s.input.json
	switch {
	case errors.Is(err, flag.ErrHelp) && c == nil:
		err = helpFor(ctx, s)
	case errors.Is(err, flag.ErrHelp):
		err = s.help(c)
	case err == nil && s.version:
		_, err = fmt.Fprintln(stdout, version.Of("ratelimitctl"))
	case err == nil:
		err = s.do(ctx, c)
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
// nil if the line ends before it; with flag.ErrHelp, the arguments are then the first word of the commands to help with.
func (in *input) parse(args []string) (c *command, err error) {
	flags := in.flagSet("ratelimitctl", common)
	if err := flags.Parse(args); err != nil || in.version {
		return nil, wrongFlag("", err)
	}
	line := flags.Args()
	c, args, err = findCommand(line)
	switch {
	case err == nil:
	case len(line) > 0 && subcommands(line[0]) != nil && errors.Is(flags.Parse(line[1:]), flag.ErrHelp):
		in.args = line[:1]
		return nil, flag.ErrHelp
	default:
		return nil, err
	}
	flags = in.flagSet(c.name, common+" "+c.flags)
	for len(args) > 0 {
		if err := flags.Parse(args); err != nil {
			return c, wrongFlag(c.name+": ", err)
		}
		read := len(args) - flags.NArg()
		if read > 0 && args[read-1] == "--" {
			in.args = append(in.args, flags.Args()...)
			break
		}
		if args = flags.Args(); len(args) > 0 {
			in.args, args = append(in.args, args[0]), args[1:]
		}
	}
	return c, nil
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
func (s *session) do(ctx context.Context, c *command) (err error) {
	if err := c.check(s.args); err != nil {
		return err
	}
	if err := s.checkShown(c); err != nil {
		return err
	}
	if s.rules != "" {
		if s.listed, err = readListed(s.rules); err != nil {
			return err
		}
	}
	if c.local {
		return c.run(ctx, s)
	}
	if err := s.connect(ctx); err != nil {
		return err
	}
	defer s.client.Close()
	if !c.anyPrefix && s.rules == "" {
		if err := s.checkPrefix(ctx); err != nil {
			return err
		}
		s.loss, _ = s.prefix.Loss(ctx)
		defer s.tellLoss()
	}
	err = c.run(ctx, s)
	if wrong, ok := errors.AsType[operate.Wrong](err); ok {
		return misused(c.name + ": " + string(wrong))
	}
	if _, unknown := errors.AsType[*operate.UnknownRule](err); unknown {
		err = fmt.Errorf("%w; give others with -rules", err)
		if slices.Contains(strings.Fields(c.flags), "force") {
			err = fmt.Errorf("%w, or use -force", err)
		}
	}
	return err
}

// actor is who runs the tool, and why.
func (in *input) actor() (fleet.Actor, error) {
	a := fleet.Actor{By: "unknown", Reason: in.reason}
	if u, err := user.Current(); err == nil {
		a.By = cmp.Or(u.Username, a.By)
	}
	if wrong := a.Check(); wrong != "" {
		return a, misused("-reason: " + wrong)
	}
	return a, nil
}

// arg returns an argument, or "" if it is missing.
func (in *input) arg(i int) string {
	if i < len(in.args) {
		return in.args[i]
	}
	return ""
}
