package main

import (
	"bytes"
	"os"
	"testing"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
)

// TestMain runs the example itself if a process of the example has started this binary.
func TestMain(m *testing.M) {
	if os.Getenv(modelVariable) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

const story = `RULE          KEY           MODEL SAW  COUNTED
org-input     acme                126      126
org-output    acme                108      108
team-output   acme/search          81       81
team-output   acme/maps            27       27
user-requests ann                   9        9
user-requests bob                   9        9
user-requests cleo                  9        9
user-output   ann                  45       45
user-output   bob                  36       36
user-output   cleo                 27       27
Ann asks for 11000 tokens more: refused by team-output: 11000 per hour (sliding-window) for "acme/search"
Bob reads 10500 tokens of a story of 20000, in steps of 500: refused by team-output: 11000 per hour (sliding-window) for "acme/search"
`

// What the model has seen is what is counted, to the token, also by three processes at the same time.
// A story ends before its team is beyond its budget.
func TestStory(t *testing.T) {
	for name, url := range map[string]string{"memory": "", "three processes": "redis://" + redistest.Start(t).Addr + "?read_timeout=1m"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("REDIS_URL", url)
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
