package ratelimit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/printable"
	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
)

// The names of the lists that a store keeps for the limiters of one prefix.
const (
	listOverrides = "overrides"
	listBlocked   = "blocked"
	listRules     = "rules"
)

func (l *Limiter) list(name string) string { return l.prefix + ":" + name }

// settings are the overrides and blocks of a limiter. It reads those in its store in the background, about once a second while it is called.
type settings struct {
	limiter *Limiter
	due     atomic.Bool             // the store has to be read
	reading chan struct{}           // holds a value while the store is read or written
	current atomic.Pointer[inForce] // nil if nothing is in force

	mu        sync.Mutex
	own       map[string]Override // set by SetLocal
	overrides followed[Override]
	blocks    followed[block]
	failed    error // the error of the last attempt to read the store
	many      error // which lists were too long then
	unlogged  []warning
}

// warning is a line for the log.
type warning struct {
	text string
	err  error
}

// followed is the content of a list in the store when it was last read.
type followed[T any] struct {
	texts     map[string]string
	known     map[string]T
	malformed map[string]error
}

// inForce holds the settings that have not ended. It is replaced as a whole.
type inForce struct {
	overrides map[string]Override
	blocks    map[ruleSubject]time.Time // when each block ends
	until     time.Time                 // when the first setting ends; zero means never
	rules     sync.Map                  // *prepared to *overridden
	count     atomic.Int64              // the length of rules
}

const (
	maxSettings     = engine.MaxSettings / 2 // entries of a list; programs that add some at the same time can exceed it a little
	maxSettingBytes = 1000
	readEvery       = time.Second
	readTimeout     = 5 * time.Second
)

func (s *settings) start(l *Limiter) {
	s.limiter, s.reading, s.own = l, make(chan struct{}, 1), map[string]Override{}
	s.due.Store(true)
}

// follow starts to read the store in the background, if that is due.
func (s *settings) follow() {
	if !s.due.Load() || !s.due.CompareAndSwap(true, false) {
		return
	}
	select {
	case s.reading <- struct{}{}:
	default: // another goroutine reads or writes, and may fail: try again at the next call
		s.due.Store(true)
		return
	}
	go func() {
		defer s.release()
		ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
		defer cancel()
		if err := s.limiter.guard(func() { _ = s.read(ctx) }); err != nil { // Err returns both errors
			s.mu.Lock()
			defer s.mu.Unlock()
			s.failed = err
		}
	}()
}

// release lets others read or write the store's settings. It logs after that, because a log handler may call the limiter.
func (s *settings) release() {
	s.mu.Lock()
	warnings := s.unlogged
	s.unlogged = nil
	s.mu.Unlock()
	<-s.reading
	for _, w := range warnings {
		s.limiter.logger.Warn(w.text, "err", w.err.Error())
	}
}

