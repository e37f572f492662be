// Package lua has the script that decides calls on Redis. It also encodes the script's arguments and decodes its replies. Each algorithm of
// package engine has a file of the same name here, and functions that do the same have the same name. The package itself sends nothing.
package lua

import (
	"cmp"
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ratelimit-go/ratelimit/internal/engine"
)

//go:embed *.lua
var texts embed.FS

// files returns the Lua files in the order in which they build on each other.
func files() []string {
	names := []string{"common", "clock", "states"}
	for _, kind := range engine.Kinds() {
		if name := kind.Row().Lua; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return append(names, "claims", "places", "lease", "block", "pause", "reply", "decide", "run")
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

// join returns the text of all files. If clock is not "", it replaces the file clock.lua.
func join(clock string) string {
	var text, modules strings.Builder
	known := shared()
	for _, name := range files() {
		switch file := mustRead(name); {
		case name == "run":
			fmt.Fprintf(&text, "function use(name)\nif used[name] then return used[name] end\n%send\n%s\n", modules.String(), known.inline(file))
		case name == "clock" && clock != "":
			fmt.Fprintf(&text, "%s\n", clock)
		case isModule(name):
			fmt.Fprintf(&modules, "if name == '%s' then\n%s\nend\n", name, module(name, file, maps.Clone(known)))
		default:
			fmt.Fprintf(&text, "%s\n", known.inline(file))
		}
	}
	return text.String()
}

// shared returns the constants of package engine and of codec.go, the names of the kinds of rules, and two expressions about the kind in the variable
// kind: FILE_OF_KIND finds its file, and OWN_TEXT whether its claims have own texts. A table of them would be made for each claim.
func shared() constants {
	known, files, own := constants{}, []string(nil), []string(nil)
	for _, table := range []map[string]int64{engine.Constants, numbers} {
		for name, value := range table {
			known[name] = strconv.FormatInt(value, 10)
		}
	}
	for _, kind := range engine.Kinds() {
		known[strings.ToUpper(strings.ReplaceAll(kind.String(), "-", "_"))] = strconv.Itoa(int(kind))
		files = append(files, fmt.Sprintf("kind == %d and '%s'", kind, kind.Row().Lua))
		if kind.Row().OwnText {
			own = append(own, fmt.Sprintf("kind == %d", kind))
		}
	}
	known["FILE_OF_KIND"], known["OWN_TEXT"] = strings.Join(files, " or "), strings.Join(own, " or ")
	return known
}

// isModule reports whether a file defines a table of its own name. All modules are in the function use.
func isModule(name string) bool {
	return name != "common" && name != "clock" && name != "claims" && name != "run"
}

// nextPart is the line between the parts of a module.
const nextPart = "-- What follows is made when a call first uses it.\n"

// module returns Lua code that runs the first part of the file of a module, and returns the module's table.
func module(name, file string, known constants) string {
	return fmt.Sprintf("%sused.%s = %[2]s\nreturn %[2]s", parts(name, file, known), name)
}

// parts returns the Lua code of a file. Each part after the first becomes a function at the end of the part before it.
func parts(name, file string, known constants) string {
	first, others, divided := strings.Cut(file, nextPart)
	text := known.inline(first)
	if divided {
		text += fmt.Sprintf("function %s.make_others()\n%s\nend\n", name, parts(name, others, known))
	}
	return text
}

// constants has the values of constants by their names, which are in capitals. The values replace the names, since a function takes longer to
// make the more names it uses from outside.
type constants map[string]string

// inline replaces constants by their values. It adds the numbers and texts that lines define as constants, and empties these lines and comments.
func (c constants) inline(file string) string {
	var text strings.Builder
	for line := range strings.Lines(file) {
		if !c.define(line) && !strings.HasPrefix(strings.TrimLeft(line, " "), "--") {
			text.WriteString(c.replace(strings.TrimSuffix(line, "\n")))
		}
		text.WriteByte('\n')
	}
	return text.String()
}

// define adds the constants that a line defines, and reports whether there are any.
func (c constants) define(line string) bool {
	names, values, defines := strings.Cut(line, " = ")
	names, local := strings.CutPrefix(names, "local ")
	if !defines || !local || names != strings.ToUpper(names) || strings.Contains(values, "{") {
		return false
	}
	values, _, _ = strings.Cut(strings.TrimSpace(values), " -- ")
	list := strings.Split(values, ", ")
	for i, name := range strings.Split(names, ", ") {
		c[name] = "(" + c.replace(list[i]) + ")"
	}
	return true
}

// replace replaces the constants in a line by their values.
func (c constants) replace(line string) string {
	var text strings.Builder
	for line != "" {
		other := strings.IndexFunc(line, isCapital)
		if other < 0 {
			other = len(line)
		}
		rest := strings.TrimLeftFunc(line[other:], isCapital)
		name := line[other : len(line)-len(rest)]
		text.WriteString(line[:other])
		text.WriteString(cmp.Or(c[name], name))
		line = rest
	}
	return text.String()
}

func isCapital(r rune) bool { return r == '_' || 'A' <= r && r <= 'Z' }

func hash(text string) string {
	sum := sha1.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}
