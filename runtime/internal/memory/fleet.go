package memory

import (
	"sync"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
)

// fleets are what the limiters of each prefix know in common. The fleet of a store in this process is this process.
type fleets struct {
	sync.Mutex
	byPrefix map[string]*fleet.Fleet
}

// Fleet implements engine.Backend.
func (s *Store) Fleet(prefix string) *fleet.Fleet {
	s.fleets.Lock()
	defer s.fleets.Unlock()
	f := s.fleets.byPrefix[prefix]
	if f == nil {
		f = fleet.NewLocal(func() time.Time { return time.UnixMicro(s.clock.now()) }, s.Failure)
		if s.fleets.byPrefix == nil {
			s.fleets.byPrefix = map[string]*fleet.Fleet{}
		}
		s.fleets.byPrefix[prefix] = f
	}
	return f
}
