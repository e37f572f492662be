// Package fleet keeps what the processes of one prefix on a store know in common: their rules, the processes themselves, and the settings that
// operators and programs make while they run. It does not decide calls, and it does not know what a rule means.
//
// On a server, everything is in plain keys of one slot. A beat reads and writes them once a second; no call waits for it. In a store in
// process the fleet is this process: nothing beats, and a change is in force at once.
//
// Time is that of the store: its clock is kept as an offset to this process's monotonic clock. Order goes by version, never by time.
package fleet

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// The bounds of what a fleet keeps.
const (
	MaxSettings  = 10_000 // settings in force
	MaxByProgram = 9_000  // of these, those that programs without an actor can make
	MaxText      = 1000   // bytes of a setting, a rule, a process or a change
	MaxRules     = 1000
	MaxProcesses = 2000
	MaxChanges   = 1000

	perCommand  = 100            // names in one command
	perBeat     = 90             // fields that one command of a beat asks for; the server may reply with a few more
	perScan     = 512            // fields that one command of a tool asks for; the size of a server's table is a power of two, too
	deadLife    = 24 * time.Hour // how long a setting that was cleared or has ended is kept
	changesLife = 365 * 24 * time.Hour
	seenLife    = 24 * time.Hour // how long rules are kept after the last process that declared them
)

// Command is a command of Redis.
type Command = []any

// Do sends commands together: see Server.
type Do = func(ctx context.Context, commands ...Command) ([]any, error)

// Server is the server, or the node of a cluster, that has the keys of a fleet.
type Server interface {
	// Do sends commands together, and returns their replies. A missing text is nil.
	Do(ctx context.Context, commands ...Command) ([]any, error)
	// Run runs a script on keys, at most once, and returns its reply. It reports false if the client may not run scripts.
	Run(ctx context.Context, script string, keys []string, args ...any) (reply any, ok bool, err error)
	// Try calls do, and sends its commands as one transaction, if there are any. It reports false, and changes nothing, if another client changed
	// the key since Try began.
	Try(ctx context.Context, key string, do func(Do) ([]Command, error)) (bool, error)
	// Time returns the server's clock.
	Time(ctx context.Context) (time.Time, error)
	// Renew renews the permits of calls that run in this process. If all is true, the server may have lost them; otherwise only those whose time
	// has come.
	Renew(ctx context.Context, all bool)
	// IsClosed reports whether an error says that the program has closed the client.
	IsClosed(err error) bool
}

// Fleet is what this process knows of the processes of one prefix on a store.
type Fleet struct {
	server   Server           // nil if the store is in this process
	local    func() time.Time // the clock of a store in this process
	failure  func() error     // why a store in this process fails now; or nil
	keys     keys
	logger   atomic.Pointer[slog.Logger]
	offset   atomic.Int64 // nanoseconds from this process's clock to the server's
	synced   atomic.Int64 // when the offset was read, in milliseconds by this process's clock; 0 if it is unknown
	lastRead atomic.Int64 // when the settings were last read, in nanoseconds since began; 0 if never
	answered atomic.Int64 // when the server last answered, in nanoseconds since began
	inForce  atomic.Pointer[InForce]
	status   atomic.Pointer[Status]
	Stats    *Statistics // counts decisions; nil if nothing does

	lost   atomic.Bool // the server lost what this process said of itself, so perhaps also permits
	closed atomic.Bool // the client is closed

	panicked atomic.Bool // a panic was logged

	turn       chan struct{} // holds a value while the settings below are read or written
	changed    known
	unlogged   []func(*slog.Logger)
	scriptless bool     // settings are written without a script
	done       []Change // of a store in this process: the newest changes, the last one at the end

	mu      sync.Mutex
	self    self
	pauses  pauses
	waiting []*pending // edits
	heard   []Process  // as Processes returned them last
	heardAt time.Time
}

// New returns the fleet of a prefix on a server. If counts is true, it publishes statistics.
func New(server Server, prefix string, counts bool) *Fleet {
	f := &Fleet{
		server: server, keys: keysOf(prefix), turn: make(chan struct{}, 1),
		changed: known{over: map[string]bool{}, malformed: map[string]error{}},
		pauses:  pauses{known: map[string]*pause{}, gone: map[string]bool{}},
		self:    self{id: newID(), rules: map[[2]string]Rule{}, limiters: map[string]int{}},
	}
	f.status.Store(new(Status))
	if counts {
		f.Stats = newStatistics()
	}
	return f
}

