package engine

// PausedUntil returns when the last pause of the call ends, or 0.
func (call *Call) PausedUntil() (until int64) {
	for i := range call.Claims {
		if c := &call.Claims[i]; c.Mode == Enforce {
			until = max(until, c.Paused)
		}
	}
	return until
}

// changePause begins, replaces or ends the pause of the claim's subject.
func (cell *Cell) changePause(change Change, d, now int64) {
	x := cell.rare()
	switch {
	case d < 0:
		x.Paused = 0
	case change == Repauses:
		x.Paused = now + d
	default:
		x.Paused = max(x.Paused, now+d)
	}
}
