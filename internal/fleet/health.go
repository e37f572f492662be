package fleet

import (
	"context"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/redisinfo"
)

// Health is how a store is, as this process sees it.
type Health struct {
	RoundTrip time.Duration // of one command
	Memory    int64         // bytes in use; 0 if the server does not say
	MaxMemory int64         // 0 if there is no bound, or the server does not say
	Epoch     string        // of the settings; "" if nothing was ever set, or the store lost all
	Version   int64         // of the newest setting
}

// IsLocal reports whether the store is in this process.
func (f *Fleet) IsLocal() bool { return f.server == nil }

// Health asks the server that has the keys of the fleet. Many users may not ask for the memory.
func (f *Fleet) Health(ctx context.Context) (h Health, err error) {
	if f.server == nil {
		return h, f.Status().Err
	}
	began := time.Now()
	replies, err := f.server.Do(ctx, Command{"MGET", f.keys.epoch, f.keys.version})
	if err != nil {
		return h, err
	}
	h.RoundTrip = time.Since(began)
	h.Epoch, h.Version = epochAndVersion(replies[0])
	if replies, err := f.server.Do(ctx, Command{"INFO", "memory"}); err == nil {
		text, _ := replies[0].(string)
		info := redisinfo.Fields(text)
		h.Memory, h.MaxMemory = redisinfo.Number(info, "used_memory"), redisinfo.Number(info, "maxmemory")
	}
	return h, nil
}
