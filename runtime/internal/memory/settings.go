package memory

import (
	"context"
	"maps"
	"sync"
)

// settings are texts by prefix and name.
type settings struct {
	sync.Mutex
	texts map[string]map[string]string
}

// Settings implements engine.Settings.
func (s *Store) Settings(_ context.Context, prefix string) (map[string]string, error) {
	s.settings.Lock()
	defer s.settings.Unlock()
	return maps.Clone(s.settings.texts[prefix]), nil
}

// Set implements engine.Settings.
func (s *Store) Set(_ context.Context, prefix, name, text string, onlyNew bool) (bool, error) {
	s.settings.Lock()
	defer s.settings.Unlock()
	texts := s.settings.texts[prefix]
	if _, found := texts[name]; found && onlyNew {
		return false, nil
	}
	if texts == nil {
		if s.settings.texts == nil {
			s.settings.texts = make(map[string]map[string]string)
		}
		texts = make(map[string]string)
		s.settings.texts[prefix] = texts
	}
	texts[name] = text
	return true, nil
}

// Unset implements engine.Settings.
func (s *Store) Unset(_ context.Context, prefix, name string) error {
	s.settings.Lock()
	defer s.settings.Unlock()
	delete(s.settings.texts[prefix], name)
	return nil
}