// NewLocal returns the fleet of a store in this process, with its clock. If failure returns an error, reading and writing fail with it.
func NewLocal(now func() time.Time, failure func() error) *Fleet {
	f := New(nil, "", false)
	f.local, f.failure = now, failure
	return f
}

// LogTo sets where the fleet logs, unless it is set.
func (f *Fleet) LogTo(logger *slog.Logger) { f.logger.CompareAndSwap(nil, logger) }

// warn logs after the settings are free again, because a log handler may use the fleet.
func (f *Fleet) warn(text string, args ...any) {
	f.unlogged = append(f.unlogged, func(l *slog.Logger) { l.Warn(text, args...) })
}

// release lets others read or write the settings.
func (f *Fleet) release() {
	unlogged := f.unlogged
	f.unlogged = nil
	<-f.turn
	for _, log := range unlogged {
		if logger := f.logger.Load(); logger != nil {
			log(logger)
		}
	}
}

// keys are the names under which a server has what a fleet knows.
type keys struct{ settings, versions, version, epoch, changes, rules, sets, processes, reports, history, full, pauses, farSide, recover, known string }

func keysOf(prefix string) keys {
	slot := SlotOf(prefix)
	settings, seen := prefix+".fleet"+slot, prefix+".seen"+slot
	return keys{
		settings + "settings", settings + "versions", settings + "version", settings + "epoch", settings + "changes",
		seen + "rules", seen + "sets", seen + "processes", seen + "report:", seen + "history:", seen + "full", seen + "pauses", seen + "farside", seen + "recover", seen + "known:",
	}
}

// SlotOf returns the part of the keys that gives all of them one slot.
func SlotOf(prefix string) string { return ":{" + cmp.Or(prefix, "-") + "}:" }

// ProcessesOf returns the key of the processes of a prefix. Every program may write to it.
func ProcessesOf(prefix string) string { return keysOf(prefix).processes }

// ofSettings are the keys whose expiry is that of the settings.
func (k *keys) ofSettings() []string { return []string{k.settings, k.versions, k.version, k.epoch} }

var began = time.Now()

// Now returns the time by the store's clock, if that was read before. Settings in force were read together with it.
func (f *Fleet) Now() time.Time {
	if f.local != nil {
		return f.local()
	}
	return began.Round(0).Add(time.Since(began) + time.Duration(f.offset.Load()))
}

// Read returns when the settings were last read from a server, by this process's clock. It is zero if they never were.
func (f *Fleet) Read() (at time.Time) {
	if after := f.lastRead.Load(); after > 0 {
		at = began.Add(time.Duration(after))
	}
	return at
}

// do sends commands to the server.
func (f *Fleet) do(ctx context.Context, commands ...Command) ([]any, error) {
	replies, err := f.server.Do(ctx, commands...)
	if err == nil {
		f.answered.Store(int64(time.Since(began)))
	}
	return replies, err
}

// Answered returns when the server last answered, by this process's clock. A store in this process always does.
func (f *Fleet) Answered() time.Time {
	if f.server == nil {
		return time.Now()
	}
	return began.Add(time.Duration(f.answered.Load()))
}

// instant returns a time by the store's clock. A time that was computed from time.Now keeps its distance from now.
func (f *Fleet) instant(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	if f.local == nil && t != t.Round(0) {
		t = f.Now().Add(time.Until(t))
	}
	return t.UTC().Truncate(time.Millisecond)
}

// staleClock is how many milliseconds a reading of the store's clock is used: this process may have been suspended, or another server may have
// taken over.
const staleClock = 10_000

// clock returns the time by the store's clock. It reads that clock if nobody has read it lately.
func (f *Fleet) clock(ctx context.Context) (time.Time, error) {
	if since := time.Now().UnixMilli() - f.synced.Load(); f.server == nil || 0 <= since && since < staleClock {
		return f.Now(), nil
	}
	err := f.readClock(ctx)
	return f.Now(), err
}

