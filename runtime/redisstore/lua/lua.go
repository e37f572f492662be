// Package lua has the script that decides calls on Redis. It also encodes the script's arguments and decodes its replies. Each algorithm of
// package engine has a file of the same name here, and functions that do the same have the same name. The package itself sends nothing.
package lua

import (
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
)

//go:embed *.lua
var texts embed.FS

// files returns the Lua files in the order in which they build on each other.
func files() []string {
	names := []string{"common", "clock"}
	for _, name := range filesOfKinds() {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return append(names, "claims", "places", "lease", "block", "pause", "decide", "run")
}

// filesOfKinds returns the name of the Lua file of each kind, in the order of the kinds.
func filesOfKinds() (names []string) {
	for _, kind := range engine.Kinds() {
		names = append(names, kind.Row().Lua)
	}
	return names
}

// body is the text of all files. It defines the function run.
var body = join("")

// Script is the text for EVAL. SHA is its hash for EVALSHA.
var (
	Script = body + "return run(KEYS, ARGV)\n"
	SHA    = hash(Script)
)

// Function is the name of the function that decides a run, and Library the text that defines it. The name contains a hash of the text, because
// programs of two versions may use one server.
var (
	Function = "ratelimit_" + hash(body)[:16]
	Library  = "#!lua name=" + Function + "\n" + body + "redis.register_function('" + Function + "', run)\n"
)

func mustRead(name string) string {
	file, err := texts.ReadFile(name + ".lua")
	if err != nil {
		panic(err) // cannot happen: the files are embedded in the program
	}
	return string(file)
}

// Commands returns the Redis commands that the script runs for the rules, in alphabetical order. Reset also uses DEL.
func Commands(rules ...*engine.Rule) []string {
	names := []string{"DEL", "TIME"}
	for _, r := range rules {
		names = append(names, strings.Fields(r.Kind.Row().Commands)...)
		if r.Block > 0 || r.Pausable {
			names = append(names, "GET", "SET")
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// join returns the text of all files. If clock is not "", it replaces the file clock.lua.
func join(clock string) string {
	var text, modules strings.Builder
	text.WriteString(kinds())
	for _, name := range files() {
		file := mustRead(name)
		switch {
		case name == "run":
			fmt.Fprintf(&text, "function define(name)\n%send\n%s\n", modules.String(), file)
		case name == "clock" && clock != "":
			fmt.Fprintf(&text, "%s\n", clock)
		case isModule(name):
			fmt.Fprintf(&modules, "if name == '%s' then\n%s\nreturn %[1]s\nend\n", name, file)
		default:
			fmt.Fprintf(&text, "%s\n", file)
		}
	}
	return text.String()
}

// kinds returns Lua code that defines the names of the kinds of rules as their numbers, and the list of their files.
func kinds() string {
	var text strings.Builder
	for _, kind := range engine.Kinds() {
		fmt.Fprintf(&text, "local %s = %d\n", strings.ToUpper(strings.ReplaceAll(kind.String(), "-", "_")), kind)
	}
	fmt.Fprintf(&text, "local KINDS = { '%s' }\n", strings.Join(filesOfKinds(), "', '"))
	return text.String()
}

// isModule reports whether a file defines a table of its own name. Such a file is run when the module is first used, because EVALSHA creates all
// functions again in each run. All of them are in one function, define: Lua takes longer for a function the more names it uses from outside.
func isModule(name string) bool {
	return name != "common" && name != "clock" && name != "claims" && name != "run"
}

func hash(text string) string {
	sum := sha1.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}
