package main

import (
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator"
)

// compare compares the result with the files on the disk. The error lists the files and the rules that differ.
func (c *command) compare(result *generator.Result) error {
	if found := append(c.stale(result.Files), c.checkLocks(result.Rules)...); len(found) > 0 {
		return generator.Errors(found)
	}
	return nil
}

// stale returns a message for each file that is stale or cannot be read, and prints a diff of each stale file.
func (c *command) stale(files []generator.File) (messages []annotations.Message) {
	stale, err := generator.Check(files)
	for _, s := range stale {
		text := "stale"
		switch {
		case s.Found == nil:
			text = "missing"
		case s.Gone:
			text = "stale, because its source file is gone"
		case s.Source == nil:
			text = "stale, because nothing is generated from its source file"
		}
		name := c.relative(s.Name)
		messages = append(messages, annotations.Message{File: name, Code: "stale", Text: text + "; run: " + c.remedy()})
		if s.Found != nil && s.Source != nil && !c.json {
			_, _ = c.stdout.Write(diff.Diff(name, s.Found, name, s.Source))
		}
	}
	return append(messages, c.told(err)...)
}

// remedy returns the command that updates the files.
func (c *command) remedy() string {
	words := []string{"go tool ratelimit"}
	if c.config.Tags != "" {
		words = append(words, "-tags="+c.config.Tags)
	}
	return strings.Join(append(words, c.config.Patterns...), " ")
}
