package engine

// State is what is remembered of one rule for one subject. Each algorithm has one in a file of its own.
type State interface {
	// Earliest returns the first time, not before from, at which n permits fit if nothing else is admitted until then.
	Earliest(c *Claim, n, now, from int64) int64

	// Room returns how many permits fit now.
	Room(c *Claim, now int64) int64

	// Full returns when all permits are there again: now if they are there.
	Full(c *Claim, now int64) int64

	// Reserves reports whether the state can keep a place for the claim at a time at which it fits.
	Reserves(c *Claim, now, at int64) bool

	// Commit charges n permits for a time at which they fit. If it records them at another time, it sets the claim's At and Dated. It
	// reports whether it charged anything: a member that is known costs nothing.
	Commit(c *Claim, n, now, at int64) bool

	// Charge takes n permits now, beyond the limit where need be. It leaves in the claim's Delta what a debt has no room for.
	Charge(c *Claim, n, now int64)

	// Last reports whether n permits that c was charged for a time to come are the latest charge: nobody has a place behind them.
	Last(c *Claim, n, now int64) bool

	// GiveBack takes back n permits that c was charged at c.At, if they still count. A rollback also closes a window that the charge
	// opened.
	GiveBack(c *Claim, n, now int64, rollback bool)

	// Expiry returns when the state can be forgotten: from then on it says no more than a new one.
	Expiry(r *Rule) int64

	// Size returns about how many bytes of memory the state takes.
	Size() int64

	// Grows returns about how many more bytes the state takes, at most, once the claim's cost is charged.
	Grows(c *Claim, now int64) int64
}

// longAgo is before any time, with room to subtract.
const longAgo = -1 << 60

// Cell is all that a store keeps for one rule and subject.
type Cell struct {
	State State
	Free  places // given up, and free for others
	Until int64  // until when the subject is blocked
}

// NewCell returns the cell of a subject that was never charged.
func NewCell(r *Rule) Cell { return Cell{State: table[r.Kind].state(r), Until: longAgo} }

// isBlocked reports whether the subject is blocked. Only a rule with a block asks for that.
func (cell *Cell) isBlocked(r *Rule, now int64) bool { return r.Block > 0 && cell.Until > now }

// Expiry returns when the cell can be forgotten.
func (cell *Cell) Expiry(r *Rule) int64 {
	return max(cell.State.Expiry(r), cell.Free.last(), cell.Until)
}
