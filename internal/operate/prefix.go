package operate

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/backend"
	"github.com/ratelimit-go/ratelimit/internal/decide"
	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/internal/traffic"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// Prefix is one prefix on one store, for those who look at it and change it. It is safe for concurrent use. Many who look cost the store as much
// as one, and while the store is away they see what was read last, with its age.
type Prefix struct {
	written  *ratelimit.Limiter // takes keys as people write them
	shown    *ratelimit.Limiter // takes keys also as errors and pages show them
	name     string             // in the form of keys
	fleet    *fleet.Fleet
	listed   []ratelimit.UsedRule // rules that perhaps no program uses yet
	patience patience

	health    Read[fleet.Health]
	processes Read[[]fleet.Process]
	rules     Read[[]ratelimit.UsedRule]
	reports   Read[reports]
	history   Read[[]fleet.Slot]
	changes   Read[[]fleet.Change]
	pauses    Read[pauses]
	shared    Read[[]string]
	blocks    Read[blocks]
	servers   Read[[]server]

	newest newest
	trips  trips
}

// New returns the prefix of a limiter, on its store and with its secret. listed are rules that perhaps no program uses yet. Longest is how long
// one look waits for a store that does not answer.
func New(limiter *ratelimit.Limiter, longest time.Duration, listed ...ratelimit.UsedRule) *Prefix {
	view := (*decide.Limiter)(limiter).View()
	p := &Prefix{
		written: limiter, shown: (*ratelimit.Limiter)(view), name: view.Prefix(), fleet: view.Fleet(), listed: listed,
		patience: patience{longest: longest, answered: view.Fleet().Answered},
	}
	readFrom(p, &p.health, p.readHealth)
	readFrom(p, &p.processes, func(ctx context.Context, _ []fleet.Process) ([]fleet.Process, error) { return p.fleet.Processes(ctx) })
	readFrom(p, &p.rules, p.readRules)
	readFrom(p, &p.reports, p.readReports)
	readFrom(p, &p.history, p.readHistory)
	readFrom(p, &p.changes, func(ctx context.Context, _ []fleet.Change) ([]fleet.Change, error) { return p.fleet.Changes(ctx) })
	readFrom(p, &p.pauses, p.readPauses)
	readFrom(p, &p.shared, func(ctx context.Context, _ []string) ([]string, error) { return p.fleet.Shared(ctx) })
	readFrom(p, &p.blocks, p.readBlocks)
	readFrom(p, &p.servers, p.readServers)
	p.blocks.fresh, p.servers.fresh = seldom, seldom
	p.patience.probe = func() {
		ctx, cancel := context.WithTimeout(context.Background(), longest)
		defer cancel()
		_, _ = p.fleet.Health(ctx)
	}
	return p
}

// Name returns the prefix as people know it.
func (p *Prefix) Name() string { return p.name }

// IsLocal reports whether the store is in this process.
func (p *Prefix) IsLocal() bool { return p.fleet.IsLocal() }

// Now returns the time by the store's clock.
func (p *Prefix) Now() time.Time { return p.fleet.Now() }

// machine is the machinery that decides.
func (p *Prefix) machine() *decide.Limiter { return (*decide.Limiter)(p.shown) }

func (p *Prefix) store() backend.Store { return p.machine().Store() }

// Key is the key of a request, as people write it; or Shown, as errors and pages show it; or with Match a network or a text such as ann*, which stands
// for all keys that it matches.
type Key struct {
	Text  string
	Shown bool
	Match bool
}

// limiterFor returns the limiter that understands a key.
func (p *Prefix) limiterFor(k Key) *ratelimit.Limiter {
	if k.Shown {
		return p.shown
	}
	return p.written
}

// subjectOf returns a key under a rule in the form of keys.
func (p *Prefix) subjectOf(r ratelimit.Rule, k Key) string {
	return (*decide.Limiter)(p.limiterFor(k)).Subject(r.Hash == ratelimit.HashNever, k.Text)
}

func (p *Prefix) readHealth(ctx context.Context, _ fleet.Health) (fleet.Health, error) {
	h, err := p.fleet.Health(ctx)
	if err == nil && !p.IsLocal() {
		p.trips.add(h.RoundTrip)
	}
	return h, err
}

// Processes returns the processes that have lately said something.
func (p *Prefix) Processes(ctx context.Context) ([]fleet.Process, Seen) { return p.processes.Get(ctx) }

// History returns the sums of the last ten minutes, the oldest first.
func (p *Prefix) History(ctx context.Context) ([]fleet.Slot, Seen) { return p.history.Get(ctx) }

// Follow reads the settings, unless they are known. What is in force is as old as Seen says.
func (p *Prefix) Follow(ctx context.Context) Seen {
	err := p.patience.ask(ctx, p.fleet.Follow)
	p.newest.note(p.fleet)
	if p.IsLocal() {
		return Seen{At: time.Now(), Err: err}
	}
	return Seen{At: p.fleet.Read(), Err: err}
}

// InForce returns the settings in force, in the order of fleet.Compare.
func (p *Prefix) InForce(ctx context.Context) ([]*fleet.Setting, Seen) {
	at := p.Follow(ctx)
	return slices.SortedFunc(p.fleet.InForce().All(), fleet.Compare), at
}

// inForce returns the settings in force for the rules of a name.
func (p *Prefix) inForce(rule string) *fleet.OfRule {
	return p.fleet.InForce().Of(fleet.SettingName(rule))
}

// prepared returns a rule, ready for decisions.
func prepared(r ratelimit.Rule) (*decide.Rule, error) {
	rules, err := ratelimit.Prepare("", r)
	if err != nil {
		return nil, err
	}
	return (*decide.Rules)(rules).All[0], nil
}

// namesOf returns the rules as people know them, by their names in keys.
func (p *Prefix) namesOf(rules []ratelimit.UsedRule) map[traffic.Named]traffic.Known {
	return traffic.Names(p.shown, p.name, rules)
}

// keyInWords names a key. "" is everybody.
func keyInWords(shown string) string { return cmp.Or(key.Shown(shown), "everybody") }

// ProcessState is a process, and whether it does what it should.
type ProcessState struct {
	fleet.Process
	Late bool // it does not say yet that it follows the newest setting
}

// IsSkewed reports whether the process's clock is wrong.
func (p ProcessState) IsSkewed() bool { return p.Ahead.Abs() > maxSkew }

// CallsFail reports whether the process says that calls fail.
func (p ProcessState) CallsFail() bool { return callsFail(&p.Process) }

// ProcessStates returns the processes that have lately said something.
func (p *Prefix) ProcessStates(ctx context.Context) (all []ProcessState, at Seen) {
	followed := p.Follow(ctx)
	processes, at := p.processes.Get(ctx)
	version := p.fleet.Status().Version
	for _, one := range processes {
		all = append(all, ProcessState{one, one.Version < version})
	}
	return all, at.Worse(followed)
}
