package engine

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

// load sets b to the bucket in the record. It sets field by field, because copying a bucket that was just written takes longer than using it.
func (r *Record) load(b *bucket) {
	b.full, b.last, b.parts, b.limit = r.numbers[0], r.numbers[1], int32(r.numbers[2]>>32), int32(r.numbers[2])
	b.cut, b.oldFull = longAgo, longAgo
}

func (b *bucket) numbers() [3]int64 {
	return [3]int64{b.full, b.last, int64(b.parts)<<32 | int64(b.limit)}
}

func (r *Record) window() window { return window{r.numbers[0], r.numbers[1], r.numbers[2]} }

// Unpacked is the memory for unpacking a record. Clear it and use it again, so that unpacking allocates nothing.
type Unpacked struct {
	cell    Cell
	bucket  bucket
	windows windows
	only    [1]window
}

// Unpack returns the cell of a record. Call Pack after changing the cell.
func (r *Record) Unpack(rule *Rule, u *Unpacked) *Cell {
	if r.cell != nil {
		return r.cell
	}
	if rule.Kind.isPlainBucket() {
		r.load(&u.bucket)
		u.cell = Cell{State: &u.bucket, Until: longAgo}
	} else {
		u.only[0] = r.window()
		u.windows.list = u.only[:]
		u.cell = Cell{State: &u.windows, Until: longAgo}
	}
	return &u.cell
}

// Pack stores the cell in u in the record. If the record has a cell of its own, that was changed in place, and u is empty.
func (r *Record) Pack(u *Unpacked) {
	plain := len(u.cell.Free) == 0 && u.cell.Until == longAgo && u.cell.Paused == 0
	switch u.cell.State.(type) {
	case *bucket:
		r.numbers = u.bucket.numbers()
		if !plain || u.bucket.oldFull > longAgo {
			b := u.bucket
			r.cell = u.cell.with(&b)
		}
	case *windows:
		w := window{longAgo, longAgo, 0}
		if len(u.windows.list) > 0 {
			w = u.windows.list[0]
		}
		r.numbers = [3]int64{w.start, w.stop, w.used}
		if !plain || len(u.windows.list) > 1 {
			r.cell = u.cell.with(&windows{append([]window(nil), u.windows.list...)})
		}
	}
}

// with returns a copy of the cell with another state.
func (cell Cell) with(state State) *Cell {
	cell.State = state
	return &cell
}

// Admits reports whether a claim is simple: its rule is in enforce mode, admits the claim at once as [Call.Decide] would, and needs no more
// memory for it, and the record does not expire sooner then. The call must be neither a Peek nor have Report, UpTo or Lease. Most claims are
// simple.
func (r *Record) Admits(c *Claim, now int64) bool {
	switch {
	case c.Mode != Enforce:
		return false
	case c.Rule.Kind.KeepsTimes() && r.cell.State.Expiry(c.Rule) > now+c.Rule.Per:
		return false // there are later permits, and the charge may be recorded at their time
	case r.cell != nil && r.cell.converts(c):
		return false
	case r.cell != nil:
		return !r.cell.isBlocked(c.Rule, now) && r.cell.Paused <= now && r.cell.State.Earliest(c, c.Cost, now, now) <= now && r.cell.State.Grows(c, now) == 0
	case c.Rule.Kind.isPlainBucket():
		var b bucket
		r.load(&b)
		return int64(b.limit) == c.Limit && b.Earliest(c, c.Cost, now, now) <= now
	}
	w := r.windowAt(c.Rule, now)
	return w.used+c.Cost <= c.Limit
}

// converts reports whether a charge of the claim converts a bucket to another limit. The bucket may then expire sooner.
func (cell *Cell) converts(c *Claim) bool {
	switch s := cell.State.(type) {
	case *bucket:
		return int64(s.limit) != c.Limit
	case *warmup:
		return int64(s.limit) != c.Limit
	}
	return false
}

// Charge charges a simple claim. It never makes the record expire sooner.
func (r *Record) Charge(c *Claim, now int64) {
	c.Clear()
	c.Charged, c.At, c.Earliest = c.Cost, now, now
	switch {
	case r.cell != nil:
		if !r.cell.State.Commit(c, c.Cost, now, now) {
			c.Charged, c.At = 0, 0
		}
	case c.Rule.Kind.isPlainBucket():
		var b bucket
		r.load(&b)
		b.add(c, c.Cost, now, now)
		r.numbers = b.numbers()
	default:
		w := r.windowAt(c.Rule, now)
		r.numbers = [3]int64{min(w.start, now), w.stop, w.used + c.Cost}
	}
}

// windowAt returns the window that is open now, or the one that a charge would open.
func (r *Record) windowAt(rule *Rule, now int64) window {
	if w := r.window(); w.stop > now {
		return w
	}
	return open(rule, now)
}

// Expiry returns when the record can be forgotten: from then on it is equivalent to a new one.
func (r *Record) Expiry(rule *Rule) int64 {
	if r.cell != nil {
		return r.cell.Expiry(rule)
	}
	if rule.Kind.isPlainBucket() {
		var b bucket
		r.load(&b)
		return b.Expiry(rule)
	}
	return r.numbers[1]
}

// Size returns about how many bytes the record refers to.
func (r *Record) Size() int64 {
	if r.cell == nil {
		return 0
	}
	return r.cell.size()
}

// cellSize is the size of a cell without its state and free places, in bytes.
const cellSize = 64

func (cell *Cell) size() int64 { return cellSize + int64(cap(cell.Free))*32 + cell.State.Size() }
