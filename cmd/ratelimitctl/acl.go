package main

import (
	"context"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/lua"
)

// Permissions of a limiter, beside those of its script.
var (
	always     = []string{"EVAL", "EVALSHA", "HSCAN"}
	sharded    = []string{"CLUSTER|SLOTS"}
	scriptless = []string{
		"BITFIELD", "BITFIELD_RO", "DEL", "EXEC", "HSCAN", "MULTI", "PEXPIRETIME", "SET", "STRLEN", "TIME", "UNWATCH", "WATCH",
	}
	writing = []string{"HDEL", "HSET", "HSETNX", "PEXPIRE"} // by the limiter itself, beside decisions
	faster  = []string{"FCALL", "FUNCTION|LOAD"}
)

// required are the commands without which a limiter does not decide.
func (t *tool) required() []string {
	commands := append(lua.Commands(), always...)
	if t.isCluster() {
		commands = append(commands, sharded...)
	}
	slices.Sort(commands)
	return commands
}

func (t *tool) isCluster() bool {
	_, is := t.client.(*redis.ClusterClient)
	return is
}

// printACL prints the commands for rules of all kinds, so that a new rule needs no new permission.
func (t *tool) printACL(context.Context, []string, options) error {
	faster, lines := faster, [][]string{{t.setUser(t.required())}}
	if t.isCluster() {
		faster = append(slices.Clone(faster), "COMMAND")
		lines = append(lines, []string{"# do so on every server of the cluster"})
	}
	lines = append(lines,
		[]string{"# for overrides, blocks, and to be seen by ratelimitctl rules and top, also:" + permitted(writing)},
		[]string{"# for faster decisions also:" + permitted(faster)},
		[]string{"# to log a warning if the server removes counts, also: +info"},
		[]string{"# for package redisstore/plain, which uses no scripts, instead:"},
		[]string{"# " + t.setUser(scriptless)},
	)
	return t.print(map[string][]string{
		"required": t.required(), "writing": writing, "faster": faster, "warning": {"INFO"}, "plain": scriptless,
	}, lines...)
}

// setUser is the command that makes a user who may run some commands on keys of the prefix.
func (t *tool) setUser(commands []string) string {
	return "ACL SETUSER ratelimit on >PASSWORD resetkeys resetchannels ~" + pattern(key.Escape(t.prefix)) + ":* -@all" + permitted(commands)
}

func permitted(commands []string) (text string) {
	for _, c := range commands {
		text += " +" + strings.ToLower(c)
	}
	return text
}

// pattern returns the pattern of Redis that matches a text. A space cannot stand in a permission.
func pattern(text string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, ` `, `?`).Replace(text)
}
