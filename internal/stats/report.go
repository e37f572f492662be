package stats

import (
	"encoding/json"
	"fmt"
	"time"
)

// MaxRules is how many rules a report has at most.
const MaxRules = 100

// Report is what one process decided in a span of time.
type Report struct {
	Seconds float64 `json:"seconds"`
	Rules   []Rule  `json:"rules"`
}

// Rule is what was decided by one rule. Name and Tag are those of its keys.
type Rule struct {
	Name string `json:"name"`
	Tag  string `json:"tag"`
	Counts
	Subjects []Subject `json:"subjects"`
}

// Subject is what was decided for one subject, as it stands in keys.
type Subject struct {
	Name string `json:"subject"`
	Counts
}

// Reports are published under keys of their own, and listed in a sorted set by the time of their process, in milliseconds.
const (
	Every    = 5 * time.Second  // between two reports of a process
	Life     = 30 * time.Second // of a report, unless the next one replaces it
	Unlisted = 10 * time.Minute // after which a process that is gone is left out of the list
)

// List returns the key of the list of processes.
func List(prefix string) string { return prefix + ":stats" }

// Key returns the key of the report of a process.
func Key(prefix, process string) string { return List(prefix) + ":" + process }

// MaxReport is the size of the largest report that is read, in bytes.
const MaxReport = 8 << 20

// Parse reads a report from the store.
func Parse(text string) (Report, error) {
	var r Report
	if len(text) > MaxReport {
		return r, fmt.Errorf("found a report of %d bytes; expected at most %d", len(text), MaxReport)
	}
	err := json.Unmarshal([]byte(text), &r)
	switch {
	case err != nil:
	case !(r.Seconds >= time.Millisecond.Seconds() && r.Seconds < time.Hour.Seconds()): // rates of less time may be no numbers
		err = fmt.Errorf("found a report of %g seconds", r.Seconds)
	case len(r.Rules) > MaxRules:
		err = fmt.Errorf("found a report of %d rules; expected at most %d", len(r.Rules), MaxRules)
	}
	return r, err
}
