// Package rulelist is how a rule looks as JSON: in the output of "ratelimit -list -json", which other commands read, and of ratelimitctl.
package rulelist

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/internal/fields"
	"github.com/ratelimit-go/ratelimit/internal/period"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// Row is a rule.
type Row struct {
	File      string `json:"file,omitempty"` // where it stands in the source, if that is known
	Line      int    `json:"line,omitempty"`
	Method    string `json:"method,omitempty"`
	Rule      string `json:"rule"`
	Key       string `json:"key"`
	Limit     *int64 `json:"limit,omitempty"`
	LimitExpr string `json:"limitExpr,omitempty"` // the limit if each call computes it
	Window    string `json:"window"`
	Algorithm string `json:"algorithm"`
	// Settings are the other arguments that differ from their defaults.
	Settings   map[string]any `json:"settings,omitempty"`
	Boundaries []string       `json:"boundaries,omitempty"` // the next ends of calendar windows
}

const want = "expected the output of ratelimit -list -json"

// Decode reads rows, which are one list. The text may begin with a byte order mark.
func Decode(text []byte) (rows []Row, err error) {
	d := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(text, []byte("\ufeff"))))
	d.UseNumber()
	if err := d.Decode(&rows); err != nil {
		return nil, fmt.Errorf("%s: %w", want, err)
	}
	if rows == nil {
		return nil, errors.New("found null; " + want)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("found text after the list; write one list, of all packages")
	}
	return rows, nil
}

// bare matches a value that needs no quotes in a directive.
var bare = regexp.MustCompile(`^[\w./+-]+$`)

// Argument returns an argument as text of a directive. The value of a flag is true.
func Argument(name string, value any) string {
	if value == true {
		return name
	}
	text := fmt.Sprint(value)
	if !bare.MatchString(text) {
		text = strconv.Quote(text)
	}
	return name + "=" + text
}

// Directive returns the arguments of a rule directive for this row, without the name.
func (r Row) Directive() string {
	var words []string
	add := func(name string, value any) {
		if value != "" {
			words = append(words, Argument(name, value))
		}
	}
	add("key", r.Key)
	add("limit", r.LimitText())
	switch r.Algorithm {
	case "calendar":
		if _, err := period.ParseEvery(r.Window); err == nil {
			add("every", r.Window)
		} else {
			add("cron", r.Window)
		}
	case "sliding-window":
		add("per", r.Window)
	default:
		add("per", r.Window)
		add("algorithm", r.Algorithm)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Settings)) {
		add(name, r.Settings[name])
	}
	return strings.Join(words, " ")
}

// LimitText returns the limit as a number or as an expression.
func (r Row) LimitText() string {
	if r.Limit != nil {
		return strconv.FormatInt(*r.Limit, 10)
	}
	return r.LimitExpr
}

// AsRule returns the row as a rule of a program. If the limit is an expression, the rule has Computed.
func (r Row) AsRule() (ratelimit.Rule, error) {
	directive, err := annotations.ParseRule(r.Directive())
	if err != nil {
		return ratelimit.Rule{}, err
	}
	rule := fields.Of(directive)
	rule.Name = r.Rule
	return rule, rule.Validate()
}
