package memory

import "sync/atomic"

// bound counts what the store keeps, and bounds it.
type bound struct {
	maxKeys, maxBytes int64
	keys, bytes       atomic.Int64
}

// reserve adds keys and bytes to the counts. If that would exceed a bound, it adds nothing and returns false.
func (b *bound) reserve(keys, bytes int64) bool {
	if !reserve(&b.keys, keys, b.maxKeys) {
		return false
	}
	fits := reserve(&b.bytes, bytes, b.maxBytes)
	if !fits {
		b.count(-keys, 0)
	}
	return fits
}

// reserve adds n to a count unless that would exceed most. Meanwhile the count does not exceed it either, so that no other call fails.
func reserve(count *atomic.Int64, n, most int64) bool {
	for n > 0 {
		now := count.Load()
		if now+n > most {
			return false
		}
		if count.CompareAndSwap(now, now+n) {
			break
		}
	}
	return true
}

func (b *bound) count(keys, bytes int64) {
	if keys != 0 {
		b.keys.Add(keys)
	}
	if bytes != 0 {
		b.bytes.Add(bytes)
	}
}
