package ratelimit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/printable"
	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
)

// The lists of texts that a store keeps for the limiters of one prefix.
const (
	listOverrides = "overrides"
	listBlocked   = "blocked"
	listRules     = "rules"
)

func (l *Limiter) list(name string) string { return l.prefix + ":" + name }

// settings are overrides and blocks. A limiter reads those of its store in the background, about once a second while it is called.
type settings struct {
	limiter *Limiter
	due     atomic.Bool             // the store is to be read
	reading chan struct{}           // holds a value while the store is read or written
	current atomic.Pointer[inForce] // nil if nothing is in force

	mu        sync.Mutex
	own       map[string]Override // of this limiter alone
	overrides followed[Override]
	blocks    followed[block]
	failed    error // why the store could not be read the last time
}

// followed is what a list of the store said the last time.
type followed[T any] struct {
	texts     map[string]string
	known     map[string]T
	malformed map[string]error
}

// inForce is the settings that have not ended. It is replaced as a whole.
type inForce struct {
	overrides map[string]Override
	blocks    map[ruleSubject]time.Time // until when
	until     time.Time                 // when the first of them ends; zero is never
	rules     sync.Map                  // *prepared to *overridden
	count     atomic.Int64              // of rules
}

const (
	maxSettings     = engine.MaxSettings // of a list
	maxSettingBytes = 1000
	readEvery       = time.Second
	readTimeout     = 5 * time.Second
)

var errMany = fmt.Errorf("there are more than %d; they are not followed", maxSettings)

func (s *settings) start(l *Limiter) {
	s.limiter, s.reading, s.own = l, make(chan struct{}, 1), map[string]Override{}
	s.due.Store(true)
}

// follow has the store read in the background, if that is due.
func (s *settings) follow() {
	if !s.due.Load() || !s.due.CompareAndSwap(true, false) {
		return
	}
	select {
	case s.reading <- struct{}{}:
	default: // being read or written, which may fail
		s.due.Store(true)
		return
	}
	go func() {
		defer func() { <-s.reading }()
		ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
		defer cancel()
		_ = s.read(ctx) // Err tells
	}()
}

// alone reads or writes while nothing else does, or else an older answer could come later. The error is the context's.
func (s *settings) alone(ctx context.Context, do func()) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	select {
	case s.reading <- struct{}{}:
		defer func() { <-s.reading }()
		do()
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// write changes what the store has, and follows. That it cannot be read back is no error of the change.
func (s *settings) write(ctx context.Context, change func() error) error {
	var err error
	wait := s.alone(ctx, func() {
		if err = change(); err == nil {
			_ = s.read(ctx) // Err tells
		}
	})
	return storeError(ctx, "", cmp.Or(wait, err))
}

// texts returns the texts of a list. It is an error if there are more than limiters follow.
func (s *settings) texts(ctx context.Context, list string) (map[string]string, error) {
	texts, err := s.limiter.store.Settings(ctx, s.limiter.list(list))
	if err == nil && len(texts) > maxSettings {
		err = fmt.Errorf("%s: %w", list, errMany)
	}
	return texts, err
}

// read reads the store's overrides and blocks. Of a list that cannot be read, the earlier ones stay in force.
func (s *settings) read(ctx context.Context) error {
	overrides, failed := s.texts(ctx, listOverrides)
	blocks, err := s.texts(ctx, listBlocked)
	s.limiter.used.again()
	time.AfterFunc(readEvery, func() { s.due.Store(true) })
	s.mu.Lock()
	defer s.mu.Unlock()
	changed := failed == nil && s.overrides.take(overrides, parseOverride, s.limiter.logger)
	changed = err == nil && s.blocks.take(blocks, parseBlock, s.limiter.logger) || changed
	if changed {
		s.enforce()
	} else {
		s.drop()
	}
	told := errors.Is(s.failed, errMany)
	if s.failed = joinErrors(failed, err); !told && errors.Is(s.failed, errMany) {
		s.limiter.logger.Warn("a list in the store is too long; what it said earlier stays in force", "err", oneLine(s.failed.Error()))
	}
	return s.failed
}

// take takes in the texts of a list, and reports whether they changed. A text that is not understood is logged, and does not replace an
// earlier one of its name.
func (f *followed[T]) take(texts map[string]string, parse func(name, text string) (T, error), logger *slog.Logger) bool {
	if maps.Equal(texts, f.texts) {
		return false
	}
	known, malformed := parseAll(texts, parse)
	for name, err := range malformed {
		if before, ok := f.known[name]; ok {
			known[name] = before
		}
		if f.texts[name] != texts[name] {
			logger.Warn("a setting of rate limits is not understood; any earlier one stays in force", "err", err.Error())
		}
	}
	f.texts, f.known, f.malformed = texts, known, malformed
	return true
}

// parseAll reads the texts of a list, and says what is wrong with those that are not understood.
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

// decode reads JSON from the store.
func decode(text string, v any) error {
	if len(text) > maxSettingBytes {
		return fmt.Errorf("found %d bytes; expected at most %d", len(text), maxSettingBytes)
	}
	return json.Unmarshal([]byte(text), v)
}

// malformed says what is wrong with the text of a name in the store.
func malformed(what, name string, err error) error {
	return errors.New(oneLine(fmt.Sprintf(`%s "%s" in the store: %s`, what, printable.Text(name, maxName), err)))
}

// drop lets go of settings that have ended. The caller holds the lock.
func (s *settings) drop() {
	if in := s.current.Load(); in != nil && !in.until.IsZero() && !s.limiter.now().Before(in.until) {
		s.enforce()
	}
}

// enforce puts in force what is set and has not ended. The caller holds the lock.
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
