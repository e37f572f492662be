package engine

import "slices"

// Record is a compact cell, for stores in memory. It holds a bucket or a single window as three numbers, and anything else as a cell. What the
// numbers mean depends on the kind of the rule, which is not part of the Record.
type Record struct {
	numbers [3]int64 // a bucket's full, last, and parts and limit in one; or a window's start, stop and used
	cell    *Cell    // not nil for other kinds, and if there are free places, a block, a pause, a raised limit, or windows of calls that wait
}

// NewRecord returns the record of a subject that was never charged.
func NewRecord(r *Rule) Record {
	switch {
	case r.Kind.isPlainBucket():
		return Record{numbers: unused.numbers()}
	case r.Kind == FixedWindow || r.Kind == Calendar:
		return Record{numbers: [3]int64{longAgo, longAgo, 0}}
	}
	cell := NewCell(r)
	return Record{cell: &cell}
}

// isPlainBucket reports whether the kind's state is a bucket and nothing else.
func (k Kind) isPlainBucket() bool { return k == TokenBucket || k == LeakyBucket || k == Prepaid }

// copyTo sets b to the bucket in the record. It sets field by field, because copying a bucket that was just written takes longer than using it.
func (r *Record) copyTo(b *bucket) {
	b.full, b.last, b.parts, b.limit = r.numbers[0], r.numbers[1], int32(r.numbers[2]>>32), int32(r.numbers[2])
	b.cut, b.oldFull = longAgo, longAgo
}

func (b *bucket) numbers() [3]int64 {
	return [3]int64{b.full, b.last, int64(b.parts)<<32 | int64(b.limit)}
}

// Unpacked is the memory for unpacking a record. Use it again, so that unpacking allocates nothing.
type Unpacked struct {
	New     Record // of a subject that has none yet
	size    int64  // of the record when it was unpacked, in bytes
	cell    Cell
	bucket  bucket
	windows windows
	only    [1]window
}

// Unpack returns the cell of a record. Call Pack after changing the cell.
func (r *Record) Unpack(rule *Rule, u *Unpacked) *Cell {
	u.size = r.Size()
	switch {
	case r.cell != nil:
		return r.cell
	case rule.Kind.isPlainBucket():
		r.copyTo(&u.bucket)
		u.cell = Cell{State: &u.bucket, Until: longAgo}
	default:
		u.only[0] = window{r.numbers[0], r.numbers[1], r.numbers[2]}
		u.windows.list = u.only[:]
		u.cell = Cell{State: &u.windows, Until: longAgo}
	}
	return &u.cell
}

// Pack stores the cell that Unpack returned in the record. It returns by how many bytes the record has grown, and when it can be forgotten.
func (r *Record) Pack(rule *Rule, u *Unpacked) (grown, expiry int64) {
	switch {
	case r.cell != nil: // it was changed in place
	case rule.Kind.isPlainBucket():
		r.numbers = u.bucket.numbers()
		if u.cell.isPlain() && u.bucket.oldFull == longAgo {
			return 0, u.bucket.Expiry(rule)
		}
		b := u.bucket
		r.cell = u.cell.with(&b)
	default:
		if n := len(u.windows.list); n <= 1 && u.cell.isPlain() {
			if r.numbers = [3]int64{longAgo, longAgo, 0}; n > 0 {
				w := &u.windows.list[0]
				r.numbers = [3]int64{w.start, w.stop, w.used}
			}
			return 0, r.numbers[1]
		}
		r.cell = u.cell.with(&windows{slices.Clone(u.windows.list)})
	}
	return r.Size() - u.size, r.cell.Expiry(rule)
}

// isPlain reports whether the cell has nothing but its state.
func (cell *Cell) isPlain() bool {
	return len(cell.Free) == 0 && cell.Until == longAgo && cell.Paused == 0
}

// with returns a copy of the cell with another state.
func (cell Cell) with(state State) *Cell {
	cell.State = state
	return &cell
}

// Expiry returns when the record can be forgotten: from then on it is equivalent to a new one.
func (r *Record) Expiry(rule *Rule) int64 {
	if r.cell != nil {
		return r.cell.Expiry(rule)
	}
	if rule.Kind.isPlainBucket() {
		var b bucket
		r.copyTo(&b)
		return b.Expiry(rule)
	}
	return r.numbers[1]
}

// Grows returns an upper bound for the bytes that the record grows by when the claim is charged to its cell.
func (r *Record) Grows(c *Claim, now int64) int64 {
	if r.cell == nil {
		return 0 // see Size
	}
	return r.cell.State.Grows(c, now)
}

// Size returns about how many bytes the record refers to. If it has no cell yet, these are the bytes of the cell that it gets when a block or a
// pause begins, when a bucket's limit is raised, or when a call waits for the next window. None of that must fail because a store is full.
func (r *Record) Size() int64 {
	if r.cell == nil {
		return cellBytes + emptyWindows + 2*windowBytes // a bucket takes less
	}
	return r.cell.size()
}

// cellBytes is the size of a cell without its state and free places.
const cellBytes = 64

func (cell *Cell) size() int64 {
	return cellBytes + intervalBytes*int64(cap(cell.Free)) + cell.State.Size()
}
