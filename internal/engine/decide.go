package engine

// Decide decides a call on the cells of its claims, and sets the results in the claims. Nothing else may use the cells meanwhile.
func (call *Call) Decide(cells []*Cell, now int64) Verdict {
	v := Verdict{Now: now, At: now, Finding: Finding{Admitted: !call.Refused}}
	for i, cell := range cells {
		call.check(&call.Claims[i], cell, &v)
	}
	if v.At > now {
		call.later(cells, &v)
	}
	switch {
	case !v.Admitted:
		if !call.AskAgain(v) {
			v.At = 0 // the refusal is final
			call.refuse(cells, now)
		}
	case call.Lease > 0:
		call.lease(cells, &v)
	case !call.Peek:
		if call.UpTo {
			v.Taken = call.upTo(cells, now)
		}
		for i, cell := range cells {
			call.charge(&call.Claims[i], cell, &v)
		}
	}
	call.report(cells, now)
	return v
}

// check computes when a rule admits its claim.
func (call *Call) check(c *Claim, cell *Cell, v *Verdict) {
	c.Clear()
	state := cell.State(c.Rule)
	if b, ok := state.(*bucket); ok && !call.Peek {
		*b = *b.at(c, v.Now)
	}
	if c.Mode == Trigger {
		return
	}
	n := c.Cost
	if call.UpTo {
		n = 1
	}
	at := state.Earliest(c, n, v.Now, v.Now)
	if cell.Rare != nil {
		c.More = cell.Rare.stopped(c, v.Now) // see report
		at = max(at, c.More)
	}
	c.Earliest, c.Refused = at, c.Blocked || at > v.Now+c.Wait
	if c.Mode == Enforce {
		v.Admitted, v.At = v.Admitted && !c.Refused, max(v.At, at)
	}
}

// later decides a call that cannot be admitted now.
func (call *Call) later(cells []*Cell, v *Verdict) {
	if until := call.PausedUntil(); until > 0 {
		v.At, v.Admitted = until, false // no place is kept in a pause
	} else if !call.Refused {
		call.place(cells, v)
	}
}

// place looks for a place for a call that cannot be admitted now, if its rules let it wait.
func (call *Call) place(cells []*Cell, v *Verdict) {
	if at, ok := call.freePlace(cells, v.Now); ok {
		v.At, v.Admitted = at, true
		for i := range call.Claims {
			call.Claims[i].Refused = call.Claims[i].Refused && call.Claims[i].Mode != Enforce
		}
		return
	}
	for moved := v.Admitted; moved && v.Admitted; { // a rule that admits the call now may refuse it at a later time
		moved = false
		for i := range call.Claims {
			c := &call.Claims[i]
			if c.Mode != Enforce {
				continue
			}
			if at := cells[i].State(c.Rule).Earliest(c, c.Cost, v.Now, v.At); at > v.At {
				v.At, c.Earliest, c.Refused, moved = at, at, at > v.Now+c.Wait, true
				v.Admitted = v.Admitted && !c.Refused
			}
		}
	}
	for i := range call.Claims {
		c := &call.Claims[i]
		v.Admitted = v.Admitted && (c.Mode != Enforce || cells[i].State(c.Rule).Reserves(c, v.Now, v.At))
	}
}

// charge charges a claim of a call that is admitted.
func (call *Call) charge(c *Claim, cell *Cell, v *Verdict) {
	if c.Refused {
		return
	}
	n, at := c.Cost, v.At
	if call.UpTo {
		n = v.Taken
	}
	if c.Mode != Enforce {
		at = v.Now // such a rule counts now, even if the call waits
	}
	state, room := cell.State(c.Rule), int64(0)
	if c.Mode == Trigger {
		room = state.Room(c, v.Now)
	}
	c.Charged, c.At = n, at
	if !(at > v.Now && cell.take(c, at, v.Now)) && !state.Commit(c, n, v.Now, at) {
		c.Charged, c.At = 0, 0
	}
	if c.Charged > 0 && 0 < room && room <= n {
		c.Fired = c.Limit - room + n
	}
}

