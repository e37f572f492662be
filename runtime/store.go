package ratelimit

import "github.com/ratelimit-go/ratelimit/runtime/internal/engine"

// Store keeps the state of rules and decides calls on it: memstore.New, redisstore.New and plain.New make one. Only this
// module implements it.
type Store = engine.Store
