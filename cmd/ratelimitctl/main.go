// Ratelimitctl shows and changes rate limits while programs run: which rules are in use, and how much each key has used. See ratelimitctl -h.
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
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
	"text/tabwriter"
	_ "time/tzdata" // for systems without zone files
	"unicode/utf16"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/printable"
	"github.com/ratelimit-go/ratelimit/internal/version"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

const usage = `usage: ratelimitctl [flags] command

commands:
  rules                                 rules that limiters used within a day
  inspect RULE [KEY]                    what a key has used
  reset RULE [KEY]                      forget what a key has used
  block RULE KEY -for 1h                refuse a key, up to 30d
  unblock RULE KEY                      end such a block
  blocked [RULE]                        the keys that are blocked, by whom, until when
  override set RULE [-limit N] [-per D] [-burst N] [-mode M] [-for D]
                                        change a rule while programs run
  override clear RULE                   end such an override
  override list                         overrides in the store
  top [-once] [-every 2s]               live decisions of processes with redisstore.WithStats()
  acl [-all] [-settings | -operator]    the permissions that limiters need; also of
                                        programs that make overrides and blocks,
                                        or of this tool
  doctor                                what is wrong with the server, and what to do

KEY is the key that the program uses. Errors and top escape some characters of
a key, and cut a key of more than 128 bytes. With -shown, KEY is in that form,
as in inspect -shown login a%7Bb.
Write -- before a key that begins with -, as in inspect login -- -1001.

acl prints the permissions for the rules that limiters used within a day, and
for those in -rules. If there are none, or with -all, it prints the permissions
for rules of all kinds.

exit status: 0, or 1 if something failed, or 2 if the command line is wrong

flags:
`

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
	url, prefix string
	json        bool
	listed      []ratelimit.UsedRule // the rules in -rules

	client  redis.UniversalClient
	limiter *ratelimit.Limiter
	fleet   *fleet.Fleet // of the limiter
	stdout  io.Writer
}

// silent discards the client's own log messages, because its errors say the same.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

func main() {
	redis.SetLogger(silent{})
	ctx, _ := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	os.Exit(run(ctx, os.Args[1:], os.Getenv("REDIS_URL"), os.Stdout, os.Stderr))
}

// run is main with its inputs and outputs as arguments. It returns the exit status.
func run(ctx context.Context, args []string, url string, stdout, stderr io.Writer) int {
	t := &tool{stdout: stdout}
	flags := flag.NewFlagSet("ratelimitctl", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&t.url, "redis", "",
		"`URL` of the server, or of one server of a cluster; the default is REDIS_URL, or redis://127.0.0.1:6379")
	flags.StringVar(&t.prefix, "prefix", ratelimit.DefaultPrefix, "`prefix` of the limiters, as in WithPrefix")
	flags.BoolVar(&t.json, "json", false, "print JSON")
	printVersion := flags.Bool("version", false, "print the version")
	file := flags.String("rules", "", "`file` of rules that may not be in use yet: the output of ratelimit -list -json")
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stdout, usage)
		flags.SetOutput(stdout)
		flags.PrintDefaults()
		return done
	}
	if err == nil && *printVersion {
		fmt.Fprintln(stdout, version.Of("ratelimitctl"))
		return done
	}
	if err != nil {
		err = misused(err.Error())
	} else if *file != "" {
		t.listed, err = readListed(*file)
	}
	t.url = cmp.Or(t.url, url, "redis://127.0.0.1:6379") // not a default of the flag, because -h prints defaults and a URL may have a password
	if err == nil {
		err = t.do(ctx, flags.Args())
	}
	switch wrong, isMisuse := errors.AsType[misused](err); {
	case err == nil:
		return done
	case isMisuse:
		fmt.Fprintf(stderr, "ratelimitctl: %s; see ratelimitctl -h\n", printable.Text(string(wrong), maxText))
		return misuse
	default:
		fmt.Fprintf(stderr, "ratelimitctl: %s\n", printable.Text(err.Error(), maxText))
	}
	return failed
}

