package engine

// State is what one rule has counted for one subject. Each algorithm implements it in a file of its own.
type State interface {
	// Earliest returns the first time, not before from, at which n permits fit if nothing else is admitted until then.
	Earliest(c *Claim, n, now, from int64) int64

	// Room returns how many permits fit now. It is below 0 if more are used than the claim's limit: the limit was lowered, or permits were taken
	// beyond it.
	Room(c *Claim, now int64) int64

	// Full returns when all permits are back, or now if they are.
	Full(c *Claim, now int64) int64

	// More returns the first time at which there is room for more than a number of permits, if nothing else is charged until then. It returns now if
	// there is such room now, if nothing more will come, and if nobody knows when. A call of a Prepaid passes as soon as there is no debt, so in debt
	// that time counts.
	More(c *Claim, room, now int64) int64

	// Reserves reports whether the state can keep a place for the claim at the given time, at which the claim fits.
	Reserves(c *Claim, now, at int64) bool

	// Commit charges n permits for a time at which they fit. If it records them at another time, it sets the claim's At and Dated. It
	// reports whether it charged anything: a known member costs nothing.
	Commit(c *Claim, n, now, at int64) bool

	// Charge takes n permits now, even beyond the limit. It sets the claim's Delta to the number of permits that it did not take because a debt
	// would last too long.
	Charge(c *Claim, n, now int64)

	// GiveBack gives back n permits that c was charged at c.At, if they still count. A rollback also closes a window that the charge
	// opened.
	GiveBack(c *Claim, n, now int64, rollback bool)

	// Expiry returns when the state can be forgotten: from then on it is equivalent to a new one.
	Expiry(r *Rule) int64
}

// moreByLimit is the More of a state that has room for as many permits as the limit.
func moreByLimit(s State, c *Claim, room, now int64) int64 {
	if room >= c.Limit {
		return now
	}
	return s.Earliest(c, room+1, now, now)
}

// longAgo is before any other time. Subtracting a duration from it does not overflow.
const longAgo = -1 << 60

// Cell is all that a store keeps for one rule and subject. A bucket, and the present window of a fixed or calendar rule, are in its numbers. All
// else hangs on one pointer.
type Cell struct {
	full  int64 // of a bucket; the stop of a window
	last  int64 // of a bucket; the start of a window
	parts int64 // of a bucket; the permits that are used in a window
	limit int64 // of a bucket
	Rare  *Rare
}

// Rare is what few buckets and windows have, and the states of the other kinds.
type Rare struct {
	state  State      // of a kind that is not in the numbers of a cell
	change *change    // of a bucket; or nil
	ahead  *[]window  // the windows of a fixed or calendar rule after the present one; or nil
	free   *intervals // places that were given up and that other calls may use; or nil
	Until  int64      // when the subject's last block ends
	Length int64      // of that block
	Paused int64      // when the subject's pause ends
}

// empty is a bucket that was never charged, and a rule without a window.
var empty = Cell{full: longAgo, last: longAgo}

// NewCell returns the cell of a subject that was never charged.
func NewCell(r *Rule) Cell {
	cell := empty
	if state := table[r.Kind].state; state != nil {
		cell.rare().state = state(r)
	}
	return cell
}

// State returns what a rule has counted in the cell.
func (cell *Cell) State(r *Rule) State {
	switch r.Kind {
	case TokenBucket, LeakyBucket, Prepaid:
		return (*bucket)(cell)
	case FixedWindow, Calendar, Anchored:
		return (*windows)(cell)
	}
	return cell.Rare.state
}

// rare returns what few cells have, for changing it.
func (cell *Cell) rare() *Rare {
	if cell.Rare == nil {
		cell.Rare = &Rare{Until: longAgo}
	}
	return cell.Rare
}

// FreePlaces returns the number of intervals of free places.
func (cell *Cell) FreePlaces() int { return len(cell.free()) }

// DropFreePlaces forgets the free places. It is for tests that write states without them.
func (cell *Cell) DropFreePlaces() {
	if cell.Rare != nil {
		cell.Rare.free = nil
	}
}

func (cell *Cell) free() intervals {
	if cell.Rare == nil || cell.Rare.free == nil {
		return nil
	}
	return *cell.Rare.free
}

// Expiry returns when the cell can be forgotten.
func (cell *Cell) Expiry(r *Rule) int64 {
	at := cell.State(r).Expiry(r)
	if cell.Rare != nil {
		at = max(at, cell.Rare.blockExpiry(r), cell.Rare.Paused)
	}
	return at
}
