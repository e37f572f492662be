package decide

import "slices"

// queue is what a bucket remembers while calls wait for their places: its state without them, and every charge since the first
// of them, so that one which is given back leaves all as if it had never been made.
type queue struct {
	settled arrival
	stored  int64
	charges []charge // in the order in which they were made
}

// charge is what one call takes of a bucket.
type charge struct {
	at, cost, limit int64
	extra, stored   int64 // as in Claim
}

// maxQueue is how many charges a bucket remembers. Each of them makes it dearer to give one back.
const maxQueue = 256

// settle takes in the charges whose time has come, as far as none before them waits, and those that are too many. Who
// gives one of these back no longer moves later places up.
func (q *queue) settle(r *Rule, now int64) {
	n := 0
	for ; n < len(q.charges) && (len(q.charges)-n > maxQueue || q.charges[n].at <= now); n++ {
		q.stored = q.settled.add(q.charges[n], r, q.stored)
	}
	q.charges = slices.Delete(q.charges, 0, n)
}

// enqueue remembers a charge that is about to be made, if it or one before it waits.
func (b *bucket) enqueue(c charge, r *Rule, now, stored int64) {
	if b.queue == nil {
		b.queue = &queue{settled: b.arrival, stored: stored}
	}
	b.queue.settle(r, now)
	if len(b.queue.charges) == 0 && c.at <= now {
		b.queue = nil
		return
	}
	b.queue.charges = append(b.queue.charges, c)
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
	b.arrival, stored = q.settled, q.stored
	for _, c := range q.charges {
		stored = b.add(c, r, stored)
	}
	if b.queue = q; len(q.charges) == 0 {
		b.queue = nil
	}
	return stored
}
