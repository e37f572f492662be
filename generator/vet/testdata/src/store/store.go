// Package store is a program in one package, with a generic interface.
package store

import ratelimit "github.com/ratelimit-go/ratelimit/runtime"

type Store[T any] interface {
	//ratelimit:rule limit=1 per=1m
	Get(id string) (T, error)
}

type memory struct{} // want memory:"bare Store"

func (memory) Get(id string) (int, error) { return 0, nil }

type disk struct{} // want disk:"bare Store"

func (disk) Get(id string) (int, error) { return 0, nil }

// typed delegates, and is wrapped below.
type typed[T any] struct {
	disk  disk
	value T
}

func (t typed[T]) Get(id string) (T, error) {
	_, err := t.disk.Get(id)
	return t.value, err
}

func NewStore() *memory { return &memory{} }

func open() Store[int] { return memory{} }

type opened[T any] struct{ store Store[T] }

func (o opened[T]) get() { o.store.Get("1") } // want `do not reach this Get on o.store, which holds a disk`

func compose(limiter *ratelimit.Limiter) {
	m := NewStore()
	s := NewLimitedStore[int](m, limiter)
	s.Get("1")
	m.Get("1") // want `the limits of Store do not reach this Get on \*memory; use what NewLimitedStore returns`
	disk{}.Get("1") // want `the limits of Store do not reach this Get on disk`
	inferred(NewLimitedStore(open(), limiter))
	inferred(NewLimitedStore[int](typed[int]{}, limiter))
	var held Store[int] = disk{}
	held.Get("1") // want `the limits of Store do not reach this Get on held, which holds a disk`
	opened[int]{disk{}}.get()
}

func inferred(s Store[int]) {}
