package engine

// day is a day, in microseconds. A block that begins within a day after the end of the last one is longer.
const day = 24 * 3600 * 1_000_000

// stopped notes whether the claim's subject is paused or blocked. It returns until when, or now if it is neither.
func (x *Rare) stopped(c *Claim, now int64) (until int64) {
	until = now
	if c.Rule.Pausable && x.Paused > now {
		c.Paused, until = x.Paused, x.Paused
	}
	if c.Rule.Block > 0 && x.Until > now {
		c.Blocked, until = true, max(until, x.Until)
	}
	return until
}

// block begins a block, unless the call is a peek. It returns when the block ends.
func (cell *Cell) block(r *Rule, now int64, peek bool) int64 {
	length := r.Block
	if last := cell.Rare; last != nil && r.BlockMax > 0 && now < last.Until+day {
		length = max(length, min(2*last.Length, r.BlockMax))
	}
	if !peek {
		cell.rare().Until, cell.rare().Length = now+length, length
	}
	return now + length
}

// blockExpiry returns when the last block ceases to matter.
func (x *Rare) blockExpiry(r *Rule) int64 {
	if r.BlockMax > 0 {
		return x.Until + day
	}
	return x.Until
}
