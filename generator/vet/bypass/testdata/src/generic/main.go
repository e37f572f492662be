// Command generic uses repositories of several types.
package main

import (
	"repo"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

type user struct{ name string }

type users struct{ repo repo.Repo[string, user] }

// postgres implements one instance.
type postgres struct{ dsn string }

func (postgres) Get(id string) (user, error) { return user{}, nil }
func (postgres) Put(id string, u user) error { return nil }

type service[V any] struct{ repo repo.Repo[string, V] }

func newService[V any](r repo.Repo[string, V]) *service[V] { return &service[V]{r} }

func newBare[V any]() *service[V] {
	return newService[V](repo.NewMemory[string, V]()) // want `\*repo.Memory\[string, V\] is used as repo.Repo\[string, V\] without its rate limits; wrap it with repo.NewLimitedRepo`
}

func newLimited[V any](r repo.Repo[string, V], l *ratelimit.Limiter) *service[V] {
	return newService[V](repo.NewLimitedRepo(r, l))
}

func main() {
	limiter := ratelimit.New()
	limited := repo.NewLimitedRepo[string, user](postgres{}, limiter)
	_ = users{limited}
	_ = users{postgres{}}                     // want `postgres is used as repo.Repo\[string, user\]`
	_ = users{repo.NewMemory[string, user]()} // want `\*repo.Memory\[string, user\] is used`
	_ = users{repo.NewCached[string, user](limited)}
	_ = users{repo.NewCached[string, user](postgres{})} // want `postgres is used`
	newService[user](limited)
	newService[user](postgres{}) // want `postgres is used`
	newLimited[user](postgres{}, limiter)
	_ = users{repo.NewLimitedRepo(repo.Repo[string, user](repo.NewCached[string, user](postgres{})), limiter)}
	_ = users{repo.NewLimitedRepo[string, user](limited, limiter)} // want `this is limited already`
}
