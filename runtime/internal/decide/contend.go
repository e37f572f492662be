package decide

// Contend makes the claim refuse a call, though its rule does not: others were faster again and again. It may be tried again
// at a time, but not at now. It reports whether the claim can refuse at all.
func (c *Claim) Contend(now, again int64) bool {
	if c.Mode != Enforce || c.Rule.Kind == Block {
		return false
	}
	c.Charged, c.Wait, c.Earliest, c.Room = false, 0, max(again, now+1), 0
	return true
}

// Contend makes every claim refuse that can. It reports whether there is one.
func (call *Call) Contend(now, again int64) bool {
	refused := false
	for i := range call.Claims {
		refused = call.Claims[i].Contend(now, again) || refused
	}
	return refused
}
