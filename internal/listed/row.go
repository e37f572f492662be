// Package listed holds rules as "ratelimit -list -json" prints them: one program writes them, others read them.
package listed

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/internal/fields"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// Row is a rule.
type Row struct {
	File      string `json:"file"`
	Line      int    `json:"line"`
	Method    string `json:"method"`
	Rule      string `json:"rule"`
	Key       string `json:"key"`
	Limit     *int64 `json:"limit,omitempty"`
	LimitExpr string `json:"limitExpr,omitempty"` // in place of a number
	Window    string `json:"window"`
	Algorithm string `json:"algorithm"`
	// Settings are the other arguments that are not what they are by default.
	Settings   map[string]any `json:"settings,omitempty"`
	Boundaries []string       `json:"boundaries,omitempty"` // of a calendar
}

// Decode reads rows.
func Decode(in io.Reader) (rows []Row, err error) {
	d := json.NewDecoder(in)
	d.UseNumber()
	err = d.Decode(&rows)
	return rows, err
}

// bare is what a directive says without quotes.
var bare = regexp.MustCompile(`^[\w./+-]+$`)

// Argument returns an argument as it stands in a directive. The value of a flag is true.
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

// Directive returns the arguments of a rule directive that says the same, but for the name.
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
		add("cron", r.Window)
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

// LimitText is the limit, which may be an expression.
func (r Row) LimitText() string {
	if r.Limit != nil {
		return strconv.FormatInt(*r.Limit, 10)
	}
	return r.LimitExpr
}

// AsRule returns the rule as a program has it. A limit that each call brings along is 1.
func (r Row) AsRule() (ratelimit.Rule, error) {
	directive, err := annotations.ParseRule(r.Directive())
	if err != nil {
		return ratelimit.Rule{}, err
	}
	rule := fields.Of(directive)
	rule.Name = r.Rule
	return rule, rule.Validate()
}
