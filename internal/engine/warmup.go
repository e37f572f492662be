package engine

import "fmt"

// warmup is a Prepaid bucket without a burst that also stores idle time, up to the rule's Warmup. Stored time above half of the Warmup is
// cold: its permits cost up to three times as much, rising linearly with the stored time. This is SmoothWarmingUp of Guava's RateLimiter with a
// cold factor of 3. The price of a call is fixed when it is admitted, whatever is given back later.
type warmup struct {
	bucket
	stored int64
}

func newWarmup(r *Rule) State { return &warmup{bucket: bucket(empty), stored: r.Warmup} }

// warmupTerms are the period and the Warmup. A claim that gives permits back also has the price of its charge, and its ownDebt.
func warmupTerms(c *Claim, _, _ int64) Terms {
	t := Terms{A: c.Rule.Per, B: c.Rule.Warmup}
	if c.Delta < 0 {
		extra, stored := c.Price(-c.Delta)
		t.Text = fmt.Appendf(nil, "%d %d %d", extra, stored, c.ownDebt())
	}
	return t
}

// idle returns the idle time that is stored by now.
func (w *warmup) idle(c *Claim, now int64) int64 {
	stored := w.stored
	if x := w.at(c, now).full; x < now {
		stored += now - x
	}
	return min(c.Rule.Warmup, stored)
}

func (w *warmup) Commit(c *Claim, n, now, _ int64) bool {
	stored := w.idle(c, now)
	above := max(0, stored-c.Rule.Warmup/2)
	worth, _ := c.gain(0, 0, n)
	cold := min(above, worth)
	c.Extra, c.Stored = MulDiv(2*cold, 2*above-cold, c.Rule.Warmup), min(stored, worth)
	w.bucket.Commit(c, n, now, now)
	w.full += c.Extra
	w.stored = stored - c.Stored
	return true
}

func (w *warmup) Charge(c *Claim, n, now int64) {
	w.stored = w.idle(c, now)
	w.bucket.Charge(c, n, now)
}

// GiveBack knows no time of the last charge: a state on Redis has the stored time in its place. If the bucket is in debt beyond the end of
// the charge's own debt, later calls have been charged from there on, and nothing comes back.
func (w *warmup) GiveBack(c *Claim, n, now int64, _ bool) {
	if w.last = c.ownDebt(); w.whole() <= w.last {
		w.last = c.At
	}
	_, stored := c.Price(n)
	stored += w.idle(c, now)
	if w.subtract(c, n, now) {
		w.stored = min(c.Rule.Warmup, stored)
	}
}

// give also gives back places: the state does not know them.
func (w *warmup) give(c *Claim, n, now int64) {
	c.At = now
	w.GiveBack(c, n, now, false)
}

// ownDebt returns when the charge is paid. No later call runs before.
func (c *Claim) ownDebt() int64 { return c.At + c.Extra + MulDiv(c.Charged, c.Rule.Per, c.Limit) }

func (w *warmup) Expiry(r *Rule) int64 { return w.whole() + r.Warmup }
