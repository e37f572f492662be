package plain

import (
	"github.com/redis/go-redis/v9"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
)

func New(client redis.UniversalClient) ratelimit.Store { return redisstore.New(client) }
