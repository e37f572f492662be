package engine

// State is what one rule has counted for one subject. Each algorithm implements it in a file of its own.
type State interface {
	// Earliest returns the first time, not before from, at which n permits fit if nothing else is admitted until then.
	Earliest(c *Claim, n, now, from int64) int64

	// Room returns how many permits fit now.
	Room(c *Claim, now int64) int64

	// Full returns when all permits are back, or now if they are.
	Full(c *Claim, now int64) int64

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

	// Size returns about how many bytes of memory the state takes.
	Size() int64

	// Grows returns an upper bound for the bytes that the state grows by when the claim's cost is charged.
	Grows(c *Claim, now int64) int64
}

// longAgo is before any other time. Subtracting a duration from it does not overflow.
const longAgo = -1 << 60

// Cell is all that a store keeps for one rule and subject.
type Cell struct {
	State  State
	Free   intervals // places that were given up and that other calls may use
	Until  int64     // when the subject's last block ends
	Length int64     // of that block
	Paused int64     // when the subject's pause ends
}

// NewCell returns the cell of a subject that was never charged.
func NewCell(r *Rule) Cell { return Cell{State: table[r.Kind].state(r), Until: longAgo} }

// Expiry returns when the cell can be forgotten.
func (cell *Cell) Expiry(r *Rule) int64 {
	return max(cell.State.Expiry(r), cell.blockExpiry(r), cell.Paused)
}
