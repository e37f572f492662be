package decide

import (
	"cmp"
	"slices"
)

// queue is what a bucket remembers while calls wait for their places: its state without them, and the charge of each. So others
// may pass before them who delay none of them, and one that is given back leaves all as if it had never been made.
type queue struct {
	settled arrival
	stored  int64
	charges []charge // by their times; of equal ones, the first that was made comes first
}

// charge is what one call takes of a bucket.
type charge struct {
	at, cost, limit int64
	extra, stored   int64 // as in Claim
}

// maxQueue is how many charges a bucket remembers. Each of them makes it dearer to give one back.
const maxQueue = 256

// settle takes in the charges whose time has come, and the first of those that are too many. These count as charged already, so
// that a call that comes before them may wait for them, and to give one back no longer moves later places up.
func (q *queue) settle(r *Rule, now int64) {
	n := 0
	for ; n < len(q.charges) && (len(q.charges)-n > maxQueue || q.charges[n].at <= now); n++ {
		q.stored = q.settled.add(q.charges[n], r, q.stored)
	}
	q.charges = slices.Delete(q.charges, 0, n)
}

// last returns the time of the last charge.
func (q *queue) last() int64 { return q.charges[len(q.charges)-1].at }

// permits returns how many of another charge's permits it takes: more than any bucket holds if those are of another size.
func (c charge) permits(limit int64) int64 {
	if c.limit != limit {
		return 1 << 34
	}
	return c.cost
}

// free returns when a claim is admitted while others wait, for whom what they have reserved counts as taken before its time.
func (q *queue) free(c *Claim, now int64) int64 {
	needed, from, settled := c.Cost-c.Burst, now, q.settled
	for _, charge := range q.charges {
		if charge.at > now {
			needed += charge.permits(c.Limit)
		}
	}
	for _, charge := range q.charges {
		if charge.at > now {
			if needed <= 0 {
				break
			}
			needed -= charge.permits(c.Limit) // it fits behind this charge only
			from = charge.at
		}
		settled.add(charge, c.Rule, 0)
	}
	return settled.free(c, needed, from)
}

// enqueue makes a charge where it or others wait, and returns what is stored then.
func (b *bucket) enqueue(c charge, r *Rule, now, stored int64) int64 {
	q := b.queue
	if q == nil {
		q = &queue{settled: b.arrival, stored: stored}
	}
	i, _ := slices.BinarySearchFunc(q.charges, c.at+1, func(c charge, at int64) int { return cmp.Compare(c.at, at) })
	q.charges = slices.Insert(q.charges, i, c)
	q.settle(r, now)
	return b.replay(q, r)
}

// giveBack undoes a charge as long as it is remembered, and makes those after it again, at their own times. Afterwards there is
// no telling what came of it, and as many permits are put back. It returns what is stored.
func (b *bucket) giveBack(c charge, r *Rule, now, stored int64) int64 {
	q := b.queue
	if q == nil {
		q = &queue{settled: b.arrival, stored: stored}
	}
	q.settle(r, now)
	last := len(q.charges) - 1
	for last >= 0 && q.charges[last] != c {
		last--
	}
	if last >= 0 {
		q.charges = slices.Delete(q.charges, last, last+1)
	} else if c.at <= now {
		q.stored = q.settled.subtract(c, r, q.stored)
	}
	return b.replay(q, r)
}

// replay makes b what it is after all charges, and returns what is stored then.
func (b *bucket) replay(q *queue, r *Rule) (stored int64) {
	b.arrival, stored = q.settled, q.stored
	for _, c := range q.charges {
		stored = b.add(c, r, stored)
	}
	if b.queue = q; len(q.charges) == 0 {
		b.queue = nil
	}
	return stored
}
