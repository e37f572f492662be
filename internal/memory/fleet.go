package memory

import (
	"time"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
)

// Fleet implements backend.Store. The fleet of a store in this process is this process.
func (s *Store) Fleet(prefix string) *fleet.Fleet {
	f, ok := s.fleets.Load(prefix)
	if !ok {
		now := func() time.Time { return time.UnixMicro(s.clock.now()) }
		f, _ = s.fleets.LoadOrStore(prefix, fleet.NewLocal(now, s.Failure))
	}
	return f.(*fleet.Fleet)
}
