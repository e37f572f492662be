package readme

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// onRedis matches the beginning of the construction of a limiter on Redis, in a comment, too.
var onRedis = regexp.MustCompile(`(?s)ratelimit\.New\(\s*(redisstore|plain)\.New\(.{0,300}`)

// TestExamplesHavePrefixes expects a prefix wherever a page or an example makes a limiter on Redis: programs without one share counts.
func TestExamplesHavePrefixes(t *testing.T) {
	check := func(path string) {
		for _, made := range onRedis.FindAllString(read(t, path), -1) {
			if !strings.Contains(made, "WithPrefix(") {
				t.Errorf("%s: add ratelimit.WithPrefix to %.100q", path, made)
			}
		}
	}
	for _, page := range pages(t) {
		check(page)
	}
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		slash := filepath.ToSlash(path)
		switch {
		case err != nil || !strings.HasSuffix(slash, ".go"):
		case strings.HasPrefix(d.Name(), "example_"):
			check(path)
		case strings.Contains(slash, "/examples/") && !strings.HasSuffix(slash, "_test.go"):
			if check(path); strings.Contains(read(t, path), "redisstore.New(") && !strings.Contains(read(t, path), "WithPrefix(") {
				t.Errorf("%s: add ratelimit.WithPrefix", path)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
