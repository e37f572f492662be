package ratelimit

import "github.com/ratelimit-go/ratelimit/runtime/internal/engine"

// Store keeps the state of rules and decides calls. Make one with memstore.New, redisstore.New or plain.New. Only this module implements
// Store.
type Store = engine.Store
