package fleet

import (
	"hash/maphash"
	"iter"
	"math"
)

// tree is the root of a tree that maps keys to values, or nil if there are none. A tree never changes: with returns another one, which shares with it
// all nodes but those on the way to a key. The last digit of a key's hash says in which branch of the root the key is, the digit before it says in
// which branch of that one, and so on. Keys with one hash are in one branch after the other.
type tree[V value] struct {
	branches [fan]*tree[V]
	hash     uint64
	key      string
	value    V
	sum      sum
}

// fan is how many branches a node has. It is a power of two.
const fan = 8

// value is what a tree can have as a value. The zero value stands for none.
type value interface {
	comparable
	total() sum
}

// sum tells of some settings what would take long to look for.
type sum struct {
	keys, settings, lost int32
	first, last          int64 // when they end: the first, and the last; in milliseconds as of time.UnixMilli
}

var nothing = sum{first: math.MaxInt64, last: math.MinInt64}

func (a sum) and(b sum) sum {
	return sum{a.keys + b.keys, a.settings + b.settings, a.lost + b.lost, min(a.first, b.first), max(a.last, b.last)}
}

var seed = maphash.MakeSeed()

// get returns the value of a key, or the zero value.
func (t *tree[V]) get(key string) (v V) {
	if t == nil {
		return v
	}
	return t.find(maphash.String(seed, key), key)
}

func (t *tree[V]) find(hash uint64, key string) (v V) {
	for digits := hash; t != nil; digits /= fan {
		if t.hash == hash && t.key == key {
			return t.value
		}
		t = t.branches[digits%fan]
	}
	return v
}

// with returns the tree in which a key has a value. It returns t if that is so in t.
func (t *tree[V]) with(key string, v V) *tree[V] {
	hash := maphash.String(seed, key)
	if t.find(hash, key) == v {
		return t
	}
	return t.put(hash, hash, key, v)
}

// put is with for a value that t does not have. The last one of the digits is that for t.
func (t *tree[V]) put(hash, digits uint64, key string, v V) *tree[V] {
	c := tree[V]{hash: hash, key: key}
	if t != nil {
		c = *t
	}
	var none V
	switch {
	case c.hash != hash || c.key != key:
		b := &c.branches[digits%fan]
		*b = (*b).put(hash, digits/fan, key, v)
	case v == none:
		return c.beheaded()
	default:
		c.value = v
	}
	return c.summed()
}

// beheaded returns the tree without the key of its root. Another key takes its place.
func (t *tree[V]) beheaded() *tree[V] {
	for i, b := range t.branches {
		if b != nil {
			c := *b
			c.branches = t.branches
			c.branches[i] = b.beheaded()
			return c.summed()
		}
	}
	return nil
}

func (t *tree[V]) summed() *tree[V] {
	t.sum = t.value.total()
	for _, b := range t.branches {
		t.sum = t.sum.and(b.total())
	}
	return t
}

func (t *tree[V]) total() sum {
	if t == nil {
		return nothing
	}
	return t.sum
}

// all returns the values, in no order.
func (t *tree[V]) all() iter.Seq[V] { return t.endingBy(math.MaxInt64) }

// endingBy returns the values of which a setting ends by a time, in milliseconds.
func (t *tree[V]) endingBy(at int64) iter.Seq[V] {
	return func(yield func(V) bool) { t.each(at, yield) }
}

// each is endingBy. It reports whether yield never returned false.
func (t *tree[V]) each(at int64, yield func(V) bool) bool {
	if t == nil || t.sum.first > at {
		return true
	}
	if t.value.total().first <= at && !yield(t.value) {
		return false
	}
	for _, b := range t.branches {
		if !b.each(at, yield) {
			return false
		}
	}
	return true
}
