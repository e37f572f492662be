package engine

import "sort"

// ring is a queue of times in ascending order. It grows as needed, and does not shrink.
type ring struct {
	times []int64 // the length is zero or a power of two
	head  int     // index of the oldest time
	n     int
}

func (r *ring) len() int { return r.n }

// at returns the i-th oldest time.
func (r *ring) at(i int) int64 { return r.times[(r.head+i)&(len(r.times)-1)] }

// insert inserts t in order, count times. t is nearly always the newest time: only waiting calls have later ones.
func (r *ring) insert(t int64, count int) {
	if r.n+count > len(r.times) {
		r.grow(count)
	}
	i := r.n
	for ; i > 0 && r.at(i-1) > t; i-- {
		r.set(i-1+count, r.at(i-1))
	}
	for j := range count {
		r.set(i+j, t)
	}
	r.n += count
}

func (r *ring) set(i int, t int64) { r.times[(r.head+i)&(len(r.times)-1)] = t }

// room returns the ring's capacity after more times are inserted.
func (r *ring) room(more int) int {
	room := max(1, len(r.times))
	for room < r.n+more {
		room *= 2
	}
	return room
}

// size returns how many bytes the ring takes after more times are inserted.
func (r *ring) size(more int) int64 { return 8 * int64(r.room(more)) }

func (r *ring) grow(more int) {
	times := make([]int64, r.room(more))
	for i := range r.n {
		times[i] = r.at(i)
	}
	r.times, r.head = times, 0
}

// drop removes the n oldest times.
func (r *ring) drop(n int) {
	if n > 0 {
		r.head = (r.head + n) & (len(r.times) - 1)
		r.n -= n
	}
}

// search returns how many times are before t.
func (r *ring) search(t int64) int {
	return sort.Search(r.n, func(i int) bool { return r.at(i) >= t })
}

// remove removes n times, from the i-th oldest on. It moves the times on the shorter side.
func (r *ring) remove(i, n int) {
	if i < r.n-i-n {
		for i--; i >= 0; i-- {
			r.set(i+n, r.at(i))
		}
		r.drop(n)
		return
	}
	for ; i+n < r.n; i++ {
		r.set(i, r.at(i+n))
	}
	r.n -= n
}