// refuse begins the blocks of the rules that refuse the call. Then it looks for rules that admit the call now, but not when the others do: by
// then they no longer know its member. So these refuse the call, too.
//
// For example, a program with a limit of 5 has let five members in, of which the call's own leaves in 10 s. This program has a limit of 3. Now
// the member is known. When another rule admits the call in 20 s, the member is one too many.
func (call *Call) refuse(cells []*Cell, now int64) {
	at := now
	for i, cell := range cells {
		c := &call.Claims[i]
		if c.Refused && c.Rule.Block > 0 && !c.Blocked && !call.Grows {
			c.More = max(c.More, cell.block(c.Rule, now, call.Peek))
			c.Earliest = max(c.Earliest, c.More)
		}
		if c.Refused && c.Mode == Enforce {
			at = max(at, c.Earliest)
		}
	}
	for before := int64(0); at != before; {
		before = at
		for i, cell := range cells {
			c := &call.Claims[i]
			if c.Mode != Enforce || c.Refused || !c.Rule.Kind.CountsMembers() {
				continue
			}
			if earliest := cell.State(c.Rule).Earliest(c, c.Cost, now, at); earliest > at {
				at, c.Earliest, c.Refused = earliest, earliest, true
			}
		}
	}
}

// report says how many permits the rules have left after the decision. See Answer. Until then, the More of a claim is when its block and its pause
// end.
func (call *Call) report(cells []*Cell, now int64) {
	for i, cell := range cells {
		c := &call.Claims[i]
		always := call.Peek || call.Report || c.Fired > 0
		if always || c.Refused && (c.Cost > 1 && !call.UpTo || c.Rule.Kind.Row().Releases) {
			c.report(cell.State(c.Rule), now, c.Blocked || !call.Grows)
		} else {
			c.More = 0
		}
		if c.Earliest <= now {
			c.Earliest = 0
		}
	}
}

// report is that for one claim. blocks says that a rule with a Block that refuses the claim blocks its subject now.
func (c *Claim) report(state State, now int64, blocks bool) {
	c.Room, c.Full = state.Room(c, now), state.Full(c, now)
	if c.Refused && c.Rule.Block > 0 && blocks {
		c.Room = 0
	}
	room := max(0, c.Room)
	if c.More > now {
		room = 0
	}
	c.More = max(c.More, state.More(c, room, now))
}

// upTo returns how many permits an UpTo call takes from each rule. It marks each Shadow that has fewer as refused.
func (call *Call) upTo(cells []*Cell, now int64) int64 {
	n := call.Claims[0].Cost
	for i := range call.Claims {
		if c := &call.Claims[i]; c.Mode == Enforce {
			n = min(n, max(0, cells[i].State(c.Rule).Room(c, now)))
		}
	}
	for i := range call.Claims {
		if c := &call.Claims[i]; c.Mode == Shadow && cells[i].State(c.Rule).Room(c, now) < n {
			c.Refused, c.Earliest = true, cells[i].State(c.Rule).Earliest(c, min(n, c.Limit), now, now)
		}
	}
	return n
}

// Adjust changes the charge of each claim by the claim's Delta, or what else the call's Change says. Nothing else may use the cells meanwhile.
func (call *Call) Adjust(cells []*Cell, now int64) {
	if call.IDs == nil {
		call.adjust(cells, now)
		return
	}
	c := &call.Claims[0]
	for n, ids := c.Delta, call.IDs; len(ids) > 0; ids = ids[1:] {
		c.Delta, c.ID = n, ids[0]
		call.adjust(cells, now)
	}
}

func (call *Call) adjust(cells []*Cell, now int64) {
	for i := range call.Claims {
		c, cell := &call.Claims[i], cells[i]
		n := c.Delta
		c.Delta = 0
		switch {
		case call.Change >= Pauses:
			cell.changePause(call.Change, n, now)
		case n > 0:
			c.At, c.Dated = now, false
			cell.State(c.Rule).Charge(c, n, now)
		case call.Change == Gives:
			cell.give(c, -n, now)
		case n < 0 && c.Dated: // the charge is not a place, so no place becomes free
			cell.State(c.Rule).GiveBack(c, -n, now, call.Rollback)
		case n < 0:
			cell.giveBack(c, -n, now, call.Rollback)
		}
	}
}