// alone runs do while nothing else reads or writes the store's settings. Otherwise an older answer could replace a newer one. The error is
// the context's.
func (s *settings) alone(ctx context.Context, do func()) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	select {
	case s.reading <- struct{}{}:
		defer s.release()
		do()
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// write changes the store's settings, and reads them again. If only the reading fails, the change was made, and write returns nil.
func (s *settings) write(ctx context.Context, change func() error) error {
	var err error
	wait := s.alone(ctx, func() {
		if err = change(); err == nil {
			_ = s.read(ctx) // Err returns the error
		}
	})
	return storeError(ctx, "", cmp.Or(wait, err))
}

// texts returns the entries of a list.
func (s *settings) texts(ctx context.Context, list string) (map[string]string, error) {
	texts, err := s.limiter.store.Settings(ctx, s.limiter.list(list))
	return texts, cmp.Or(err, ctx.Err())
}

// tooLong returns an error if a list is too long for limiters to follow. Then texts is only a part of it.
func tooLong(list string, texts map[string]string) error {
	if len(texts) <= engine.MaxSettings {
		return nil
	}
	return fmt.Errorf("%s: there are more than %d; limiters do not follow them", list, engine.MaxSettings)
}

// makeRoom returns a *RuleError if a list has no room for new entries of these names. If entries that are over take the room, it removes
// them.
func (s *settings) makeRoom(ctx context.Context, list string, over func(name, text string) bool, names ...string) error {
	texts, err := s.texts(ctx, list)
	if err != nil {
		return err
	}
	size := len(texts)
	for _, name := range names {
		if _, found := texts[name]; !found {
			size++
		}
	}
	if size <= maxSettings || size == len(texts) { // entries that are there can change in a list of any length
		return nil
	}
	maps.DeleteFunc(texts, func(name, text string) bool { return slices.Contains(names, name) || !over(name, text) })
	if len(texts) == 0 {
		return &RuleError{Argument: list, Reason: fmt.Sprintf("there would be more than %d; remove some first", maxSettings)}
	}
	if err := s.limiter.store.Unset(ctx, s.limiter.list(list), slices.Collect(maps.Keys(texts))...); err != nil {
		return err
	}
	return s.makeRoom(ctx, list, over, names...)
}

// read reads the store's overrides and blocks. If a list cannot be read or is too long, its earlier entries stay in force. A list that is
// too long is no error.
func (s *settings) read(ctx context.Context) error {
	defer time.AfterFunc(readEvery, func() { s.due.Store(true) })
	overrides, failed := s.texts(ctx, listOverrides)
	blocks, err := s.texts(ctx, listBlocked)
	s.limiter.used.again()
	s.mu.Lock()
	defer s.mu.Unlock()
	changed := failed == nil && s.overrides.take(overrides, parseOverride, &s.unlogged)
	changed = err == nil && s.blocks.take(blocks, parseBlock, &s.unlogged) || changed
	if changed {
		s.enforce()
	} else {
		s.drop()
	}
	many := joinErrors(tooLong(listOverrides, overrides), tooLong(listBlocked, blocks))
	if many != nil && s.many == nil {
		s.unlogged = append(s.unlogged, warning{"the store has too many overrides or blocks; the earlier ones stay in force", many})
	}
	s.failed, s.many = joinErrors(failed, err), many
	return s.failed
}

// take stores the entries of a list that is not too long, and reports whether they changed. If an entry cannot be parsed, take warns, and
// keeps an earlier entry of the same name.
func (f *followed[T]) take(texts map[string]string, parse func(name, text string) (T, error), warnings *[]warning) bool {
	if len(texts) > engine.MaxSettings || maps.Equal(texts, f.texts) {
		return false
	}
	known, malformed := parseAll(texts, parse)
	for name, err := range malformed {
		if before, ok := f.known[name]; ok {
			known[name] = before
		}
		if f.texts[name] != texts[name] {
			*warnings = append(*warnings, warning{"cannot read an override or a block; any earlier one stays in force", err})
		}
	}
	f.texts, f.known, f.malformed = texts, known, malformed
	return true
}

// parseAll parses the entries of a list. malformed has an error for each entry that cannot be parsed.
func parseAll[T any](texts map[string]string, parse func(name, text string) (T, error)) (known map[string]T, malformed map[string]error) {
	known, malformed = make(map[string]T, len(texts)), map[string]error{}
	for name, text := range texts {
		if v, err := parse(name, text); err != nil {
			malformed[name] = err
		} else {
			known[name] = v
		}
	}
	return known, malformed
}

// decode parses JSON from the store.
func decode(text string, v any) error {
	if len(text) > maxSettingBytes {
		return fmt.Errorf("found %d bytes; expected at most %d", len(text), maxSettingBytes)
	}
	return json.Unmarshal([]byte(text), v)
}

// malformed returns the error of an entry that cannot be parsed.
func malformed(what, name string, err error) error {
	return errors.New(oneLine(fmt.Sprintf(`%s "%s" in the store: %s`, what, printable.Text(name, maxName), err)))
}

// drop removes settings that have ended. The caller holds the lock.
func (s *settings) drop() {
	if in := s.current.Load(); in != nil && !in.until.IsZero() && !s.limiter.now().Before(in.until) {
		s.enforce()
	}
}

// enforce puts all settings in force that have not ended. The caller holds the lock.
func (s *settings) enforce() {
	now, in := s.limiter.now(), &inForce{overrides: map[string]Override{}, blocks: map[ruleSubject]time.Time{}}
	holds := func(until time.Time) bool {
		switch {
		case until.IsZero():
			return true
		case !until.After(now):
			return false
		case in.until.IsZero() || until.Before(in.until):
			in.until = until
		}
		return true
	}
	for _, some := range []map[string]Override{s.overrides.known, s.own} {
		for name, v := range some {
			if holds(v.Until) {
				in.overrides[name] = v
			}
		}
	}
	for _, b := range s.blocks.known {
		if holds(b.Until) {
			in.blocks[b.ruleSubject] = b.Until
		}
	}
	if len(in.overrides)+len(in.blocks) == 0 {
		in = nil
	}
	s.current.Store(in)
}
