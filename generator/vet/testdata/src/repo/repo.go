// Package repo has an interface with a type parameter and a constraint.
package repo

import ratelimit "github.com/ratelimit-go/ratelimit/runtime"

type Repo[K comparable] interface {
	//ratelimit:rule limit=1 per=1m
	Get(key K) error
}

type mem struct{} // want mem:"bare Repo"

func (mem) Get(key string) error { return nil }

// list is no Repo: its keys cannot be compared.
type list struct{}

func (list) Get(key []string) error { return nil }

// cache holds one.
type cache struct{ Repo[string] }

func (c cache) Get(key string) error { return c.Repo.Get(key) }

func NewRepo() Repo[string] { return mem{} } // want `this Repo has no limits; return what NewLimitedRepo returns`

func inner() Repo[string] { return mem{} }

func NewLimited(limiter *ratelimit.Limiter) Repo[string] { return NewLimitedRepo(inner(), limiter) }

func use(c cache) {
	mem{}.Get("") // want `the limits of Repo do not reach this Get on mem`
	list{}.Get(nil)
	c.Get("")
}
