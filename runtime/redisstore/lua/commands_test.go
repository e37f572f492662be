package lua

import (
	"regexp"
	"slices"
	"testing"

	"github.com/ratelimit-go/ratelimit/internal/engine"
)

// The table of commands names exactly those that the script runs.
func TestEachCommandIsNamed(t *testing.T) {
	var rules []*engine.Rule
	for _, kind := range engine.Kinds() {
		rules = append(rules, &engine.Rule{Kind: kind})
	}
	named := Commands(rules...)
	if runs := found(`call\('([A-Z]+)'`, body); !slices.Equal(named, runs) {
		t.Errorf("the table names %q; the script runs %q", named, runs)
	}
}

// found returns the words in a text that match a pattern, in alphabetical order.
func found(pattern, text string) (words []string) {
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		words = append(words, m[1])
	}
	slices.Sort(words)
	return slices.Compact(words)
}

// The row of each file names the commands that it runs, itself or through functions of common.lua. They must be complete, because rules
// of that file may be the only ones in use.
func TestEachKindNamesItsCommands(t *testing.T) {
	shared := map[string]string{"set": "SET", "write_groups": "SET", "expire": "PEXPIREAT"}
	for _, kind := range engine.Kinds() {
		if commandsOf[kind.Row().Lua] == "" {
			t.Errorf("commandsOf lacks a row for %s, the file of %s", kind.Row().Lua, kind)
		}
		file := mustRead(kind.Row().Lua)
		runs := found(`call\('([A-Z]+)'`, file)
		for _, function := range found(`\b(set|write_groups|expire)\(`, file) {
			runs = append(runs, shared[function])
		}
		for _, command := range runs {
			if !slices.Contains(Commands(&engine.Rule{Kind: kind}), command) {
				t.Errorf("the Commands of %s lack %s, which %s.lua runs", kind, command, kind.Row().Lua)
			}
		}
	}
}
