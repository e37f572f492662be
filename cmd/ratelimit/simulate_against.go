package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ratelimit-go/ratelimit/generator"
	"github.com/ratelimit-go/ratelimit/internal/rulelist"
	"github.com/ratelimit-go/ratelimit/internal/simulate"
)

// runAgainst compares what the rules decide with what the rules of another commit decide.
func (s *simulation) runAgainst(ctx context.Context) error {
	before, err := readRows(s.against)
	if err != nil {
		return err
	}
	now, err := s.rows(ctx)
	if err != nil {
		return err
	}
	if before, now, err = s.bothSides(before, now); err != nil {
		return err
	}
	was, err := comparedRules(s.against, before)
	if err != nil {
		return err
	}
	is, err := comparedRules(s.file, now)
	if err != nil {
		return err
	}
	calls, err := s.openCalls()
	if err != nil {
		return err
	}
	defer calls.Close()
	result, err := simulate.Compare(ctx, was, is, calls)
	if err != nil {
		return fmt.Errorf("%s: %w", strings.TrimPrefix(calls.Text, "csv:"), err)
	}
	return s.reportAgainst(result)
}

// bothSides returns the rows that -method and -rule choose.
func (s *simulation) bothSides(before, now []rulelist.Row) ([]rulelist.Row, []rulelist.Row, error) {
	before, now = s.withNames(before), s.withNames(now)
	if s.method == "" {
		if len(before)+len(now) == 0 {
			return nil, nil, errors.New("found no rules")
		}
		return before, now, nil
	}
	method, err := s.choose(slices.Concat(before, now))
	other := func(r rulelist.Row) bool { return r.Method != method }
	return slices.DeleteFunc(before, other), slices.DeleteFunc(now, other), err
}

// comparedRules returns the rules of rows. The errors say from which file the rows are.
func comparedRules(from string, rows []rulelist.Row) (rules []simulate.Rule, err error) {
	for _, row := range rows {
		text := row.Directive()
		directive, rule, err := generator.ParseRule(text)
		if err != nil {
			return nil, fmt.Errorf("%s: the rule %q of %q: %w", from, text, row.Method, err)
		}
		rule.Name = row.Rule
		r := simulate.Rule{
			Rule: rule, Text: text, Method: row.Method, Cost: directive.Cost.Int,
			CostExpr: directive.Cost.Expr.Value, LimitExpr: directive.Limit.Expr.Value, WhenExpr: directive.When.Value,
			AnchorExpr: directive.Anchor.Value,
		}
		if rule.Every != "" {
			r.AnchorExpr = cmp.Or(r.AnchorExpr, "anchor")
		}
		r.Ignored = slices.DeleteFunc(ignored(&directive), func(name string) bool { return name == "cost=" || name == "when=" || name == "anchor=" })
		rules = append(rules, r)
	}
	return rules, nil
}

// openCalls returns the calls that the flags ask for.
func (s *simulation) openCalls() (*simulate.Calls, error) {
	if file, ok := strings.CutPrefix(s.load, "csv:"); ok {
		return simulate.OpenCalls(file, s.span)
	}
	load, err := s.newLoad()
	if err != nil {
		return nil, err
	}
	return load.Stream(), nil
}

// reportAgainst prints a comparison. With -check it returns an error if the comparison does not pass.
func (s *simulation) reportAgainst(result *simulate.Comparison) (err error) {
	if s.json {
		err = encode(s.stdout, result, "\t")
	} else {
		err = result.PrintTable(s.stdout)
	}
	if err == nil && s.check && !result.Passes() {
		return generator.Errors{} // it is printed
	}
	return err
}