// slowReading is how long a reading of the server's clock may take and still say more than the reading before it.
const slowReading = 200 * time.Millisecond

// readClock reads the server's clock. While a server hangs, a reading may be off by half of the time that it took. If it takes long, the clock stays
// as it was, unless the reading contradicts it.
func (f *Fleet) readClock(ctx context.Context) error {
	sent := time.Since(began)
	at, err := f.server.Time(ctx)
	if err != nil {
		return err
	}
	took := time.Since(began) - sent
	offset := at.Sub(began.Round(0).Add(sent + took/2))
	if took <= slowReading || (offset-time.Duration(f.offset.Load())).Abs() > took/2 {
		f.offset.Store(int64(offset))
	}
	f.synced.Store(time.Now().UnixMilli())
	return nil
}

// alone awaits what do returns, which runs while nothing else reads or writes the settings.
func alone[T any](ctx context.Context, f *Fleet, do func() (T, error)) (v T, err error) {
	if ctx.Err() != nil { // otherwise select might choose the turn
		return v, context.Cause(ctx)
	}
	select {
	case f.turn <- struct{}{}:
	case <-ctx.Done():
		return v, context.Cause(ctx)
	}
	if ctx.Done() == nil || f.server == nil {
		defer f.release()
		return guarded(f, do)
	}
	return Await(ctx, func() (T, error) {
		defer f.release()
		return guarded(f, do)
	})
}

// Await returns what do returns, or the cause of ctx's end if that comes first. Then do goes on: a client waits for a reply as long as its own
// options say, whatever the deadline of ctx is.
func Await[T any](ctx context.Context, do func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	answered := make(chan answer, 1)
	go func() {
		v, err := do()
		answered <- answer{v, err}
	}()
	select {
	case a := <-answered:
		if a.err == nil || ctx.Err() == nil {
			return a.value, a.err
		}
	case <-ctx.Done():
	}
	var none T
	return none, context.Cause(ctx)
}

// beside awaits what do returns, which reads what the server has, and needs no settings. On a slow server nobody waits for the turns of others.
func beside[T any](ctx context.Context, f *Fleet, do func() (T, error)) (T, error) {
	if f.server == nil { // what is in this process is read alone
		return alone(ctx, f, do)
	}
	return Await(ctx, func() (v T, err error) {
		defer func() {
			if p := recover(); p != nil {
				var log func(*slog.Logger)
				if log, err = f.caught(p); f.logger.Load() != nil {
					log(f.logger.Load())
				}
			}
		}()
		return do()
	})
}

// caught returns the error of a panic, for example in a hook of the store's client. log logs the first one.
func (f *Fleet) caught(p any) (log func(*slog.Logger), err error) {
	log = func(*slog.Logger) {}
	if !f.panicked.Swap(true) {
		stack := string(debug.Stack())
		log = func(l *slog.Logger) { l.Error("the rate limit store panicked", "panic", fmt.Sprint(p), "stack", stack) }
	}
	return log, fmt.Errorf("the store panicked: %v", p)
}

// guarded runs do. If do panics, that is an error.
func guarded[T any](f *Fleet, do func() (T, error)) (v T, err error) {
	defer func() {
		if p := recover(); p != nil {
			log, caught := f.caught(p)
			f.unlogged, err = append(f.unlogged, log), f.noteRead(caught)
		}
	}()
	if f.failure != nil {
		if err := f.failure(); err != nil {
			return v, err
		}
	}
	return do()
}

// remove removes fields of a hash.
func (f *Fleet) remove(ctx context.Context, key string, fields []string) error {
	for some := range slices.Chunk(fields, perCommand) {
		if _, err := f.do(ctx, command("HDEL", key, some...)); err != nil {
			return err
		}
	}
	return nil
}

// command returns a command with further arguments.
func command[T any](name, key string, args ...T) Command {
	c := Command{name, key}
	for _, arg := range args {
		c = append(c, arg)
	}
	return c
}

// texts returns the texts of an array in a reply. A missing one is "".
func texts(reply any) []string {
	array, _ := reply.([]any)
	all := make([]string, len(array))
	for i, v := range array {
		all[i], _ = v.(string)
	}
	return all
}

func newID() string { return rand.Text()[:16] }
