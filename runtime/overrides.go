package ratelimit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
)

// Overrides change rules by their names while the program runs. Those in the store hold for all limiters of one prefix on it, and last as
// long as the store's data. Those set by SetLocal hold for one limiter, and come before those in the store.
//
// A limiter reads the store's overrides in the background, about once a second while it is called. No call waits for that. A limiter
// follows at most 1,000 overrides, each of at most 1,000 bytes. If the store has more, the limiter keeps to the overrides that it read
// before, and logs one line. An override that is not understood changes nothing: an earlier override of the same name still holds, and the
// limiter logs one line.
//
// Usage so far still counts. After a limit is raised, the difference passes at once; after it is lowered, nothing passes until enough
// permits have left the window. A bucket keeps the number of permits that are missing. Under another Per a rule starts from zero. When that
// override ends, what the store still has of the earlier window counts again.
type Overrides struct {
	limiter *Limiter
	due     atomic.Bool   // the store is to be read
	reading chan struct{} // holds a value while the store is read or written
	many    bool          // a list was too long the last time; guarded by reading
	table   atomic.Pointer[overrideTable]

	mu        sync.Mutex
	own       map[string]Override
	texts     map[string]string // what the store said the last time
	shared    map[string]Override
	malformed map[string]error
	failed    error // of the last attempt to read
}

// overrideTable is the overrides in force. It is replaced as a whole.
type overrideTable struct {
	overrides map[string]Override
	until     time.Time // when the first of them ends; zero is never
	rules     sync.Map  // *prepared to overridden
	count     atomic.Int64
}

// overridden is a rule after an override, or why it stays as it was.
type overridden struct {
	rule *prepared
	err  error
}

const (
	maxOverrides     = engine.MaxSettings // in the store
	maxOverrideText  = 1000               // bytes
	readEvery        = time.Second
	readTimeout      = 5 * time.Second
	maxOverriddenSet = 10_000
)

// Overrides returns the limiter's overrides.
func (l *Limiter) Overrides() *Overrides { return &l.overrides }

func (o *Overrides) start(l *Limiter) {
	o.limiter, o.reading = l, make(chan struct{}, 1)
	o.due.Store(true)
}

// Set changes the rules of a name for all limiters of this prefix on the store, instead of any earlier override there. This limiter follows
// at once, the others within about two seconds. The name is that of a directive's name=, or pkg.Type.Method, or pkg.Type for unnamed rules
// on a type; each with the prefix= of the type, if it has one. It is no error if no rule has that name. At is set to now if it is zero.
//
// The error is a *RuleError if no rule can be like that, a *StoreError, or wraps the context's. A rule that the override does not suit
// stays as it is: see [Overrides.Err].
func (o *Overrides) Set(ctx context.Context, rule string, v Override) error {
	_, err := o.set(ctx, rule, v, false)
	return err
}

// SetNew is [Overrides.Set] if the store has no override of the name, and otherwise changes nothing. It reports whether it set one. The
// errors are those of Set.
func (o *Overrides) SetNew(ctx context.Context, rule string, v Override) (bool, error) {
	return o.set(ctx, rule, v, true)
}

// Clear removes the override of a name from the store. It is no error if there is none. The error is a *StoreError, or wraps the context's.
func (o *Overrides) Clear(ctx context.Context, rule string) error {
	return o.write(ctx, func() error { return o.limiter.store.Unset(ctx, o.limiter.list(listOverrides), rule) })
}

// All returns the overrides that are in the store now. If some are not understood, the error says so, and the others are returned. If the
// store cannot be read, the error is a *StoreError or wraps the context's.
func (o *Overrides) All(ctx context.Context) (map[string]Override, error) {
	texts, err := o.limiter.store.Settings(ctx, o.limiter.list(listOverrides))
	if err != nil || ctx.Err() != nil {
		return nil, storeError(ctx, "", joinErrors(err, ctx.Err()))
	}
	if len(texts) > maxOverrides {
		return nil, storeError(ctx, "", errManyOverrides)
	}
	all, malformed := parseOverrides(texts)
	return all, joined(slices.Collect(maps.Values(malformed)))
}

// SetLocal changes the rules of a name for this limiter, instead of any earlier override of them here or in the store. It takes
// the names that Set takes. The error is a *RuleError if no rule can have these values.
func (o *Overrides) SetLocal(rule string, v Override) error {
	if err := v.check(rule); err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.own == nil {
		o.own = map[string]Override{}
	}
	o.own[rule] = v
	o.enforce()
	return nil
}

// ClearLocal removes the override that SetLocal set. The store's override then holds, if there is one.
func (o *Overrides) ClearLocal(rule string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.own, rule)
	o.enforce()
}

// Err returns what is wrong with the overrides, or nil: the store could not be read the last time, so that older ones hold; some are not
// understood; or some do not suit a rule that was called, such as a Per for a rule with Cron.
func (o *Overrides) Err() error {
	o.mu.Lock()
	errs := slices.Collect(maps.Values(o.malformed))
	if o.failed != nil {
		errs = append(errs, &StoreError{Err: o.failed})
	}
	o.mu.Unlock()
	if table := o.inForce(); table != nil {
		table.rules.Range(func(_, by any) bool {
			if err := by.(*overridden).err; err != nil {
				errs = append(errs, err)
			}
			return true
		})
	}
	return joined(errs)
}

// joined returns the errors as one, in the order of their texts.
func joined(errs []error) error {
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return joinErrors(errs...)
}

