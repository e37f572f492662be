// Package registry has a container. It does not import sms.
package registry

type Registry[T any] struct{ all map[string]T }

func New[T any]() *Registry[T] { return &Registry[T]{map[string]T{}} }

func (r *Registry[T]) Add(name string, v T)    { r.all[name] = v }
func (r *Registry[T]) Get(name string) T       { return r.all[name] }
func (r *Registry[T]) All() (all map[string]T) { return r.all }