// command is one of the tool's commands.
type command struct {
	least, most int // the number of arguments
	do          func(t *tool, ctx context.Context, args []string, o options) error
	flags       string // the names of its flags
}

var commands = map[string]command{
	"rules":          {0, 0, (*tool).printRules, ""},
	"inspect":        {1, 2, (*tool).inspect, "shown"},
	"reset":          {1, 2, (*tool).reset, "shown"},
	"block":          {2, 2, (*tool).block, "for shown"},
	"unblock":        {2, 2, (*tool).unblock, "shown"},
	"blocked":        {0, 1, (*tool).printBlocked, ""},
	"override set":   {1, 1, (*tool).setOverride, "limit per burst mode for"},
	"override clear": {1, 1, (*tool).clearOverride, ""},
	"override list":  {0, 0, (*tool).listOverrides, ""},
	"top":            {0, 0, (*tool).top, "once every"},
	"acl":            {0, 0, (*tool).printACL, "all settings operator"},
	"doctor":         {0, 0, (*tool).doctor, ""},
}

func (t *tool) do(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return misused("found no command")
	}
	name, rest := args[0], args[1:]
	if name == "override" && len(rest) > 0 {
		name, rest = name+" "+rest[0], rest[1:]
	}
	c, ok := commands[name]
	if !ok {
		return misused(fmt.Sprintf("unknown command %q", name))
	}
	rest, o, err := parseOptions(name, strings.Fields(c.flags), rest)
	switch {
	case err != nil:
		return err
	case len(rest) < c.least || len(rest) > c.most:
		return misused(fmt.Sprintf("%s: found %s; expected %s", name, counted(int64(len(rest)), "argument"), expected(c)))
	case slices.Contains(rest, "") && name != "inspect" && name != "reset":
		return misused(name + ": an argument is empty")
	}
	if err := o.checkShown(name, rest); err != nil {
		return err
	}
	if err := t.connect(ctx, o.shown); err != nil {
		return err
	}
	defer t.client.Close()
	if u, err := user.Current(); err == nil {
		ctx = ratelimit.WithActor(ctx, u.Username, "")
	}
	return c.do(t, ctx, rest, o)
}

func expected(c command) string {
	if c.least == c.most {
		return fmt.Sprint(c.least)
	}
	return fmt.Sprintf("%d or %d", c.least, c.most)
}

// maxText bounds how many bytes of a text from the store are shown.
const maxText = 1000

// print prints v as JSON, or lines of cells. The first line is the heading. Cells are escaped.
func (t *tool) print(v any, lines ...[]string) error {
	if t.json {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetIndent("", "\t")
		e.SetEscapeHTML(false)
		_ = e.Encode(v) // never fails: all values have a JSON form
		_, err := t.stdout.Write(escaped(b.Bytes()))
		return err
	}
	w := tabwriter.NewWriter(t.stdout, 0, 8, 2, ' ', 0)
	for _, cells := range lines {
		writeCells(w, cells)
	}
	return w.Flush()
}

// writeCells escapes cells and writes them as a line.
func writeCells(w io.Writer, cells []string) {
	for i, cell := range cells {
		if cells[i] = shown(cell); cell == "" {
			cells[i] = "-"
		}
	}
	fmt.Fprintln(w, strings.TrimRight(strings.Join(cells, "\t"), " "))
}

// shown returns a text from the store in the form in which it is printed.
func shown(text string) string { return printable.Text(text, maxText) }

// escaped returns JSON with unprintable characters written as \u....
func escaped(text []byte) []byte {
	var b bytes.Buffer
	for _, c := range string(text) {
		switch {
		case c == '\n' || c == '\t' || printable.Rune(c):
			b.WriteRune(c)
		case c > 0xffff:
			high, low := utf16.EncodeRune(c)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, c)
		}
	}
	return b.Bytes()
}