var (
	errManyOverrides = errors.New("there are more than 1000 overrides; they are not followed")
	errManyBlocks    = errors.New("there are more than 1000 blocks; they are not followed")
)

func (o *Overrides) set(ctx context.Context, rule string, v Override, onlyNew bool) (set bool, err error) {
	if err := v.check(rule); err != nil {
		return false, err
	}
	if v.At.IsZero() {
		v.At = time.Now().UTC().Truncate(time.Second)
	}
	text, err := json.Marshal(v)
	if err != nil {
		return false, err
	}
	err = o.write(ctx, func() (err error) {
		set, err = o.limiter.store.Set(ctx, o.limiter.list(listOverrides), rule, string(text), onlyNew)
		return err
	})
	return set, err
}

// write changes the store's overrides or blocks, and follows. That they cannot be read back is no error of the change.
func (o *Overrides) write(ctx context.Context, change func() error) error {
	var err error
	wait := o.alone(ctx, func() {
		if err = change(); err == nil {
			_ = o.read(ctx) // Err tells
		}
	})
	return storeError(ctx, "", cmp.Or(wait, err))
}

// alone reads or writes while nothing else does, or else an older answer could come later. The error is the context's.
func (o *Overrides) alone(ctx context.Context, do func()) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	select {
	case o.reading <- struct{}{}:
		defer func() { <-o.reading }()
		do()
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// follow has the store's overrides read in the background, if that is due.
func (o *Overrides) follow() {
	if !o.due.Load() || !o.due.CompareAndSwap(true, false) {
		return
	}
	select {
	case o.reading <- struct{}{}:
	default: // being read or written, which may fail
		o.due.Store(true)
		return
	}
	go func() {
		defer func() { <-o.reading }()
		ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
		defer cancel()
		_ = o.read(ctx) // Err tells
	}()
}

// read reads the store's overrides and blocks.
func (o *Overrides) read(ctx context.Context) error {
	texts, err := o.limiter.store.Settings(ctx, o.limiter.list(listOverrides))
	err = o.take(texts, err)
	o.limiter.used.again()
	err = joinErrors(err, o.limiter.blocks.read(ctx, o.limiter))
	many := errors.Is(err, errManyOverrides) || errors.Is(err, errManyBlocks)
	if many && !o.many {
		o.limiter.logger.Warn("a list of overrides or blocks in the store is too long; the earlier ones stay in force", "err", oneLine(err.Error()))
	}
	o.many = many
	time.AfterFunc(readEvery, func() { o.due.Store(true) })
	return err
}

// take takes in what the store said. It returns why nothing of it is followed.
func (o *Overrides) take(texts map[string]string, err error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.failed = err; err == nil && len(texts) > maxOverrides {
		o.failed = errManyOverrides
	}
	if o.failed != nil || maps.Equal(texts, o.texts) {
		return o.failed
	}
	shared, malformed := parseOverrides(texts)
	for name, err := range malformed {
		if before, ok := o.shared[name]; ok {
			shared[name] = before
		}
		if o.texts[name] != texts[name] {
			o.limiter.logger.Warn("an override of a rate limit is not understood; any earlier one stays in force", "err", err.Error())
		}
	}
	o.texts, o.shared, o.malformed = texts, shared, malformed
	o.enforce()
	return nil
}

// enforce puts in force what is set and has not ended. The caller holds the lock.
func (o *Overrides) enforce() {
	now, next := o.limiter.now(), time.Time{}
	all := make(map[string]Override, len(o.shared)+len(o.own))
	for _, some := range []map[string]Override{o.shared, o.own} {
		for name, v := range some {
			if !v.Until.IsZero() && !v.Until.After(now) {
				continue
			}
			all[name] = v
			if !v.Until.IsZero() && (next.IsZero() || v.Until.Before(next)) {
				next = v.Until
			}
		}
	}
	if len(all) == 0 {
		o.table.Store(nil)
	} else {
		o.table.Store(&overrideTable{overrides: all, until: next})
	}
}

// inForce returns the overrides that are in force now, or nil.
func (o *Overrides) inForce() *overrideTable {
	table := o.table.Load()
	if table == nil || table.until.IsZero() || o.limiter.now().Before(table.until) {
		return table
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.table.Load() == table {
		o.enforce()
	}
	return o.table.Load()
}

// applied returns what a rule is by now, and whether its limit holds against those that calls bring along.
func (o *Overrides) applied(rule *prepared) (_ *prepared, pinned bool) {
	table := o.inForce()
	if table == nil {
		return rule, false
	}
	v, ok := table.overrides[rule.Name]
	if !ok {
		return rule, false
	}
	known, ok := table.rules.Load(rule)
	if !ok {
		p, err := o.prepare(rule, v)
		known = &overridden{p, err}
		if table.count.Add(1) <= maxOverriddenSet {
			table.rules.Store(rule, known)
		}
	}
	if by := known.(*overridden); by.err == nil {
		return by.rule, v.Limit != nil
	}
	return rule, false
}

func (o *Overrides) prepare(rule *prepared, v Override) (*prepared, error) {
	changed := v.apply(rule.Rule)
	window := changed.Window()
	p, err := changed.prepareAs(window, window+strings.TrimPrefix(rule.tag, rule.window))
	if err != nil {
		return nil, err
	}
	p.shown = rule.shown
	return p, o.limiter.supports(p, p.Wait.Microseconds())
}
