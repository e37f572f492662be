package main

import (
	"fmt"

	"github.com/aymanbagabas/go-udiff"

	"github.com/ratelimit-go/ratelimit/generator"
)

// printStale lists the files that are not as they should be, and where they differ.
func (c *command) printStale(files []generator.File) int {
	stale, err := generator.Check(files)
	if err != nil {
		return c.fail(err)
	}
	for _, s := range stale {
		name := c.relative(s.Name)
		switch {
		case s.Found == nil:
			fmt.Fprintf(c.stderr, "%s: missing; run ratelimit\n", name)
		case s.Gone:
			fmt.Fprintf(c.stderr, "%s: stale, as its source is gone; run ratelimit, which removes it\n", name)
		case s.Source == nil:
			fmt.Fprintf(c.stderr, "%s: stale, as its source has no directives; run ratelimit, which removes it\n", name)
		default:
			fmt.Fprintf(c.stderr, "%s: stale; run ratelimit\n", name)
			fmt.Fprint(c.stdout, udiff.Unified(name, name, string(s.Found), string(s.Source)))
		}
	}
	if len(stale) > 0 {
		return failed
	}
	return done
}
