package fleet

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/printable"
)

// Process is what a process says of itself.
type Process struct {
	ID      string        `json:"-"`
	Host    string        `json:"host"`
	PID     int           `json:"pid"`
	Program string        `json:"program"`           // the path of its main package; of "go run x.go" the name of the executable
	Build   string        `json:"build,omitempty"`   // the version of its main module, or the revision; else a hash of the executable, as devel-1a2b3c4d
	Start   time.Time     `json:"start"`             // by the store's clock, like At
	At      time.Time     `json:"at"`                // when it said this
	Ahead   time.Duration `json:"ahead,omitzero"`    // how far its clock is ahead of the store's, in nanoseconds
	Rules   string        `json:"rules,omitempty"`   // identifies the rules that it declares
	Version int64         `json:"version,omitzero"`  // of the settings that it follows
	Epoch   string        `json:"epoch,omitempty"`   // of that version; another one after the store lost its settings
	Lost    int           `json:"lost,omitempty"`    // settings that it keeps in force and the store has lost
	Stats   bool          `json:"stats,omitempty"`   // it publishes statistics
	Secrets []string      `json:"secrets,omitempty"` // the fingerprints of its limiters' secrets, "" of those without; none if its version does not say
	// How many limiters of the prefix live in the process. Each client of a program that has several is a process of its own with the same PID.
	Limiters   int    `json:"limiters,omitempty"`
	Store      string `json:"store,omitempty"`      // when and why a decision last failed, until the store has worked for some seconds
	MorePauses int    `json:"morePauses,omitempty"` // that it noted none of, because there were too many
	Setting    string `json:"setting,omitempty"`    // the last error of reading settings
}

// processLife is how long after its last word a process counts as gone.
const processLife = 12 * time.Second

// heardFor is how long lately goes by the processes that were read last.
const heardFor = 2 * beatEvery

// String returns such a text as "example.com/shop 4711 on web-1".
func (p Process) String() string {
	return printable.Text(fmt.Sprintf("%s %d on %s", p.Program, p.PID, p.Host), maxProcessText)
}

const maxProcessText = 2*128 + 32

// program describes the program of this process. Its Build is "devel" if it has no version.
var program = sync.OnceValue(func() (p Process) {
	p.Host, _ = os.Hostname()
	p.PID = os.Getpid()
	if info, ok := debug.ReadBuildInfo(); ok {
		p.Program, p.Build = info.Path, strings.Trim(info.Main.Version, "()")
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && p.Build == "devel" {
				p.Build = s.Value
			}
		}
	}
	if p.Program == "" || p.Program == "command-line-arguments" {
		executable, _ := os.Executable()
		p.Program = filepath.Base(executable)
	}
	p.Build = cmp.Or(p.Build, "devel")
	for _, text := range []*string{&p.Host, &p.Program, &p.Build} {
		*text = printable.Text(*text, 128)
	}
	return p
})

// build returns the build of this process: the version, or "devel-" and a hash of the executable, which takes a tenth of a second.
var build = sync.OnceValue(func() string {
	if program().Build != "devel" {
		return program().Build
	}
	path, _ := os.Executable()
	file, err := os.Open(path)
	if err != nil {
		return "devel"
	}
	defer file.Close()
	h := sha256.New()
	if _, err := io.Copy(h, file); err != nil {
		return "devel"
	}
	return fmt.Sprintf("devel-%x", h.Sum(nil)[:4])
})

// failedFormat is how Store begins, before a colon and the error.
const failedFormat = "at 2006-01-02 15:04:05 MST"

// SinceFailure returns how long before its last word a decision of the process last failed. It is 0 if Store does not say when. The word itself is
// proof that the store then answered what was no decision.
func (p *Process) SinceFailure() time.Duration {
	text, _, _ := strings.Cut(p.Store, ": ")
	at, err := time.Parse(failedFormat, text)
	if err != nil {
		return 0
	}
	return p.At.Sub(at)
}

