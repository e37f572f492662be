package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/period"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// listedRule is a rule as "ratelimit -list -json" prints it.
type listedRule struct {
	Method    string `json:"method"`
	Rule      string `json:"rule"`
	Key       string `json:"key"`
	Limit     *int64 `json:"limit"`
	Window    string `json:"window"`
	Algorithm string `json:"algorithm"`
	Settings  struct {
		TZ       string `json:"tz"`
		Burst    int64  `json:"burst"`
		Slices   int64  `json:"slices"`
		Prepay   bool   `json:"prepay"`
		Warmup   string `json:"warmup"`
		Distinct string `json:"distinct"`
		Block    string `json:"block"`
		Mode     string `json:"mode"`
		Scope    string `json:"scope"`
		Hash     string `json:"hash"`
	} `json:"settings"`
}

// readListed returns the rules of a file, but for those that are counted in each process. Limits that calls bring along are 1.
func readListed(path string) ([]ratelimit.UsedRule, error) {
	text, err := os.ReadFile(path)
	if wrong, ok := errors.AsType[*fs.PathError](err); ok {
		return nil, misused(fmt.Sprintf("-rules: %s: %v", path, wrong.Err))
	}
	var rows []listedRule
	if err := json.Unmarshal(text, &rows); err != nil {
		return nil, misused(fmt.Sprintf("-rules: %s: %v; expected the output of ratelimit -list -json", path, err))
	}
	var methods []string
	byMethod, varies := map[string][]ratelimit.Rule{}, map[string]bool{}
	for i := range rows {
		row := &rows[i]
		rule, err := row.rule()
		if err == nil {
			err = rule.Validate()
		}
		if err != nil {
			return nil, misused(fmt.Sprintf("-rules: %s: rule %s: %v", path, row.Rule, err))
		}
		if byMethod[row.Method] == nil {
			methods = append(methods, row.Method)
		}
		byMethod[row.Method] = append(byMethod[row.Method], rule)
		varies[row.Rule] = varies[row.Rule] || row.Limit == nil
	}
	var prepared []*wrap.Rules
	for _, method := range methods {
		prepared = append(prepared, wrap.NewRules(method, byMethod[method]...))
	}
	var listed []ratelimit.UsedRule
	for _, rule := range wrap.RulesOf(prepared...) {
		if rule.Scope == ratelimit.ScopeFleet {
			listed = append(listed, ratelimit.UsedRule{Rule: rule, Varies: varies[rule.Name]})
		}
	}
	return listed, nil
}

// rule returns the rule as a program has it.
func (row *listedRule) rule() (r ratelimit.Rule, err error) {
	s := &row.Settings
	r = ratelimit.Rule{
		Name: row.Rule, Key: row.Key, Limit: 1, TZ: s.TZ, Burst: s.Burst, Slices: s.Slices, Prepay: s.Prepay, Distinct: s.Distinct,
	}
	if row.Limit != nil {
		r.Limit = *row.Limit
	}
	if s.Hash == ratelimit.HashNever.String() {
		r.Hash = ratelimit.HashNever
	}
	if s.Scope == ratelimit.ScopeInstance.String() {
		r.Scope = ratelimit.ScopeInstance
	}
	if r.Algorithm, err = wordOf("algorithm", row.Algorithm, ratelimit.Algorithms()); err != nil {
		return r, err
	}
	if s.Mode != "" {
		if r.Mode, err = wordOf("mode", s.Mode, []ratelimit.Mode{ratelimit.ModeEnforce, ratelimit.ModeShadow, ratelimit.ModeTrigger}); err != nil {
			return r, err
		}
	}
	window := row.Window
	if r.Algorithm == ratelimit.Calendar {
		r.Cron, window = window, ""
	}
	for _, field := range []struct {
		d    *time.Duration
		text string
	}{{&r.Per, window}, {&r.Warmup, s.Warmup}, {&r.Block, s.Block}} {
		if field.text == "" {
			continue
		}
		if *field.d, _, err = period.Parse("duration", field.text); err != nil {
			return r, err
		}
	}
	return r, nil
}

// wordOf returns which of the values has a text.
func wordOf[T fmt.Stringer](what, text string, values []T) (T, error) {
	i := slices.IndexFunc(values, func(v T) bool { return v.String() == text })
	if i < 0 {
		return *new(T), fmt.Errorf("unknown %s %q", what, text)
	}
	return values[i], nil
}
