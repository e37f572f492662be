// Ratelimit generates wrappers for types with //ratelimit: directives. For each file x.go with directives it writes a file
// x_ratelimit.go beside it.
//
// Usage:
//
//	ratelimit [flags] [packages]
//	ratelimit vet [flags] [packages]
//	ratelimit simulate [flags] [packages]
//	ratelimit version
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
	_ "time/tzdata" // for systems without time zone files

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator"
	"github.com/ratelimit-go/ratelimit/internal/version"
)

const usage = `usage: ratelimit [flags] [packages]
       ratelimit vet [flags] [packages]
       ratelimit simulate [flags] [packages]
       ratelimit version
       ratelimit help [verb or command]

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
		debug.SetGCPercent(1600) // the command ends before its garbage matters
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(360 << 20) // it matters if hundreds of files have directives
	}
	ctx, _ := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// The exit status.
const (
	done    = 0
	failed  = 1 // errors in the source, or stale output
	misused = 2
)

// command is a parsed command line.
type command struct {
	name                                       string // with the subcommand, for messages
	check, list, lock, json, markdown, version bool

	config         generator.Config
	module         string // the root of the module, for -lock
	stdout, stderr io.Writer
}

// run runs the command and returns its exit status. After ctx is done it writes nothing more, but finishes a write that has begun.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	c := &command{name: "ratelimit", stdout: stdout, stderr: stderr}
	if len(args) > 1 && args[0] == "help" && slices.Contains([]string{"vet", "simulate", "version"}, args[1]) {
		args = []string{args[1], "-h"}
	}
	switch first := append(args, "")[0]; first {
	case "vet": // for help, as main has done the rest
		status, _ := vets(args, stdout, stderr)
		return status
	case "simulate":
		c.name = "ratelimit simulate"
		return c.end((&simulation{command: c}).run(ctx, args[1:]))
	case "version":
		args = append([]string{"-version"}, args[1:]...)
	}
	return c.end(c.run(ctx, args))
}

func (c *command) run(ctx context.Context, args []string) error {
	if err := c.parse(args); err != nil {
		return err
	}
	if c.version {
		fmt.Fprintln(c.stdout, version.Of("ratelimit"))
		return nil
	}
	if c.lock {
		if err := c.toModule(); err != nil {
			return err
		}
	}
	result, err := generator.Generate(ctx, c.config)
	if result != nil {
		c.print(result.Messages)
	}
	if _, printed := errors.AsType[generator.Errors](err); printed {
		return generator.Errors{} // they are printed
	}
	if err != nil {
		return err
	}
	switch {
	case c.list:
		return c.printRules(c.rows(result.Rules, time.Now()))
	case c.lock:
		return c.writeLock(result.Rules)
	case c.check:
		return c.compare(result)
	}
	_, err = generator.Write(result.Files)
	return err
}

// usageError is an error in the command line.
type usageError struct{ error }

func usageErrorf(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// end prints an error, if there is one, and returns the exit status.
func (c *command) end(err error) int {
	if wrong, ok := errors.AsType[usageError](err); ok {
		fmt.Fprintf(c.stderr, "%s: %v; see %[1]s -h\n", c.name, wrong)
		return misused
	}
	messages, ok := errors.AsType[generator.Errors](err)
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
		return done
	case ok:
	case errors.Is(err, context.Canceled):
		messages = generator.Errors{{Text: "ratelimit: interrupted; nothing is written"}}
	default:
		messages = c.told(err)
	}
	c.print(messages)
	return failed
}

// told returns messages for the errors that err joins. The names of files in them are relative to the working directory.
func (c *command) told(err error) (messages []annotations.Message) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, err := range joined.Unwrap() {
			messages = append(messages, c.told(err)...)
		}
		return messages
	}
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return []annotations.Message{{File: c.relative(path.Path), Text: path.Err.Error()}}
	}
	if err != nil {
		messages = []annotations.Message{{Text: err.Error()}}
	}
	return messages
}

// print prints messages, one a line, as text or as JSON.
func (c *command) print(messages []annotations.Message) {
	if !c.json {
		if len(messages) > 0 {
			fmt.Fprintln(c.stderr, annotations.Join(messages))
		}
		return
	}
	for _, m := range messages {
		_ = encode(c.stderr, m, "") // an error cannot be reported, as for Fprintln above
	}
}

// encode writes a value as JSON, without escapes for HTML.
func encode(w io.Writer, value any, indent string) error {
	e := json.NewEncoder(w)
	e.SetIndent("", indent)
	e.SetEscapeHTML(false)
	return e.Encode(value)
}

// parse reads the command line. If it has printed help, it returns flag.ErrHelp.
func (c *command) parse(args []string) error {
	flags := flag.NewFlagSet("ratelimit", flag.ContinueOnError)
	flags.BoolVar(&c.check, "check", false, "write nothing; exit with 1 and show a diff if a file is not up to date")
	flags.BoolVar(&c.list, "list", false, "write nothing; print all rules as a table")
	flags.BoolVar(&c.lock, "lock", false, "write only ratelimit.lock: the keys and limits of each rule of the module")
	flags.BoolVar(&c.json, "json", false, "print JSON: rules on standard output, and messages, one a line, on standard error")
	flags.BoolVar(&c.markdown, "markdown", false, "with -list: print a Markdown table")
	flags.Func("warn", "how to treat warnings: as an `error`, nothing is written and the status is 1", c.warn)
	flags.BoolVar(&c.version, "version", false, "print the version")
	flags.StringVar(&c.config.Tags, "tags", "", "build `tags`, separated by commas")
	if len(args) > 1 && args[0] == "help" {
		return c.helpVerb(args[1])
	}
	if len(args) > 0 && args[0] == "help" {
		args = []string{"-help"}
	}
	if err := c.parseFlags(flags, usage, args); err != nil {
		return err
	}
	switch {
	case c.markdown && !c.list:
		return usageErrorf("-markdown goes with -list")
	case c.json && c.markdown:
		return usageErrorf("either -json or -markdown, not both")
	case c.check && c.list, c.check && c.lock, c.list && c.lock:
		return usageErrorf("-check, -list and -lock exclude each other")
	case c.lock && flags.NArg() > 0:
		return usageErrorf("-lock takes no packages; it is always about the whole module")
	}
	return nil
}

// parseFlags reads the flags and the packages after them, which are relative to the working directory.
func (c *command) parseFlags(flags *flag.FlagSet, usage string, args []string) (err error) {
	flags.SetOutput(io.Discard)
	if err = flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(c.stdout, usage)
		flags.SetOutput(c.stdout)
		flags.PrintDefaults()
		return err
	} else if err != nil {
		return usageError{err}
	}
	c.config.Patterns = flags.Args()
	if i := slices.IndexFunc(c.config.Patterns, func(p string) bool { return strings.HasPrefix(p, "-") }); i >= 0 {
		return usageErrorf("found %q among the packages; flags come before packages", c.config.Patterns[i])
	}
	if !c.version { // -version works even if the working directory was removed
		c.config.Dir, err = os.Getwd()
	}
	return err
}

// helpVerb prints the arguments of a verb.
func (c *command) helpVerb(verb string) error {
	if v := annotations.LookUp(verb); v != nil {
		fmt.Fprint(c.stdout, annotations.Grammar(v))
		return flag.ErrHelp
	}
	return usageErrorf("unknown verb or command %q; expected %s, vet, simulate or version", verb, strings.Join(annotations.VerbNames, ", "))
}

// warn sets the flag -warn.
func (c *command) warn(value string) error {
	if value != "error" {
		return errors.New(`expected "error"`)
	}
	c.config.Strict = true
	return nil
}

// relative returns the name of a file relative to the working directory if that is shorter.
func (c *command) relative(path string) string {
	return annotations.Relative(c.config.Dir, path)
}
