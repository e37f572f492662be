package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ratelimit-go/ratelimit/internal/operate"
)

// command is one of the tool's commands.
type command struct {
	name      string
	args      string // one word for each argument; those in brackets may be missing
	flags     string // the names of its flags
	short     string // what it does
	long      string // what else to know
	run       func(ctx context.Context, s *session) error
	local     bool // it needs no server
	anyPrefix bool // it does not matter whether programs use the prefix
}

// commands is the table of commands. Init fills it, because help reads it.
var commands []command

func init() {
	commands = []command{
		{name: "rules", run: printRules,
			short: "rules of programs, as declared and in force"},
		{name: "inspect", args: "RULE [KEY]", flags: "all shown", run: inspect,
			short: "what is in force for a key, why, and what it has used",
			long:  "With -all, the only argument is KEY, and it is shown under every rule, although a rule may have keys of another kind."},
		{name: "reset", args: "RULE [KEY]", flags: "keys shown reason", run: reset,
			short: "forget what a key has used"},
		{name: "override set", args: "RULE", flags: "key keys match shown limit factor per burst mode for forever replace force reason wait", run: setOverride,
			short: "change a rule, or some keys of it, while programs run",
			long: `RULE may be a glob such as 'shop.*'. Of several overrides for a key, the most exact one wins, field by field.
An override changes only what its flags say. It keeps what an earlier override of the same rule and key says, unless you write -replace.
Without -for and -forever it also keeps the earlier end.
Without -force, the command refuses a rule that no program uses, and a value that the rule cannot have.`},
		{name: "override clear", args: "RULE", flags: "key keys match shown force reason wait", run: clearOverride,
			short: "end an override"},
		{name: "override list", args: "[RULE]", run: listOverrides,
			short: "the overrides in force, by whom, why, until when"},
		{name: "block", args: "RULE [KEY]", flags: "keys match shown for force reason wait", run: blockKeys,
			short: "refuse a key for some time, up to 30d",
			long:  "RULE may be a glob such as 'shop.*'. Of several blocks of a key, the last end counts."},
		{name: "unblock", args: "RULE [KEY]", flags: "keys match shown force reason wait", run: unblockKeys,
			short: "end a block"},
		{name: "blocked", args: "[RULE]", run: printBlocked,
			short: "the keys that are blocked, by whom, why, until when"},
		{name: "pause", args: "RULE [KEY]", flags: "keys match shown for force reason wait", run: pauseKeys,
			short: "pause a key for some time, up to 30d: its calls wait or are refused",
			long: `Calls that may wait longer than the pause lasts wait until it ends. Others are refused.
RULE may be a glob such as 'shop.*'. Of several pauses of a key, the last end counts.`},
		{name: "resume", args: "RULE [KEY]", flags: "keys match shown force reason wait", run: resumeKeys,
			short: "end a pause"},
		{name: "paused", args: "[RULE]", run: printPaused,
			short: "the keys that are paused, by whom, why, until when"},
		{name: "give", args: "RULE [KEY]", flags: "n keys shown reason", run: give,
			short: "return permits to a key, or take some",
			long:  "A negative number takes permits from the key, even more than are left."},
		{name: "changes", args: "[RULE]", flags: "n", run: printChanges,
			short: "who changed what, when and why: the newest changes"},
		{name: "processes", run: printProcesses,
			short: "the processes of the prefix, and what is wrong with them"},
		{name: "settings export", run: exportSettings,
			short: "overrides, blocks and pauses as JSON, for settings import"},
		{name: "settings import", args: "[FILE]", flags: "force reason wait", run: importSettings, anyPrefix: true,
			short: "restore what settings export printed",
			long: `Of two settings for one rule and key, the newer wins. Without FILE, it reads the standard input. Settings that have ended are left out.
An import ends the state in which programs keep settings that the store has lost; an empty file does only that.
Without -force, the command refuses the settings of another prefix, and a file of unknown prefix for a prefix that no program uses.`},
		{name: "settings recover", flags: "reason wait", run: recoverSettings, anyPrefix: true,
			short: "restore what the store has lost and programs still know",
			long: `It asks the processes that run for the overrides, blocks and pauses that they know, prints them, and writes them to the store. Of two for
one rule and key, the newer wins. It names the processes that did not answer.`},
		{name: "top", flags: "once every filter sort", run: top,
			short: "live decisions of programs with redisstore.WithStats()",
			long:  "Press q to end it."},
		{name: "serve", flags: "listen write actor-header host", run: serve, anyPrefix: true,
			short: "show the console in a browser",
			long: `Only this machine reaches the page. For others, put a proxy with a login in front of it: name the proxy's host by -host, and the header
in which it tells the user by -actor-header.`},
		{name: "acl", flags: "all settings operator", run: printACL, anyPrefix: true,
			short: "the permissions that limiters need on the server",
			long: `It prints the permissions for the rules that limiters used within a day, and for the rules in -rules. If there are none, or with -all,
it prints the permissions for rules of all kinds.`},
		{name: "doctor", run: doctor, anyPrefix: true,
			short: "what is wrong with the server and the programs, and what to do"},
		{name: "completion", args: "[SHELL]", run: completion, local: true,
			short: "a script for completion in bash, zsh or fish",
			long:  `For bash, write source <(ratelimitctl completion bash) into ~/.bashrc.`},
		{name: "help", args: "[COMMAND] [COMMAND]", run: helpFor, local: true,
			short: "help for a command, such as ratelimitctl help override set"},
	}
}

func names() []string {
	var all []string
	for _, c := range commands {
		all = append(all, c.name)
	}
	return all
}

// subcommands returns the second words of the commands with a first word.
func subcommands(first string) (second []string) {
	for _, name := range names() {
		if rest, ok := strings.CutPrefix(name, first+" "); ok {
			second = append(second, rest)
		}
	}
	return second
}

// bounds returns how many arguments the command takes.
func (c *command) bounds() (least, most int) {
	words := strings.Fields(c.args)
	least = slices.IndexFunc(words, func(w string) bool { return w[0] == '[' })
	if least < 0 {
		least = len(words)
	}
	return least, len(words)
}

// check checks the number of arguments.
func (c *command) check(args []string) error {
	least, most := c.bounds()
	if n := len(args); n < least || n > most {
		expected := fmt.Sprint(least)
		if most > least {
			expected = fmt.Sprintf("%d to %d", least, most)
		}
		return misused(fmt.Sprintf("%s: found %s; expected %s", c.name, operate.Count(n, "argument"), expected))
	}
	return nil
}
