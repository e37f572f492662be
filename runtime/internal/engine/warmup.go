package engine

// warmup is a Prepaid bucket without a burst that also stores idle time, up to the rule's Warmup. Stored time above half of the Warmup is
// cold: its permits cost up to three times as much, rising linearly with the stored time. This is SmoothWarmingUp of Guava's RateLimiter with a
// cold factor of 3. The price of a call is fixed when it is admitted, whatever is given back later.
type warmup struct {
	bucket
	stored int64
}

func newWarmup(r *Rule) State { return &warmup{bucket: bucket{full: longAgo}, stored: r.Warmup} }

// warmupTerms are the terms of a bucket, with Warmup instead of the burst.
func warmupTerms(c *Claim, now, until int64) Terms {
	t := bucketTerms(c, now, until)
	t.B = c.Rule.Warmup
	return t
}

// idle returns the idle time that is stored by now.
func (w *warmup) idle(c *Claim, now int64) int64 {
	stored := w.stored
	if x, _ := w.in(c, now); x < now {
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
	w.add(c, n, now, now)
	w.full += c.Extra
	w.stored = stored - c.Stored
	return true
}

func (w *warmup) Charge(c *Claim, n, now int64) {
	w.stored = w.idle(c, now)
	w.bucket.Charge(c, n, now)
}

func (w *warmup) GiveBack(c *Claim, n, now int64, _ bool) {
	_, stored := c.Price(n)
	stored += w.idle(c, now)
	if w.subtract(c, n, now) {
		w.stored = min(c.Rule.Warmup, stored)
	}
}

func (w *warmup) Expiry(r *Rule) int64 { return w.bucket.Expiry(r) + r.Warmup }

func (w *warmup) Size() int64 { return 32 }
