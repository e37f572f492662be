package readme

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
)

var (
	inline   = regexp.MustCompile("`([a-z]+(?:-[a-z]+)?=[^`\n]*)`") // arguments of a directive, or one argument without a value
	argument = regexp.MustCompile(`(?:^| )([a-z-]+)=`)
	anyLimit = regexp.MustCompile(`\blimit=N\b`) // a reader's own number
	quoted   = regexp.MustCompile(`"[^"]*"`)
)

// TestFragments checks the arguments of directives in the prose and in the tables of pages.
func TestFragments(t *testing.T) {
	limiter := ratelimit.New(memstore.New())
	checked := 0
	for _, page := range pages(t) {
		if filepath.Base(page) == "CHANGELOG.md" || strings.Contains(filepath.ToSlash(page), "testdata") {
			continue
		}
		for _, m := range inline.FindAllStringSubmatch(fence.ReplaceAllString(read(t, page), ""), -1) {
			if err := fragment(limiter, m[1]); err != nil {
				t.Errorf("%s: `%s`: %v", filepath.ToSlash(page), m[1], err)
			}
			checked++
		}
	}
	if checked < 100 {
		t.Errorf("%d fragments were found; expected more than 100", checked)
	}
}

// fragment checks a whole rule as the generator and the limiter do, and parses a part of one.
func fragment(limiter *ratelimit.Limiter, text string) error {
	words := argument.FindAllStringSubmatch(quoted.ReplaceAllString(text, ""), -1)
	for _, word := range words {
		if !slices.ContainsFunc(annotations.LookUp("rule").Args, func(a annotations.Argument) bool { return a.Name == word[1] || word[1] == "prefix" }) {
			return fmt.Errorf("%s is no argument of a rule", word[1])
		}
	}
	has := func(name string) bool {
		return slices.ContainsFunc(words, func(w []string) bool { return w[1] == name })
	}
	switch text = anyLimit.ReplaceAllString(text, "limit=7"); {
	case strings.HasSuffix(text, "=") || strings.Contains(text, "…") || has("prefix"):
		return nil // the argument itself, or a value of the reader's
	case !has("limit") || !has("per") && !has("cron") && !has("every") && !strings.Contains(text, "concurrency"):
		_, err := annotations.ParseRule(text)
		return err
	}
	_, rule, err := generator.ParseRule(text)
	if err != nil || rule.Computed {
		return err
	}
	return limiter.Check(rule)
}