// word returns what this process says of itself now.
func (f *Fleet) word() string {
	p, now := program(), f.Now()
	p.Build = build()
	p.Start, p.At, p.Ahead = now.Add(-time.Since(began)).UTC().Truncate(time.Millisecond), now.UTC().Truncate(time.Millisecond), time.Since(now)
	p.Version, p.Epoch, p.Lost, p.Stats = f.changed.version, f.changed.epoch, f.Status().Lost, f.Stats != nil
	f.mu.Lock()
	setID, failure, at := f.self.setID, f.self.failure, f.self.failedAt
	p.Secrets, p.Limiters = f.self.secrets()
	p.MorePauses = f.pauses.more(now)
	f.mu.Unlock()
	p.Rules = setID
	for most := 200; ; most /= 2 { // an error may become longer in JSON
		if err := f.Status().Err; err != nil {
			p.Setting = printable.Text(err.Error(), most)
		}
		if failure != nil {
			p.Store = at.UTC().Format(failedFormat) + ": " + printable.Text(failure.Error(), most)
		}
		text, _ := json.Marshal(p) // texts and numbers: it never fails
		if len(text) <= MaxText || most == 0 {
			return string(text)
		}
	}
}

// NoteStore notes the last error of a decision. The error is nil if decisions do not fail any more.
func (f *Fleet) NoteStore(err error) {
	now := f.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.self.failure, f.self.failedAt = err, now
}

// StoreFailure returns when and why a decision of this process last failed. The error is nil if none did, or the store has worked for some seconds.
func (f *Fleet) StoreFailure() (at time.Time, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.self.failedAt, f.self.failure
}

// Processes returns the processes that have lately said something, sorted by host, program and start.
func (f *Fleet) Processes(ctx context.Context) ([]Process, error) {
	return beside(ctx, f, func() (all []Process, err error) {
		if f.server == nil {
			var p Process
			err = json.Unmarshal([]byte(f.word()), &p)
			p.ID = f.self.id
			return []Process{p}, err
		}
		if all, _, err = f.processes(ctx, perScan); err == nil {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.heard, f.heardAt = all, time.Now()
		}
		return all, err
	})
}

// lately returns the processes as they were read last, if that was a moment ago.
func (f *Fleet) lately(ctx context.Context) ([]Process, error) {
	f.mu.Lock()
	heard, at := f.heard, f.heardAt
	f.mu.Unlock()
	if time.Since(at) <= heardFor {
		return heard, nil
	}
	all, _, err := f.processes(ctx, perScan)
	return all, err
}

// processes returns the processes, and the names of those that are gone. count is how many a command reads.
func (f *Fleet) processes(ctx context.Context, count int) (all []Process, gone []string, err error) {
	now, err := f.clock(ctx)
	if err != nil {
		return nil, nil, err
	}
	err = f.scan(ctx, f.keys.processes, count, 2*MaxProcesses, func(id, text string) {
		var p Process
		if decode(text, &p, false) != nil || now.Sub(p.At).Abs() > processLife { // the clock of a server that took over may be behind
			gone = append(gone, id)
			return
		}
		p.ID = id
		all = append(all, p)
	})
	slices.SortFunc(all, func(a, b Process) int {
		return cmp.Or(strings.Compare(a.Host, b.Host), strings.Compare(a.Program, b.Program), a.Start.Compare(b.Start), strings.Compare(a.ID, b.ID))
	})
	all = slices.CompactFunc(all, func(a, b Process) bool { return a.ID == b.ID })
	return all[:min(len(all), MaxProcesses)], gone, err
}

// scan passes the fields of a hash to take. Of a hash that others made too large, it passes about as many as most says. It may pass a field twice.
// count is how many fields a command asks for; the server may reply with a few more.
func (f *Fleet) scan(ctx context.Context, key string, count, most int, take func(field, text string)) error {
	cursor := any("0")
	for n := 0; n < most; {
		replies, err := f.do(ctx, Command{"HSCAN", key, cursor, "COUNT", count})
		if err != nil {
			return err
		}
		page, _ := replies[0].([]any)
		if len(page) < 2 {
			return nil
		}
		fields := texts(page[1])
		for i := 0; i+1 < len(fields); i += 2 {
			take(fields[i], fields[i+1])
			n++
		}
		if cursor = page[0]; cursor == "0" {
			return nil
		}
	}
	return nil
}
