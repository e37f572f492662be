package fleet

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/redisinfo"
)

// Health is how a store is, as this process sees it.
type Health struct {
	RoundTrip time.Duration // of one command
	Measured  bool          // the server said how much memory it uses; many users may not ask
	Memory    int64         // bytes in use, if it was measured
	MaxMemory int64         // in bytes; 0 if it was measured and there is no bound
	Full      bool          // the server refuses what takes memory; false as well if the user may not try
	Epoch     string        // of the settings; "" if nothing was ever set, or the store lost all
	Version   int64         // of the newest setting
}

// IsLocal reports whether the store is in this process.
func (f *Fleet) IsLocal() bool { return f.server == nil }

// Health asks the server that has the keys of the fleet.
func (f *Fleet) Health(ctx context.Context) (h Health, err error) {
	if f.server == nil {
		return h, f.Status().Err
	}
	began := time.Now()
	replies, err := f.do(ctx, Command{"MGET", f.keys.epoch, f.keys.version})
	if err != nil {
		return h, err
	}
	h.RoundTrip = time.Since(began)
	h.Epoch, h.Version = epochAndVersion(replies[0])
	if replies, err := f.do(ctx, Command{"INFO", "memory"}); err == nil {
		text, _ := replies[0].(string)
		info := redisinfo.Fields(text)
		h.Memory, h.MaxMemory = redisinfo.Number(info, "used_memory"), redisinfo.Number(info, "maxmemory")
		h.Measured = info["used_memory"] != ""
	}
	if !h.Measured || h.MaxMemory > 0 && h.Memory >= h.MaxMemory/10*9 {
		h.Full = f.isFull(ctx)
	}
	return h, nil
}

// isFull reports whether the server refuses a command that could take memory. The command changes nothing, as its key does not exist.
func (f *Fleet) isFull(ctx context.Context) bool {
	_, err := f.do(ctx, Command{"SET", f.keys.full, "", "XX"})
	for ; err != nil; err = errors.Unwrap(err) {
		if strings.HasPrefix(err.Error(), "OOM ") {
			return true
		}
	}
	return false
}
