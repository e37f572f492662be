package engine

// Sizes, in bytes.
const (
	rareBytes     = 64
	listBytes     = 24 // of a list that hangs on a Rare, without its elements
	intervalBytes = 32
	amountBytes   = 16
	runningBytes  = 24
	memberBytes   = 24
	windowBytes   = 24
)

// Size returns about how many bytes the cell refers to. If it has nothing rare yet, these are the bytes that it takes when a block or a pause begins,
// when a bucket's limit changes, or when a call waits for the next window. None of that must fail because a store is full.
func (cell *Cell) Size() int64 {
	if cell.Rare == nil {
		return rareBytes + listBytes + windowBytes
	}
	bytes := rareBytes + cell.Rare.size()
	if free := cell.Rare.free; free != nil {
		bytes += listBytes + intervalBytes*int64(cap(*free))
	}
	return bytes
}

// size returns the size of what a kind has of its own.
func (x *Rare) size() int64 {
	switch s := x.state.(type) {
	case *slidingWindow:
		return 48 + s.times.size(0)
	case *amounts:
		return 32 + amountBytes*int64(cap(s.entries))
	case *slidingCounter:
		return 48 + 8*int64(len(s.slices))
	case *concurrency:
		return 24 + runningBytes*int64(cap(*s))
	case *distinct:
		return 64 + s.textsAndMap(0) + memberBytes*int64(cap(s.order))
	}
	if x.ahead == nil {
		return listBytes + windowBytes // in reserve; a bucket's change takes no more
	}
	return listBytes + windowBytes*int64(max(1, cap(*x.ahead)))
}

// Grows returns an upper bound for the bytes that the cell grows by when the claim's cost is charged.
func (cell *Cell) Grows(c *Claim, now int64) int64 {
	if cell.Rare == nil {
		return 0 // see Size
	}
	switch s := cell.Rare.state.(type) {
	case nil:
		if ahead := cell.Rare.ahead; ahead != nil {
			return windowBytes * more(len(*ahead), cap(*ahead))
		}
		return 0 // see Size
	case *slidingWindow:
		return s.times.size(int(min(c.Cost, c.Limit))) - s.times.size(0)
	case *amounts:
		return amountBytes * int64(s.room()-cap(s.entries))
	case *concurrency:
		return runningBytes * more(len(*s), cap(*s))
	case *distinct:
		if since, _ := s.countsFrom(c.Rule, now); !s.knows(c.Member, since) {
			return s.textsAndMap(1) - s.textsAndMap(0) + memberBytes*more(len(s.order), cap(s.order))
		}
	}
	return 0
}

// FreeGrows returns an upper bound for the bytes that the free places grow by when Adjust gives back what the claim's Delta says.
func (cell *Cell) FreeGrows(c *Claim, now int64) int64 {
	if c.Delta >= 0 || c.Dated || c.At <= now {
		return 0
	}
	if p, ok := cell.State(c.Rule).(placer); !ok || p.isLastCharge(c, -c.Delta, now) {
		return 0
	}
	if cell.Rare == nil || cell.Rare.free == nil {
		return listBytes + intervalBytes
	}
	return intervalBytes * more(len(cell.free()), cap(cell.free()))
}

// more returns by how many elements the capacity of a list grows, at most, when one is added.
func more(n, capacity int) int64 {
	if n < capacity {
		return 0
	}
	return int64(max(1, capacity))
}

// textsAndMap returns about how many bytes the map takes with its texts, of at most 16 bytes each, after more members are added.
func (d *distinct) textsAndMap(more int) int64 {
	n := int64(len(d.order) + more)
	slots := int64(8)
	for 8*n > 7*slots && n > 8 {
		slots *= 2
	}
	return 16*n + 48 + (memberBytes+2)*slots
}
