package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator"
	"github.com/ratelimit-go/ratelimit/internal/rulelist"
	"github.com/ratelimit-go/ratelimit/internal/simulate"
)

// ruleSets returns the set of rules to simulate, and a second set if there are rules to compare with.
func (s *simulation) ruleSets(ctx context.Context) (sets [][]simulate.Rule, err error) {
	texts := s.rules
	if len(texts) == 0 {
		if texts, err = s.listedRules(ctx); err != nil {
			return nil, err
		}
	}
	for _, texts := range [][]string{texts, s.compared} {
		var rules []simulate.Rule
		for _, text := range texts {
			rule, err := simulated(text)
			if errors.Is(err, errLimit) {
				err = fmt.Errorf("%w; write %s", err, withNumbers(texts))
			}
			if err != nil {
				return nil, usageErrorf("the rule %q: %w", text, err)
			}
			rules = append(rules, rule)
		}
		if rules != nil {
			sets = append(sets, rules)
		}
	}
	return sets, nil
}

// simulated reads a rule. It returns an error if the limit is an expression, whose values are not in the load.
func simulated(text string) (simulate.Rule, error) {
	directive, rule, err := generator.ParseRule(text)
	switch {
	case err != nil:
		return simulate.Rule{}, err
	case !directive.Limit.Expr.IsZero():
		return simulate.Rule{}, errLimit
	}
	return simulate.Rule{Rule: rule, Text: text, Cost: directive.Cost.Int, Ignored: ignored(&directive)}, nil
}

var errLimit = errors.New("the limit is an expression, whose values are not in the load")

var limitArgument = regexp.MustCompile("(^| )limit=(\"(?:[^\"\\\\]|\\\\.)*\"|`[^`]*`|[^ ]+)")

// withNumbers returns the rules as flags, with a number in place of each limit that is an expression.
func withNumbers(texts []string) string {
	var flags []string
	for _, text := range texts {
		if _, err := simulated(text); errors.Is(err, errLimit) {
			text = limitArgument.ReplaceAllString(text, "${1}limit=100")
		}
		flags = append(flags, "-rule '"+strings.ReplaceAll(text, "'", `'\''`)+"'")
	}
	return strings.Join(flags, " ") + ", or another number"
}

// ignored returns the arguments with expressions that only a program can compute.
func ignored(directive *annotations.Rule) []string {
	var names []string
	for name, e := range map[string]annotations.Expr{
		"cost=": directive.Cost.Expr, "when=": directive.When, "settle=": directive.Settle, "pause=": directive.Pause, "anchor=": directive.Anchor,
	} {
		if !e.IsZero() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// listedRules returns the rules of one method as arguments of directives. They come from a file or from packages.
func (s *simulation) listedRules(ctx context.Context) ([]string, error) {
	rows, err := s.rows(ctx)
	if err != nil {
		return nil, err
	}
	rows = s.withNames(rows)
	method, err := s.choose(rows)
	if err != nil {
		return nil, err
	}
	var texts []string
	for _, r := range rows {
		if r.Method == method {
			texts = append(texts, r.Directive())
		}
	}
	return texts, nil
}

// withNames returns the rows of the rules that -rule names, or all rows if it names none.
func (s *simulation) withNames(rows []rulelist.Row) []rulelist.Row {
	if len(s.named) == 0 {
		return rows
	}
	return slices.DeleteFunc(rows, func(r rulelist.Row) bool { return !slices.Contains(s.named, r.Rule) })
}

func (s *simulation) rows(ctx context.Context) ([]rulelist.Row, error) {
	if s.file != "" {
		return readRows(s.file)
	}
	result, err := generator.Generate(ctx, s.config)
	if err != nil {
		return nil, err
	}
	return s.command.rows(result.Rules, time.Time{}), nil
}

// readRows reads the output of ratelimit -list -json.
func readRows(name string) ([]rulelist.Row, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	rows, err := rulelist.Decode(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return rows, nil
}

// choose returns the method whose rules to simulate.
func (s *simulation) choose(rows []rulelist.Row) (string, error) {
	var methods, meant []string
	for _, r := range rows {
		if !slices.Contains(methods, r.Method) {
			methods = append(methods, r.Method)
		}
	}
	for _, m := range methods {
		if s.method == "" || m == s.method || strings.HasSuffix(m, "."+s.method) {
			meant = append(meant, m)
		}
	}
	switch {
	case len(methods) == 0 && len(s.named) > 0:
		return "", usageErrorf("found no rule with the name %s", strings.Join(s.named, " or "))
	case len(methods) == 0:
		return "", errors.New("found no rules")
	case len(meant) == 1:
		return meant[0], nil
	case len(meant) == 0:
		return "", usageErrorf("-method is %q; expected %s", s.method, strings.Join(methods, ", "))
	}
	return "", usageErrorf("choose one method with -method: %s", strings.Join(meant, ", "))
}
