package stats

import (
	"encoding/json"
	"fmt"
	"time"
)

// MaxRules is the largest number of rules in a report.
const MaxRules = 100

// Report counts the decisions that one process made in a span of time.
type Report struct {
	Seconds float64 `json:"seconds"`
	Rules   []Rule  `json:"rules"`
}

// Rule counts the decisions of one rule. Name and Tag are parts of its keys.
type Rule struct {
	Name string `json:"name"`
	Tag  string `json:"tag"`
	Counts
	Subjects []Subject `json:"subjects"`
}

// Subject counts the decisions for one subject. Its name has the form that keys use.
type Subject struct {
	Name string `json:"subject"`
	Counts
}

// Each process publishes its report under a key of its own. A sorted set lists the processes by the times of their last reports, in
// milliseconds.
const (
	Every    = 5 * time.Second  // the time between two reports of a process
	Life     = 30 * time.Second // the expiry of a report that no other replaces
	Unlisted = 10 * time.Minute // the time after which a process without reports is removed from the list
)

// List returns the key of the list of processes.
func List(prefix string) string { return prefix + ":stats" }

// Key returns the key of the report of a process.
func Key(prefix, process string) string { return List(prefix) + ":" + process }

// MaxReport is the size of the largest report that Parse accepts, in bytes.
const MaxReport = 8 << 20

// Parse parses a report from the store.
func Parse(text string) (Report, error) {
	var r Report
	if len(text) > MaxReport {
		return r, fmt.Errorf("found a report of %d bytes; expected at most %d", len(text), MaxReport)
	}
	err := json.Unmarshal([]byte(text), &r)
	switch {
	case err != nil:
	case !(r.Seconds >= time.Millisecond.Seconds() && r.Seconds < time.Hour.Seconds()): // also true for NaN
		err = fmt.Errorf("found a report of %g seconds", r.Seconds)
	case len(r.Rules) > MaxRules:
		err = fmt.Errorf("found a report of %d rules; expected at most %d", len(r.Rules), MaxRules)
	}
	return r, err
}
