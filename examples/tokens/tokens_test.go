package main

import (
	"bytes"
	"testing"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
)

const story = `refused by team-output: 11000 per minute (sliding-window) for "acme/search"
the model has seen 15 tokens of input and 15 of output
org-input has counted 15
org-output has counted 15
team-output has counted 15
user-requests has counted 3
user-output has counted 15
`

// What the model has seen is what is counted, to the token.
func TestStory(t *testing.T) {
	for name, url := range map[string]string{"memory": "", "redis": "redis://" + redistest.Start(t).Addr} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := run(&out, url); err != nil {
				t.Fatal(err)
			}
			if out.String() != story {
				t.Errorf("printed\n%s, want\n%s", out.String(), story)
			}
		})
	}
}
