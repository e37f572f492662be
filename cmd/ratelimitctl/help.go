package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

const usage = `usage: ratelimitctl [flags] COMMAND [flags] [arguments]

`

const moreHelp = `
KEY is the key that the program uses. Errors and top escape some characters of
a key, and cut a key of more than 128 bytes. With -shown, KEY is in that form,
as in inspect -shown login a%7Bb.
Write -- before a key that begins with -, as in inspect login -- -1001.

If programs hash keys by WithSubjectHash, RATELIMIT_SECRET is their secret.

exit status: 0, or 1 if something failed, or 2 if the command line is wrong

flags of all commands:
`

// help prints help for a command, or for all.
func (out *output) help(c *command) error {
	if c != nil {
		fmt.Fprintf(out.stdout, "usage: ratelimitctl %s\n\n%s\n", strings.Join(strings.Fields(c.name+" [flags] "+c.args), " "), c.short)
		if c.long != "" {
			fmt.Fprintln(out.stdout, "\n"+c.long)
		}
		if c.flags != "" {
			fmt.Fprintln(out.stdout, "\nflags:")
			printFlags(out.stdout, c.name, c.flags)
		}
		_, err := fmt.Fprintln(out.stdout, "\nratelimitctl -h shows the flags of all commands")
		return err
	}
	var lines [][]string
	for _, c := range commands {
		lines = append(lines, []string{"  " + strings.TrimSpace(c.name+" "+c.args), c.short})
	}
	fmt.Fprint(out.stdout, usage, columns(lines, 0), moreHelp)
	printFlags(out.stdout, "", common)
	_, err := fmt.Fprintln(out.stdout, "\nratelimitctl help COMMAND shows the other flags of a command")
	return err
}

// printFlags prints the flags of the given names of a command. They are those of no command line, because a default must not show a password.
func printFlags(w io.Writer, command, names string) {
	flags := new(options).flagSet(command, names)
	flags.SetOutput(w)
	flags.PrintDefaults()
}

// helpFor prints help for the command that the arguments name.
func helpFor(_ context.Context, s *session) error { return s.helpWith(s.args) }

func (out *output) helpWith(args []string) error {
	if len(args) == 0 {
		return out.help(nil)
	}
	if len(args) == 1 && subcommands(args[0]) != nil {
		for i, second := range subcommands(args[0]) {
			if i > 0 {
				fmt.Fprintln(out.stdout)
			}
			if err := out.helpWith([]string{args[0], second}); err != nil {
				return err
			}
		}
		return nil
	}
	c, rest, err := findCommand(args)
	switch {
	case err != nil:
		return err
	case len(rest) > 0:
		return misused(fmt.Sprintf("help: found %q after a whole command", rest[0]))
	}
	return out.help(c)
}

const bash = `_ratelimitctl() { COMPREPLY=($(COMP_LINE="$COMP_LINE" COMP_POINT="$COMP_POINT" ratelimitctl completion)); }
complete -F _ratelimitctl ratelimitctl
`

// scripts are the completion scripts of shells. They run "ratelimitctl completion" with the line in COMP_LINE.
var scripts = map[string]string{
	"bash": bash,
	"zsh":  "autoload -U +X bashcompinit && bashcompinit\n" + bash,
	"fish": "complete -c ratelimitctl -f -a '(env COMP_LINE=(commandline -cp | string collect) ratelimitctl completion)'\n",
}

// completionTime is how long completion waits for the names of rules.
const completionTime = time.Second

// completion prints the script of a shell, or, for a script, the words that can complete a line.
func completion(ctx context.Context, s *session) error {
	if line := s.env("COMP_LINE"); line != "" {
		if n, err := strconv.Atoi(s.env("COMP_POINT")); err == nil && n >= 0 && n < len(line) {
			line = line[:n] // up to the cursor
		}
		ctx, cancel := context.WithTimeout(ctx, completionTime)
		defer cancel()
		for _, word := range s.complete(ctx, line) {
			fmt.Fprintln(s.stdout, shown(word))
		}
		return nil
	}
	script := ""
	if len(s.args) > 0 {
		script = scripts[s.args[0]]
	}
	if script == "" {
		return misused("completion: expected bash, zsh or fish")
	}
	_, err := io.WriteString(s.stdout, script)
	return err
}

// complete returns the words that can be the last one of a line.
func (in *input) complete(ctx context.Context, line string) (found []string) {
	words, last := strings.Fields(line), ""
	if !strings.HasSuffix(line, " ") && len(words) > 0 {
		last, words = words[len(words)-1], words[:len(words)-1]
	}
	if len(words) == 0 {
		return nil
	}
	for _, word := range in.following(ctx, words, last) {
		if strings.HasPrefix(word, last) {
			found = append(found, word)
		}
	}
	return found
}

// following returns the words that can follow others: flags, commands, or names of rules.
func (in *input) following(ctx context.Context, words []string, last string) (all []string) {
	before := &session{input: &input{env: in.env}, output: new(output)}
	c, err := before.parse(words[1:])
	more := subcommands(words[len(words)-1])
	switch {
	case strings.HasPrefix(last, "-"):
		names := common
		if c != nil {
			names += " " + c.flags
		}
		for _, name := range strings.Fields(names) {
			all = append(all, "-"+name)
		}
	case c == nil || c.name == "help":
		if more == nil {
			more = firstWords()
		}
		return more
	case err == nil && len(before.args) == 0 && strings.Contains(c.args, "RULE"):
		return before.ruleNames(ctx)
	}
	return all
}

// firstWords returns the first words of the commands.
func firstWords() (all []string) {
	for _, name := range names() {
		first, _, _ := strings.Cut(name, " ")
		all = append(all, first)
	}
	return slices.Compact(all)
}

// ruleNames returns the names of the rules, or nothing if the server does not answer.
func (s *session) ruleNames(ctx context.Context) (all []string) {
	if s.connect(ctx) != nil {
		return nil
	}
	defer s.client.Close()
	rules, _ := s.prefix.Rules(ctx)
	for _, r := range rules {
		all = append(all, r.Name)
	}
	return slices.Compact(all)
}
