package engine

// State is what is remembered of one rule for one subject. Each algorithm has one in a file of its own.
type State interface {
	// Earliest returns the first time, from a time on, at which the claim fits if nothing else is admitted before.
	Earliest(c *Claim, now, from int64) int64

	// Room returns how many permits fit now.
	Room(c *Claim, now int64) int64

	// Full returns when all permits are there again: now if they are there.
	Full(c *Claim, now int64) int64

	// Reserves reports whether the state can keep a place for the claim at a time to come.
	Reserves(c *Claim, now, at int64) bool

	// Commit charges n permits for a time at which they fit, and says in the claim if they are recorded at another one. It reports
	// whether it charged anything: a member that is known costs nothing.
	Commit(c *Claim, n, now, at int64) bool

	// Charge takes n permits now, beyond the limit where need be. It leaves in the claim's Delta what a debt has no room for.
	Charge(c *Claim, n, now int64)

	// Last reports whether nobody has a later place than n permits of c at a time to come.
	Last(c *Claim, n, now, at int64) bool

	// GiveBack takes back n permits that c was charged at c.At, as far as they still count. A rollback also closes a window
	// that the charge opened.
	GiveBack(c *Claim, n, now int64, rollback bool)

	// Expiry returns the time from which the state says no more than a new one.
	Expiry(r *Rule) int64

	// Size returns about how many bytes of memory the state takes.
	Size() int64

	// Grows returns about how many bytes more it takes after the claim's cost is charged, at most.
	Grows(c *Claim, now int64) int64
}

// longAgo is before any time, with room to subtract.
const longAgo = -1 << 60

// Cell is all that a store keeps for one rule and subject.
type Cell struct {
	State State
	Free  places // given up, and free for others
	Until int64  // the subject is blocked until then
}

// NewCell returns the cell of a subject that was never charged.
func NewCell(r *Rule) Cell { return Cell{State: table[r.Kind].state(r), Until: longAgo} }

// Expiry returns the time from which the cell says no more than a new one.
func (cell *Cell) Expiry(r *Rule) int64 {
	return max(cell.State.Expiry(r), cell.Free.last(), cell.Until)
}
