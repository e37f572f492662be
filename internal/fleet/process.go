package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/printable"
)

// Process is what a process says of itself.
type Process struct {
	ID      string        `json:"-"`
	Host    string        `json:"host"`
	PID     int           `json:"pid"`
	Program string        `json:"program"`           // the path of its main package; of "go run x.go" the name of the executable
	Build   string        `json:"build,omitempty"`   // the version of its main module, or the revision
	Start   time.Time     `json:"start"`             // by the store's clock, like At
	At      time.Time     `json:"at"`                // when it said this
	Ahead   time.Duration `json:"ahead,omitzero"`    // how far its clock is ahead of the store's, in nanoseconds
	Rules   string        `json:"rules,omitempty"`   // identifies the rules that it declares
	Version int64         `json:"version,omitzero"`  // of the settings that it follows
	Epoch   string        `json:"epoch,omitempty"`   // of that version; another one after the store lost its settings
	Lost    int           `json:"lost,omitempty"`    // settings that it keeps in force and the store has lost
	Stats   bool          `json:"stats,omitempty"`   // it publishes statistics
	Store   string        `json:"store,omitempty"`   // when and why a decision last failed, until the store has worked for some seconds
	Setting string        `json:"setting,omitempty"` // the last error of reading settings
}

// processLife is how long after its last word a process counts as gone.
const processLife = 12 * time.Second

// heardFor is how long Rules goes by the processes that were read last.
const heardFor = 2 * beatEvery

// program describes the program of this process.
var program = func() (p Process) {
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
	for _, text := range []*string{&p.Host, &p.Program, &p.Build} {
		*text = printable.Text(*text, 128)
	}
	return p
}()

// word returns what this process says of itself now.
func (f *Fleet) word() string {
	p, now := program, f.Now()
	p.Start, p.At, p.Ahead = now.Add(-time.Since(began)).UTC().Truncate(time.Millisecond), now.UTC().Truncate(time.Millisecond), time.Since(now)
	p.Version, p.Epoch, p.Lost, p.Stats = f.changed.version, f.changed.epoch, f.Status().Lost, f.Stats != nil
	f.mu.Lock()
	setID, failure, at := f.self.setID, f.self.failure, f.self.failedAt
	f.mu.Unlock()
	p.Rules = setID
	for most := 200; ; most /= 2 { // an error may become longer in JSON
		if err := f.Status().Err; err != nil {
			p.Setting = printable.Text(err.Error(), most)
		}
		if failure != nil {
			p.Store = at.UTC().Format("at 2006-01-02 15:04:05 MST: ") + printable.Text(failure.Error(), most)
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

// Processes returns the processes that have lately said something, sorted by host, program and start.
func (f *Fleet) Processes(ctx context.Context) ([]Process, error) {
	return alone(ctx, f, func() (all []Process, err error) {
		if f.server == nil {
			var p Process
			err = json.Unmarshal([]byte(f.word()), &p)
			return []Process{p}, err
		}
		if all, _, err = f.processes(ctx, perScan); err == nil {
			f.heard, f.heardAt = all, time.Now()
		}
		return all, err
	})
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
