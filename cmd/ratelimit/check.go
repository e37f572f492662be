package main

import (
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator"
)

// printStale lists the files that are not as they should be, and where they differ.
func (c *command) printStale(files []generator.File) int {
	stale, err := generator.Check(files)
	if err != nil {
		return c.fail(err)
	}
	var messages []annotations.Message
	for _, s := range stale {
		text := "stale"
		switch {
		case s.Found == nil:
			text = "missing"
		case s.Gone:
			text = "stale, as its source is gone"
		case s.Source == nil:
			text = "stale, as its source has no directives"
		}
		name := c.relative(s.Name)
		messages = append(messages, annotations.Message{File: name, Code: "stale", Text: text + "; run: " + c.remedy()})
		if s.Found != nil && s.Source != nil && !c.json {
			fmt.Fprint(c.stdout, udiff.Unified(name, name, string(s.Found), string(s.Source)))
		}
	}
	c.print(messages)
	if len(stale) > 0 {
		return failed
	}
	return done
}

// remedy is the command that brings files up to date.
func (c *command) remedy() string {
	words := []string{"go tool ratelimit"}
	if c.config.Tags != "" {
		words = append(words, "-tags="+c.config.Tags)
	}
	return strings.Join(append(words, c.config.Patterns...), " ")
}
