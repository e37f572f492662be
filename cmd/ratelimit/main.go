// Ratelimit writes the wrappers of types that carry //ratelimit: directives: for each annotated x.go, a file
// x_ratelimit.go beside it.
//
// Usage:
//
//	ratelimit [flags] [packages]
//	ratelimit vet [flags] [packages]
//	ratelimit simulate [flags] [packages]
//
// Packages are named as for the go command; the default is the package in the current directory. See ratelimit -h.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"
	_ "time/tzdata" // so that zones are known where the system has no files for them

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator"
	"github.com/ratelimit-go/ratelimit/internal/version"
)

const usage = `usage: ratelimit [flags] [packages]
       ratelimit vet [flags] [packages]
       ratelimit simulate [flags] [packages]
       ratelimit help [verb]

Writes x_ratelimit.go beside each file x.go with //ratelimit: directives.
Packages are named as for the go command; the default is the one in the
current directory. A Go file stands for itself alone.

examples:
  ratelimit ./...             generate for all packages below
  ratelimit -check ./...      fail if a file is not up to date, as in CI
  ratelimit -lock             write ratelimit.lock, with which -check compares the rules
  ratelimit -list ./...       print all rules
  ratelimit -list -json .     the same for programs
  ratelimit -check -warn=error ./...    fail on warnings, too
  ratelimit vet ./...         find broken directives and forgotten wrappers; see ratelimit vet -h
  ratelimit simulate .        try the rules on a load; see ratelimit simulate -h
  ratelimit help rule         print the arguments of //ratelimit:rule
  //go:generate go tool ratelimit    in a source file, for go generate

exit status:
  0   everything is up to date now
  1   there are errors in the source, or no directives, or, with -check,
      files that are not up to date, or other rules than in ratelimit.lock;
      nothing is written
  2   the command line is wrong

flags:
`

func main() {
	if status, ok := vets(os.Args[1:], os.Stdout, os.Stderr); ok {
		os.Exit(status)
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(200) // it is over before its garbage matters
	}
	ctx, _ := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// The exit status.
const (
	done   = 0
	failed = 1 // errors in the source, or stale output
	misuse = 2
)

// command is a parsed command line.
type command struct {
	name                                       string // with that of the subcommand
	check, list, lock, json, markdown, version bool

	config         generator.Config
	stdout, stderr io.Writer
}

// run is main without the process. Once ctx is done nothing is written any more; files that are being written are finished.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 && args[0] == "simulate" {
		return simulates(ctx, args[1:], stdout, stderr)
	}
	c := &command{name: "ratelimit", stdout: stdout, stderr: stderr}
	if status, ok := c.parse(args); !ok {
		return status
	}
	if c.version {
		fmt.Fprintln(stdout, version.Of("ratelimit"))
		return done
	}
	dir, err := os.Getwd()
	if err != nil {
		return c.fail(err)
	}
	c.config.Dir = dir
	if c.lock {
		if err := c.toModule(); err != nil {
			return c.fail(err)
		}
	}
	result, err := generator.Generate(ctx, c.config)
	if errors.Is(err, context.Canceled) {
		err = errors.New("ratelimit: interrupted; nothing is written")
	}
	if result != nil {
		c.print(result.Messages)
	}
	if _, printed := errors.AsType[generator.Errors](err); printed {
		return failed
	}
	if err != nil {
		return c.fail(err)
	}
	switch {
	case c.list:
		err = c.printRules(c.rows(result.Rules, time.Now()))
	case c.lock:
		err = c.writeLock(result.Rules)
	case c.check:
		return max(c.printStale(result.Files), c.checkLocks(result.Rules))
	default:
		_, err = generator.Write(result.Files)
	}
	if err != nil {
		return c.fail(err)
	}
	return done
}

// print prints messages as text, or, for programs, as JSON, one a line.
func (c *command) print(messages []annotations.Message) {
	if !c.json {
		if len(messages) > 0 {
			fmt.Fprintln(c.stderr, annotations.Join(messages))
		}
		return
	}
	e := json.NewEncoder(c.stderr)
	e.SetEscapeHTML(false)
	for _, m := range messages {
		_ = e.Encode(m) // as Fprintln above, it has nobody to tell
	}
}

// parse reads the command line; unless ok, the command is over with status.
func (c *command) parse(args []string) (status int, ok bool) {
	flags := flag.NewFlagSet("ratelimit", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.BoolVar(&c.check, "check", false, "write nothing; exit with 1 and show a diff if a file is not up to date")
	flags.BoolVar(&c.list, "list", false, "write nothing; print all rules as a table")
	flags.BoolVar(&c.lock, "lock", false, "write only ratelimit.lock: what the counts of each rule of the module depend on, and the limits")
	flags.BoolVar(&c.json, "json", false, "print JSON: rules on standard output, and messages, one a line, on standard error")
	flags.BoolVar(&c.markdown, "markdown", false, "with -list: print a Markdown table")
	flags.Func("warn", "how to treat warnings: as an `error`, nothing is written and the status is 1", c.warn)
	flags.BoolVar(&c.version, "version", false, "print the version")
	flags.StringVar(&c.config.Tags, "tags", "", "build `tags`, separated by commas")
	if len(args) > 0 && args[0] == "help" {
		return c.help(flags, args[1:]), false
	}
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return c.help(flags, nil), false
	} else if err != nil {
		return c.misuse(err.Error()), false
	}
	switch {
	case c.markdown && !c.list:
		return c.misuse("-markdown goes with -list"), false
	case c.json && c.markdown:
		return c.misuse("either -json or -markdown, not both"), false
	case slices.ContainsFunc(flags.Args(), func(a string) bool { return strings.HasPrefix(a, "-") }):
		return c.misuse("flags come before packages"), false
	case c.check && c.list, c.check && c.lock, c.list && c.lock:
		return c.misuse("-check, -list and -lock exclude each other"), false
	case c.lock && flags.NArg() > 0:
		return c.misuse("-lock is about all packages of the module; name none"), false
	}
	c.config.Patterns = flags.Args()
	return done, true
}

// help prints how the command is used, or the arguments of a verb.
func (c *command) help(flags *flag.FlagSet, args []string) int {
	if len(args) == 0 {
		fmt.Fprint(c.stdout, usage)
		flags.SetOutput(c.stdout)
		flags.PrintDefaults()
		return done
	}
	if v := annotations.LookUp(args[0]); v != nil {
		fmt.Fprint(c.stdout, annotations.Grammar(v))
		return done
	}
	var verbs []string
	for _, v := range annotations.Verbs {
		verbs = append(verbs, v.Name)
	}
	return c.misuse(fmt.Sprintf("unknown verb %q; expected %s", args[0], strings.Join(verbs, ", ")))
}

// warn reads the flag of that name.
func (c *command) warn(value string) error {
	if value != "error" {
		return errors.New(`expected "error"`)
	}
	c.config.Strict = true
	return nil
}

func (c *command) misuse(msg string) int {
	fmt.Fprintf(c.stderr, "%s: %s; see %[1]s -h\n", c.name, msg)
	return misuse
}

// fail prints an error. What the disk has against a file is told by the name that the user would give it.
func (c *command) fail(err error) int {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = fmt.Errorf("%s: %w", c.relative(path.Path), path.Err)
	}
	c.print([]annotations.Message{{Text: err.Error()}})
	return failed
}

// relative names a file as the user would.
func (c *command) relative(path string) string {
	return annotations.Relative(c.config.Dir, path)
}
