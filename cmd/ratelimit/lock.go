package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator"
	"github.com/ratelimit-go/ratelimit/internal/key"
)

// lockName is the file that records the reviewed rules of a module. It stands beside go.mod.
const lockName = "ratelimit.lock"

const lockHeader = `# Written by "go tool ratelimit -lock": the keys and limits of each rule. Commit this file.` + "\n"

// locked is a line of ratelimit.lock. The counts of the rule depend on the fields from Rule to Hash.
type locked struct {
	Rule   string `json:"rule"`
	Key    string `json:"key,omitempty"` // the template
	Tag    string `json:"tag"`
	Scope  string `json:"scope,omitempty"`
	Hash   string `json:"hash,omitempty"`
	Limit  string `json:"limit"` // a number or an expression
	Burst  string `json:"burst,omitempty"`
	Cost   string `json:"cost,omitempty"`
	When   string `json:"when,omitempty"`
	Anchor string `json:"anchor,omitempty"`
	Mode   string `json:"mode,omitempty"`

	at annotations.Message // the position of the rule or of the line, without a text
}

// effective returns the line without a burst that equals the limit, which is the default.
func (l locked) effective() locked {
	if l.Burst == l.Limit {
		l.Burst = ""
	}
	return l
}

// counts returns the line with only the fields from Rule to Hash, which its counts depend on.
func (l locked) counts() locked {
	l.Limit, l.Burst, l.Cost, l.When, l.Anchor, l.Mode, l.at = "", "", "", "", "", "", annotations.Message{}
	return l
}

// layout describes the keys of the counts in the store. A * stands for the prefix of the limiter.
func (l locked) layout() string {
	subject := l.Key
	if subject == "" {
		subject = key.Subject("")
	}
	layout := key.State("*", l.Rule, subject, l.Tag)
	if l.Scope != "" {
		layout += " of each process"
	}
	if l.Hash != "" {
		layout += " without hashing"
	}
	return layout
}

func (l locked) limits() string {
	text := l.Limit
	if l.Burst != "" {
		text += " with a burst of " + l.Burst
	}
	for _, argument := range [...][2]string{{"cost", l.Cost}, {"when", l.When}, {"anchor", l.Anchor}, {"mode", l.Mode}} {
		if argument[1] != "" {
			text += ", " + argument[0] + "=" + argument[1]
		}
	}
	return text
}

// lockOf returns the lines for rules, sorted. A rule of a type has one line.
func (c *command) lockOf(rules []generator.Rule) []locked {
	var lines []locked
	for _, r := range rules {
		l := locked{
			Rule: r.Rule, Key: r.Key, Tag: r.Tag(), Limit: r.LimitText(),
			Scope: setting(r, "scope"), Hash: setting(r, "hash"), Burst: setting(r, "burst"),
			Cost: setting(r, "cost"), When: setting(r, "when"), Anchor: setting(r, "anchor"), Mode: setting(r, "mode"),
			at: annotations.Message{File: c.relative(r.File), Span: annotations.Span{Line: r.Line, Column: 1}},
		}
		lines = append(lines, l.effective())
	}
	slices.SortStableFunc(lines, func(a, b locked) int { return strings.Compare(a.text(), b.text()) })
	return slices.CompactFunc(lines, func(a, b locked) bool { return a.text() == b.text() })
}

// setting returns the text of an argument, or "" if it has its default.
func setting(r generator.Rule, name string) string {
	if value, ok := r.Settings[name]; ok {
		return fmt.Sprint(value)
	}
	return ""
}

// text returns the line as it is written to the file.
func (l locked) text() string {
	var b strings.Builder
	_ = encode(&b, l, "") // strings always encode
	return b.String()
}

// formatLock returns the text of ratelimit.lock.
func formatLock(lines []locked) []byte {
	text := lockHeader
	for _, l := range lines {
		text += l.text()
	}
	return []byte(text)
}

// parseLock parses the text of the file name, as formatLock writes it. The line of an error counts from 1.
func parseLock(name string, text []byte) (lines []locked, line int, err error) {
	for text := range bytes.Lines(text) {
		line++
		text = bytes.TrimSpace(text)
		if len(text) == 0 || text[0] == '#' {
			continue
		}
		d := json.NewDecoder(bytes.NewReader(text))
		d.DisallowUnknownFields()
		var l locked
		if err := d.Decode(&l); err != nil || d.More() {
			return nil, line, errors.New("this line is not as ratelimit -lock writes it")
		}
		l.at = annotations.Message{File: name, Span: annotations.Span{Line: line, Column: 1}}
		lines = append(lines, l.effective())
	}
	return lines, 0, nil
}
