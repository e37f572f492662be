package memory

import (
	"context"
	"maps"
	"sync"
	"time"
)

// settings holds texts by list and name.
type settings struct {
	sync.Mutex
	texts map[string]map[string]string
}

// Settings implements engine.Settings.
func (s *Store) Settings(_ context.Context, list string) (map[string]string, error) {
	s.settings.Lock()
	defer s.settings.Unlock()
	return maps.Clone(s.settings.texts[list]), nil
}

// Set implements engine.Settings.
func (s *Store) Set(_ context.Context, list, name, text string, replaces func(old string) bool) (bool, error) {
	s.settings.Lock()
	defer s.settings.Unlock()
	texts := s.settings.texts[list]
	if old, found := texts[name]; found && replaces != nil && !replaces(old) {
		return false, nil
	}
	if texts == nil {
		if s.settings.texts == nil {
			s.settings.texts = make(map[string]map[string]string)
		}
		texts = make(map[string]string)
		s.settings.texts[list] = texts
	}
	texts[name] = text
	return true, nil
}

// Register implements engine.Settings. It ignores life: the list lasts as long as the process.
func (s *Store) Register(ctx context.Context, list string, texts map[string]string, _ time.Duration) error {
	for name, text := range texts {
		_, _ = s.Set(ctx, list, name, text, nil)
	}
	return nil
}

// Unset implements engine.Settings.
func (s *Store) Unset(_ context.Context, list string, names ...string) error {
	s.settings.Lock()
	defer s.settings.Unlock()
	for _, name := range names {
		delete(s.settings.texts[list], name)
	}
	return nil
}
