// Package repo has an annotated generic interface.
package repo

type Repo[K comparable, V any] interface { // want Repo:"limits Get, Put"
	//ratelimit:rule limit=1 per=1m
	Get(key K) (V, error)

	//ratelimit:rule limit=1 per=1m
	Put(key K, value V) error
}

// Memory is a bare implementation.
type Memory[K comparable, V any] struct{ all map[K]V }

func NewMemory[K comparable, V any]() *Memory[K, V] { return &Memory[K, V]{map[K]V{}} }

func (m *Memory[K, V]) Get(key K) (v V, err error) { return m.all[key], nil }
func (m *Memory[K, V]) Put(key K, value V) error   { return nil }

// Cached is a decorator.
type Cached[K comparable, V any] struct {
	next Repo[K, V]
	all  map[K]V
}

func NewCached[K comparable, V any](next Repo[K, V]) *Cached[K, V] { return &Cached[K, V]{next: next} }

func (c *Cached[K, V]) Get(key K) (v V, err error) { return c.next.Get(key) }
func (c *Cached[K, V]) Put(key K, value V) error   { return c.next.Put(key, value) }
