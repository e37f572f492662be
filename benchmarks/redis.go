package main

import (
	"context"
	"log"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/benchmarks/internal/redisproc"
	"github.com/ratelimit-go/ratelimit/internal/redistest"
)

// ctx can end, like the context of a request. Clients do more work for such a context.
var ctx, _ = context.WithCancel(context.Background())

// redisServer is a Redis server of our own, and a client with one connection to it.
type redisServer struct {
	addr   string
	client *redis.Client
	owner  *redisproc.Owner
}

func startRedis() *redisServer {
	o := &redisproc.Owner{}
	addr := redistest.Start(o).Addr
	// A server takes a while to delete millions of keys.
	client := redis.NewClient(&redis.Options{Addr: addr, PoolSize: 1, ReadTimeout: time.Minute})
	return &redisServer{addr: addr, client: client, owner: o}
}

func (s *redisServer) stop() {
	s.client.Close()
	s.owner.End()
}

func (s *redisServer) flush() error { return s.client.FlushAll(ctx).Err() }

func (s *redisServer) version() string {
	info, err := s.info()
	if err != nil {
		log.Fatal(err)
	}
	return info["redis_version"]
}

// onOneCore runs do while this process and the server share one processor, where the system can do that.
func (s *redisServer) onOneCore(do func() error) error {
	info, err := s.info()
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(info["process_id"])
	if err != nil {
		return err
	}
	return onOneCore(pid, do)
}

func (s *redisServer) info() (map[string]string, error) { return redisproc.Info(ctx, s.client) }

func (s *redisServer) spent() (redisproc.Spent, error) { return redisproc.SpentBy(ctx, s.client) }

func (s *redisServer) usedMemory() (float64, error) {
	info, err := s.info()
	return redisproc.Parse(info["used_memory"]), err
}
