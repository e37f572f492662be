package main

import (
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator"
)

// compare compares what should be with the disk. The files and the rules that differ are its error.
func (c *command) compare(result *generator.Result) error {
	if found := append(c.stale(result.Files), c.checkLocks(result.Rules)...); len(found) > 0 {
		return generator.Errors(found)
	}
	return nil
}

// stale returns the files that are not as they should be or cannot be read, and prints where they differ.
func (c *command) stale(files []generator.File) (messages []annotations.Message) {
	stale, err := generator.Check(files)
	for _, s := range stale {
		text := "stale"
		switch {
		case s.Found == nil:
			text = "missing"
		case s.Gone:
			text = "stale, as its source is gone"
		case s.Source == nil:
			text = "stale, as nothing is generated from its source"
		}
		name := c.relative(s.Name)
		messages = append(messages, annotations.Message{File: name, Code: "stale", Text: text + "; run: " + c.remedy()})
		if s.Found != nil && s.Source != nil && !c.json {
			fmt.Fprint(c.stdout, udiff.Unified(name, name, string(s.Found), string(s.Source)))
		}
	}
	return append(messages, c.told(err)...)
}

// remedy is the command that brings files up to date.
func (c *command) remedy() string {
	words := []string{"go tool ratelimit"}
	if c.config.Tags != "" {
		words = append(words, "-tags="+c.config.Tags)
	}
	return strings.Join(append(words, c.config.Patterns...), " ")
}
