package memory

// index finds the entries of a shard by their hashes. It is a table with open addressing: a slot holds the number of an entry plus 1
// in its lower half and the entry's hash in its upper half, or 0 if it is free. An entry whose slot is taken is in the next free one.
// The number of slots is a power of two.
type index struct {
	slots []uint64
	used  int
}

const fewestSlots = 8

func (x *index) home(hash uint32) int { return int(hash) & (len(x.slots) - 1) }
func (x *index) next(i int) int       { return (i + 1) & (len(x.slots) - 1) }

// at returns what a slot holds: the number of an entry, or -1, and the entry's hash.
func (x *index) at(i int) (n int, hash uint32) {
	slot := x.slots[i]
	return int(uint32(slot)) - 1, uint32(slot >> 32)
}

func slotOf(hash uint32, n int) uint64 { return uint64(hash)<<32 | uint64(n+1) }

// put adds the n-th entry. At most seven eighths of the slots are used.
func (x *index) put(hash uint32, n int) {
	if x.used++; 8*x.used > 7*len(x.slots) {
		x.resize(2 * len(x.slots))
	}
	x.insert(slotOf(hash, n))
}

func (x *index) insert(slot uint64) {
	i := x.home(uint32(slot >> 32))
	for x.slots[i] != 0 {
		i = x.next(i)
	}
	x.slots[i] = slot
}

func (x *index) resize(n int) {
	old := x.slots
	x.slots = make([]uint64, n)
	for _, slot := range old {
		if slot != 0 {
			x.insert(slot)
		}
	}
}

// find returns the slot of the n-th entry.
func (x *index) find(hash uint32, n int) int {
	i := x.home(hash)
	for x.slots[i] != slotOf(hash, n) {
		i = x.next(i)
	}
	return i
}

// replace gives an entry another number.
func (x *index) replace(hash uint32, n, by int) { x.slots[x.find(hash, n)] = slotOf(hash, by) }

// remove frees the slot of the n-th entry. Entries behind it whose slots were taken move up.
func (x *index) remove(hash uint32, n int) {
	free := x.find(hash, n)
	mask := len(x.slots) - 1
	for i := x.next(free); x.slots[i] != 0; i = x.next(i) {
		home := x.home(uint32(x.slots[i] >> 32))
		if (i-home)&mask >= (i-free)&mask {
			x.slots[free] = x.slots[i]
			free = i
		}
	}
	x.slots[free] = 0
	if x.used--; 8*x.used < len(x.slots) && len(x.slots) > fewestSlots {
		x.resize(len(x.slots) / 2)
	}
}
