package runtime

import "unique"

// Option changes a limiter that [New] makes.
type Option func(*Limiter)

// WithPrefix sets what all keys in the store begin with. The default is "ratelimit"; give each application that shares a
// Redis a prefix of its own. Braces are escaped.
func WithPrefix(prefix string) Option {
	return func(l *Limiter) { l.prefix = unique.Make(canonical(prefix)) }
}
