package engine

// giver is a state that knows which permits are the newest, or which are places. The others give permits back as if they had been charged just now.
type giver interface {
	// give gives back up to n permits, the newest ones that are no places.
	give(c *Claim, n, now int64)
}

// give gives back up to n permits, whichever calls took them.
func (cell *Cell) give(c *Claim, n, now int64) {
	state := cell.State(c.Rule)
	if g, ok := state.(giver); ok {
		g.give(c, n, now)
		return
	}
	c.At = now
	state.GiveBack(c, n, now, false)
}
