package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/internal/period"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// options are the flags.
type options struct {
	// Of all commands.
	url, prefix, rules     string
	tlsCA, tlsCert, tlsKey string
	json, version          bool

	key, keys, match    string
	reason              string
	shown, force, wait  bool
	forever, replace    bool
	forTime, per, every time.Duration
	limit               *int64
	factor              float64
	burst               int64
	mode                *ratelimit.Mode
	n                   int64
	once, all           bool
	settings, operator  bool
	filter, sort        string

	listen, actorHeader, host string
	write                     bool
}

// common are the flags of all commands.
const common = "redis prefix json rules tls-ca tls-cert tls-key version"

// flagSet returns the flags of the given names.
func (o *options) flagSet(command, names string) *flag.FlagSet {
	flags := flag.NewFlagSet(command, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	o.define(flags, command, names)
	return flags
}

// define defines the flags of the given names for a command. The text in backquotes names a flag's value.
func (o *options) define(flags *flag.FlagSet, command, names string) {
	text := func(to *string, usage string) func(string) {
		return func(name string) { flags.StringVar(to, name, *to, usage) }
	}
	is := func(to *bool, usage string) func(string) {
		return func(name string) { flags.BoolVar(to, name, *to, usage) }
	}
	number := func(to *int64, usage string) func(string) {
		return func(name string) { flags.Int64Var(to, name, *to, usage) }
	}
	of := func(parse func(string) error, usage string) func(string) {
		return func(name string) { flags.Func(name, usage, parse) }
	}
	all := map[string]func(name string){
		"redis": text(&o.url, "`URL` of the server, of one server of a cluster, or of a Sentinel, such as redis://user:password@host:6379/0 or "+
			"redis://host:26379?master_name=shop; RATELIMIT_REDIS, else redis://127.0.0.1:6379"),
		"prefix":   text(&o.prefix, "`prefix` of the programs, as in WithPrefix; RATELIMIT_PREFIX, else "+ratelimit.DefaultPrefix),
		"json":     is(&o.json, "print JSON"),
		"rules":    text(&o.rules, "`file` of rules that may not be in use yet: the output of ratelimit -list -json"),
		"tls-ca":   text(&o.tlsCA, "`file` of certificates that sign the server's, for a URL with rediss"),
		"tls-cert": text(&o.tlsCert, "`file` of this client's certificate"),
		"tls-key":  text(&o.tlsKey, "`file` of the private key of -tls-cert"),
		"version":  is(&o.version, "print the version"),

		"key":          text(&o.key, "only for this `key`"),
		"keys":         text(&o.keys, "`file` of keys, one in each line; - is the standard input"),
		"match":        text(&o.match, "only for the keys in this network, such as 203.0.113.0/24, or that begin with this `text`, such as 'ann*'"),
		"shown":        is(&o.shown, "read keys in the form that errors and top show"),
		"reason":       text(&o.reason, "`text` that says why, for those who look later"),
		"force":        is(&o.force, "accept a rule that no program uses, and values that the rule cannot have"),
		"wait":         is(&o.wait, "wait until every process follows"),
		"for":          of(duration(&o.forTime), "how long: a `duration` such as 1h30m or 2d"),
		"forever":      is(&o.forever, "until it is cleared"),
		"replace":      is(&o.replace, "forget what an earlier override says"),
		"limit":        of(o.setLimit, "`permits` per window"),
		"factor":       of(o.setFactor, "what limit and burst are multiplied by: a `number` from 0.001 to 1000"),
		"per":          of(duration(&o.per), "the `window`, such as 1m"),
		"burst":        of(o.setBurst, "`permits` that a token bucket holds"),
		"mode":         of(o.setMode, "`mode`: enforce, shadow or trigger"),
		"n":            number(&o.n, "the `number` of permits"),
		"changes n":    func(name string) { flags.Int64Var(&o.n, name, 20, "the `number` of changes; 20 without it") },
		"once":         is(&o.once, "print one frame"),
		"every":        of(duration(&o.every), "`time` between two frames, 1s or more; 2s without it"),
		"filter":       text(&o.filter, "only rules and keys with this `text`"),
		"sort":         text(&o.sort, "`column`: decisions, refused, blocked, shadow, failed or rule; decisions without it"),
		"listen":       text(&o.listen, "`address` of this machine alone: "+defaultListen+" without it; or unix:PATH"),
		"write":        is(&o.write, "let people change limits there"),
		"actor-header": text(&o.actorHeader, "`name` of the header in which a proxy tells who changes something; without it, the user who runs this tool"),
		"host":         text(&o.host, "`host` of a proxy that passes requests on"),

		"all":      is(&o.all, "every rule"),
		"acl all":  is(&o.all, "for rules of all kinds"),
		"settings": is(&o.settings, "also for programs that make overrides, blocks and pauses"),
		"operator": is(&o.operator, "also for this tool"),
	}
	for _, name := range strings.Fields(names) {
		define := all[command+" "+name]
		if define == nil {
			define = all[name]
		}
		define(name)
	}
}

func duration(to *time.Duration) func(string) error {
	return func(text string) (err error) {
		*to, _, err = period.Parse("it", text)
		return err
	}
}

var errNumber = errors.New("expected a number without a fraction")

func (o *options) setLimit(text string) error {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return errNumber
	}
	o.limit = &n
	return nil
}

func (o *options) setBurst(text string) (err error) {
	if o.burst, err = strconv.ParseInt(text, 10, 64); err != nil || o.burst < 1 {
		return errors.New("expected 1 or more")
	}
	return nil
}

func (o *options) setFactor(text string) (err error) {
	if o.factor, err = strconv.ParseFloat(text, 64); err != nil || !(o.factor > 0) {
		return errors.New("expected a number from 0.001 to 1000")
	}
	return nil
}

func (o *options) setMode(text string) error {
	modes := []ratelimit.Mode{ratelimit.ModeEnforce, ratelimit.ModeShadow, ratelimit.ModeTrigger}
	i := slices.IndexFunc(modes, func(m ratelimit.Mode) bool { return m.String() == text })
	if i < 0 {
		return errors.New("expected enforce, shadow or trigger")
	}
	o.mode = &modes[i]
	return nil
}

// checkShown checks, with -shown, that a key on the command line has the form that errors and top show.
func (in *input) checkShown(c *command) error {
	given := cmp.Or(in.arg(1), in.key)
	if in.all && len(in.args) == 1 {
		given = in.args[0]
	}
	if in.shown && given != "" && !key.IsEscaped(given) {
		return misused(fmt.Sprintf("%s: -shown: found %q; expected a whole key as errors and top show it", c.name, given))
	}
	return nil
}
