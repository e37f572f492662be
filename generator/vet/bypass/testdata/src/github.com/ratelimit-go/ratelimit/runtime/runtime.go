// Package ratelimit stands in for the real one.
package ratelimit

type Limiter struct{}

type Rule struct{}

func New() *Limiter { return nil }
