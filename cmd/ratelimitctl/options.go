package main

import (
	"flag"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/internal/period"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// options are the flags of commands.
type options struct {
	forTime, per time.Duration
	limit        *int64
	burst        int64
	mode         *ratelimit.Mode
	once, shown  bool
	all          bool
	settings     bool
	operator     bool
	every        time.Duration
}

// parseOptions parses the flags of a command. Flags may be before and after the arguments. After "--" there are only arguments.
func parseOptions(name string, known, args []string) (rest []string, o options, err error) {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	o.define(flags, known)
	for len(args) > 0 {
		if err := flags.Parse(args); err != nil {
			return nil, o, misused(name + ": " + err.Error())
		}
		read := len(args) - flags.NArg()
		if read > 0 && args[read-1] == "--" {
			return append(rest, flags.Args()...), o, nil
		}
		if args = flags.Args(); len(args) > 0 {
			rest, args = append(rest, args[0]), args[1:]
		}
	}
	return rest, o, nil
}

// checkShown checks, with -shown, that the key has the form that errors and top show.
func (o *options) checkShown(name string, args []string) error {
	if o.shown && len(args) > 1 && !key.IsEscaped(args[1]) {
		return misused(fmt.Sprintf("%s: -shown: found %q; expected a whole key as errors and top show it", name, args[1]))
	}
	return nil
}

func (o *options) define(flags *flag.FlagSet, known []string) {
	duration := func(d *time.Duration) func(string) error {
		return func(text string) (err error) {
			*d, _, err = period.Parse("it", text)
			return err
		}
	}
	all := map[string]func(){
		"for":      func() { flags.Func("for", "", duration(&o.forTime)) },
		"per":      func() { flags.Func("per", "", duration(&o.per)) },
		"every":    func() { flags.Func("every", "", duration(&o.every)) },
		"once":     func() { flags.BoolVar(&o.once, "once", false, "") },
		"all":      func() { flags.BoolVar(&o.all, "all", false, "") },
		"settings": func() { flags.BoolVar(&o.settings, "settings", false, "") },
		"operator": func() { flags.BoolVar(&o.operator, "operator", false, "") },
		"shown":    func() { flags.BoolVar(&o.shown, "shown", false, "") },
		"burst":    func() { flags.Int64Var(&o.burst, "burst", 0, "") },
		"limit": func() {
			flags.Func("limit", "", func(text string) error {
				o.limit = new(int64)
				_, err := fmt.Sscanf(text+"\n", "%d\n", o.limit)
				return err
			})
		},
		"mode": func() {
			flags.Func("mode", "", func(text string) error {
				modes := []ratelimit.Mode{ratelimit.ModeEnforce, ratelimit.ModeShadow, ratelimit.ModeTrigger}
				i := slices.IndexFunc(modes, func(m ratelimit.Mode) bool { return m.String() == text })
				if i < 0 {
					return fmt.Errorf("expected enforce, shadow or trigger")
				}
				o.mode = &modes[i]
				return nil
			})
		},
	}
	for _, name := range known {
		all[name]()
	}
}
