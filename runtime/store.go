package runtime

import "github.com/ratelimit-go/ratelimit/runtime/internal/decide"

// Store keeps the state of rules and decides calls on it: memstore.New and redisstore.New make one.
type Store = decide.Store
