package engine

// giver is a state that knows which permits are the newest. The others give permits back as if they had been charged just now.
type giver interface {
	// give gives back up to n permits, the newest ones that are no places.
	give(c *Claim, n, now int64)
}

// give gives back up to n permits, whichever calls took them.
func (cell *Cell) give(c *Claim, n, now int64) {
	if g, ok := cell.State.(giver); ok {
		g.give(c, n, now)
		return
	}
	c.At = now
	cell.State.GiveBack(c, n, now, false)
}
