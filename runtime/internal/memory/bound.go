package memory

import "sync/atomic"

// bound counts what the store keeps, and bounds it.
type bound struct {
	maxKeys, maxBytes int64
	keys, bytes       atomic.Int64
}

// reserve adds keys and bytes to the counts. If that would exceed a bound, it adds nothing and returns false.
func (b *bound) reserve(keys, bytes int64) bool {
	if keys > 0 && b.keys.Add(keys) > b.maxKeys {
		b.keys.Add(-keys)
		return false
	}
	if bytes > 0 && b.bytes.Add(bytes) > b.maxBytes {
		b.add(-keys, -bytes)
		return false
	}
	return true
}

func (b *bound) add(keys, bytes int64) {
	if keys != 0 {
		b.keys.Add(keys)
	}
	if bytes != 0 {
		b.bytes.Add(bytes)
	}
}
