package engine

import (
	"cmp"
	"slices"
	"time"
)

// Looked is what people see of one count, at one time of the store's clock. A time is zero if there is none.
type Looked struct {
	Now  time.Time
	Room int64     // permits that are left at the claim's limit; below 0 if more are used, as -10,000 if 60,000 of 50,000 are
	Full time.Time // when all permits are back; Now if they are
	Next time.Time // when the count admits the claim, apart from blocks and pauses; zero if nobody knows, because calls that run have the permits, or never

	BlockedSince, BlockedUntil time.Time // of the block that a refusal began; of older programs BlockedSince is zero
	Blocks                     int       // which block within a day that is: 1 for the first, 2 for the first that is twice as long, and so on
	PausedUntil                time.Time

	Taken   []Charge  // the newest permits that count, as far as the state says, and those for which calls wait: oldest first
	Free    []Charge  // permits that calls gave up while others waited after them
	Running []Running // of Concurrency: the soonest to end first
}

// Charge is a number of permits that were taken at a time. Calls wait for a time to come.
type Charge struct {
	At      time.Time
	Permits int64
}

// Running are the permits of a call that runs.
type Running struct {
	ID      uint64 // see Claim.ID
	Permits int64
	Until   time.Time // when they end if the process is gone; zero if the process is this one, in whose memory they are
}

// MostTold bounds how many charges a Looked has, and how many calls that run.
const MostTold = 10_000

// Sight has the numbers of a Looked, with times in microseconds.
type Sight struct {
	Now, Earliest, Room, Full int64
	BlockEnd, BlockLength     int64 // of the last block, which may be over; 0 if unknown
	Paused                    int64 // when the last pause ends
}

// See returns what people see of the claim's count, without its lists.
func (c *Claim) See(s Sight) Looked {
	l := Looked{Now: time.UnixMicro(s.Now), Room: s.Room, Full: time.UnixMicro(s.Full)}
	if s.Earliest <= s.Now || !c.Rule.Kind.Row().Releases {
		l.Next = time.UnixMicro(s.Earliest)
	}
	if s.BlockEnd > s.Now {
		l.BlockedUntil, l.Blocks = time.UnixMicro(s.BlockEnd), 1
		if s.BlockLength > 0 {
			l.BlockedSince = time.UnixMicro(s.BlockEnd - s.BlockLength)
		}
		for n := c.Rule.Block; 0 < n && n < s.BlockLength; n *= 2 {
			l.Blocks++
		}
	}
	if s.Paused > s.Now {
		l.PausedUntil = time.UnixMicro(s.Paused)
	}
	return l
}

// Look returns what people see of the claim's count. It changes nothing.
func (c *Claim) Look(cell *Cell, now int64) Looked {
	state := cell.State(c.Rule)
	s := Sight{Now: now, Earliest: state.Earliest(c, c.Cost, now, now), Room: state.Room(c, now), Full: state.Full(c, now)}
	if x := cell.Rare; x != nil {
		s.BlockEnd, s.BlockLength, s.Paused = x.Until, x.Length, x.Paused
	}
	l := c.See(s)
	if t, ok := state.(teller); ok {
		t.charges(c, now, func(at, permits int64) { l.Taken = append(l.Taken, Charge{time.UnixMicro(at), permits}) })
		slices.Reverse(l.Taken)
	}
	l.Taken = c.Counting(l.Taken, now)
	for _, i := range cell.free() {
		if at := c.placeOf(i); at > now && !c.Rule.Kind.isPrepaid() {
			l.Free = append(l.Free, Charge{time.UnixMicro(at), i.permits})
		}
	}
	if running, ok := state.(*concurrency); ok {
		for _, r := range *running {
			l.AddRunning(r.id, r.permits, r.stop)
		}
	}
	return l
}

// teller is a State that knows when permits were taken, and for when calls wait.
type teller interface {
	// charges tells the newest charges, the newest first, at most MostTold.
	charges(c *Claim, now int64, tell func(at, permits int64))
}

// Counting returns those of some charges that have permits and have not left the claim's window.
func (c *Claim) Counting(all []Charge, now int64) []Charge {
	since := int64(longAgo)
	switch c.Rule.Kind {
	case SlidingWindow, Amounts:
		since = now - c.Rule.Per
	case Distinct, DistinctCalendar:
		since, _ = new(distinct).countsFrom(c.Rule, now)
	}
	left := time.UnixMicro(since)
	return slices.DeleteFunc(all, func(x Charge) bool { return x.Permits == 0 || !x.At.After(left) })
}

// AddRunning adds the permits of a call, unless they have ended or there are too many.
func (l *Looked) AddRunning(id uint64, permits, stop int64) {
	if stop <= l.Now.UnixMicro() || len(l.Running) == MostTold {
		return
	}
	r := Running{ID: id, Permits: permits}
	if stop < never {
		r.Until = time.UnixMicro(stop)
	}
	i, _ := slices.BinarySearchFunc(l.Running, r, func(a, b Running) int { return cmp.Or(a.Until.Compare(b.Until), cmp.Compare(a.ID, b.ID)) })
	l.Running = slices.Insert(l.Running, i, r)
}

// placeOf returns the time of the last place of an interval.
func (c *Claim) placeOf(i interval) int64 {
	if c.Rule.Kind.Row().IsBucket {
		return i.at - MulDiv(c.Burst, c.Rule.Per, i.limit)
	}
	return i.at
}

func (s *slidingWindow) charges(_ *Claim, _ int64, tell func(at, permits int64)) {
	for i := s.times.len() - 1; i >= max(0, s.times.len()-MostTold); i-- {
		tell(s.times.at(i), 1)
	}
}

func (a *amounts) charges(_ *Claim, _ int64, tell func(at, permits int64)) {
	for i := len(a.entries) - 1; i >= max(0, len(a.entries)-MostTold); i-- {
		tell(a.entries[i].at, a.entries[i].permits)
	}
}

func (d *distinct) charges(c *Claim, now int64, tell func(at, permits int64)) {
	since, _ := d.countsFrom(c.Rule, now)
	for i := len(d.order) - 1; i >= max(d.search(since), len(d.order)-MostTold); i-- {
		tell(d.order[i].at, 1)
	}
}

// charges tells the windows after the present one, in which calls wait. When permits of the present one were taken is unknown.
func (w *windows) charges(c *Claim, now int64, tell func(at, permits int64)) {
	next, found := w.windowFor(c, now)
	if found {
		next++
	}
	for i := w.len() - 1; i >= next; i-- {
		tell(w.at(i).start, w.at(i).used)
	}
}

// charges tells the permits that the bucket lacks beyond its burst: calls wait for them. Under Prepaid and Warmup nobody waits for permits of his own.
func (b *bucket) charges(c *Claim, now int64, tell func(at, permits int64)) {
	if c.Rule.Kind.isPrepaid() {
		return
	}
	b = b.at(c, now)
	whole, parts := c.gain(b.full, b.parts, -c.Burst)
	for n := int64(0); n < MostTold; n++ {
		at := c.after(whole, parts, -n)
		if at <= now {
			return
		}
		tell(at, 1)
	}
}
