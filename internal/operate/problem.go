package operate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Level says how much a problem matters.
type Level uint8

// The levels.
const (
	Note    Level = iota // people should know
	Warning              // limits or settings may be lost or differ, or calls are slow
	Bad                  // calls fail, or soon will
)

var levels = [...]string{"note", "warning", "bad"}

// String returns "note", "warning" or "bad".
func (l Level) String() string { return levels[l] }

// MarshalText returns what String returns.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// The identities of problems.
const (
	StoreDown       = "store-down"         // calls fail, of some process or of all
	StoreSlow       = "store-slow"         // calls wait for the store
	MemoryFull      = "memory-full"        // the server refuses writes, or will within an hour
	Evicts          = "evicts"             // the server removes counts when its memory is full
	SettingsLost    = "settings-lost"      // processes keep settings that the store has lost
	SettingsStale   = "settings-stale"     // a process does not follow the newest settings
	SettingUnusable = "setting-unusable"   // a setting has no effect
	SettingEndless  = "setting-endless"    // an override has no end
	LimitsDiffer    = "limits-differ"      // processes declare one rule differently
	BuildsDiffer    = "builds-differ"      // several builds of one program run
	ClockOff        = "clock-off"          // a clock is wrong
	ProgramShared   = "program-shared"     // programs share counts by chance
	RefusesMost     = "refuses-most"       // a rule refuses nearly all of its calls
	PausedByFarSide = "paused-by-far-side" // the far side has paused keys
	SecretDiffers   = "secret-differs"     // processes, or this one, hash keys with different secrets
	LimitersMany    = "limiters-many"      // a process makes limiters again and again
)

// Problem is one thing that is not well. For example: ID "limits-differ", Level Warning, Subject "login", Text "shop 4711 on web-1 has 5 per hour,
// and shop 12 on web-2 has 10 per hour", Advice "finish the deployment".
type Problem struct {
	ID      string    `json:"id"`
	Level   Level     `json:"level"`
	Subject string    `json:"subject,omitempty"` // the rule, the process, the setting or the server, by name
	Text    string    `json:"text"`
	Advice  string    `json:"advice,omitempty"` // what to do
	Since   time.Time `json:"since,omitzero"`   // by the store's clock, if that is known
}

// maxAlike is how many problems of one identity are listed.
const maxAlike = 20

// Fact is something about a server that is worth knowing and no problem: "version", "Redis 7.4.1".
type Fact struct{ Server, Check, Text string }

// findings are what a judgement has found.
type findings struct {
	problems  []Problem
	facts     []Fact
	deniedNow bool // a server refused a user within the last minute
}

// add adds a problem. A full memory and a store that does not answer are found in several ways, of which the first counts.
func (f *findings) add(id string, level Level, subject, text, advice string) {
	isStore := func(p Problem) bool { return p.ID == id && p.Level == Bad && p.Subject == "" }
	if subject == "" && (id == MemoryFull || id == StoreDown) && slices.ContainsFunc(f.problems, isStore) {
		return
	}
	f.problems = append(f.problems, Problem{ID: id, Level: level, Subject: subject, Text: strings.TrimSuffix(text, "."), Advice: advice})
}

// sorted returns the problems, the worst first. Of many that are alike it leaves out some, and says how many.
func (f *findings) sorted() []Problem {
	slices.SortStableFunc(f.problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(b.Level, a.Level), strings.Compare(a.ID, b.ID), strings.Compare(a.Subject, b.Subject))
	})
	all, alike := []Problem{}, map[string]int{}
	for _, p := range f.problems {
		if alike[p.ID]++; alike[p.ID] <= maxAlike {
			all = append(all, p)
		}
	}
	for i := range all {
		if more := alike[all[i].ID] - maxAlike; more > 0 && (i+1 == len(all) || all[i+1].ID != all[i].ID) {
			all[i].Text += fmt.Sprintf("; and %s more like this", Number(int64(more)))
		}
	}
	return all
}
