package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
)

// ctx can end, as the context of a request can: clients do more for such a one.
var ctx, _ = context.WithCancel(context.Background())

// redisServer is a Redis server of our own, and a client with one connection to it.
type redisServer struct {
	addr   string
	client *redis.Client
	owner  *owner
}

func startRedis() *redisServer {
	o := &owner{}
	addr := redistest.Start(o).Addr
	// To forget millions of keys takes a server a while.
	client := redis.NewClient(&redis.Options{Addr: addr, PoolSize: 1, ReadTimeout: time.Minute})
	return &redisServer{addr: addr, client: client, owner: o}
}

func (s *redisServer) stop() {
	s.client.Close()
	s.owner.end()
}

func (s *redisServer) flush() error { return s.client.FlushAll(ctx).Err() }

func (s *redisServer) version() string {
	info, err := s.info()
	if err != nil {
		log.Fatal(err)
	}
	return info["redis_version"]
}

func (s *redisServer) pid() (int, error) {
	info, err := s.info()
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(info["process_id"])
}

// info returns the fields of all sections of INFO.
func (s *redisServer) info() (map[string]string, error) {
	text, err := s.client.Do(ctx, "info", "server", "clients", "memory", "cpu", "commandstats", "keyspace").Text()
	if err != nil {
		return nil, err
	}
	fields := make(map[string]string)
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		fields[name] = value
	}
	return fields, nil
}

// spent is what the server has spent so far: scripts, and microseconds.
type spent struct {
	scripts float64 // how many ran
	script  float64 // inside them
	cpu     float64
}

func (s *redisServer) spent() (spent, error) {
	info, err := s.info()
	if err != nil {
		return spent{}, err
	}
	var t spent
	for _, command := range []string{"cmdstat_fcall", "cmdstat_evalsha", "cmdstat_eval"} {
		for field := range strings.SplitSeq(info[command], ",") {
			switch name, value, _ := strings.Cut(field, "="); name {
			case "calls":
				t.scripts += parse(value)
			case "usec":
				t.script += parse(value)
			}
		}
	}
	t.cpu = 1e6 * (parse(info["used_cpu_sys"]) + parse(info["used_cpu_user"]))
	return t, nil
}

func (s *redisServer) usedMemory() (float64, error) {
	info, err := s.info()
	return parse(info["used_memory"]), err
}

// parse reads a number of INFO's. What is not there counts as 0: a command that was not called.
func parse(s string) float64 {
	x, _ := strconv.ParseFloat(s, 64)
	return x
}

// owner stands in for the test that a redistest server belongs to. It has the methods that redistest calls.
type owner struct {
	testing.TB
	cleanups []func()
}

func (*owner) Helper() {}

func (o *owner) Cleanup(f func()) { o.cleanups = append(o.cleanups, f) }

func (o *owner) TempDir() string {
	dir, err := os.MkdirTemp("", "ratelimit-benchmarks-")
	if err != nil {
		o.Fatal(err)
	}
	o.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func (o *owner) Fatal(args ...any) {
	o.end()
	log.Fatal(args...)
}

func (o *owner) Fatalf(format string, args ...any) { o.Fatal(fmt.Sprintf(format, args...)) }

// end runs the clean-ups, the last one first.
func (o *owner) end() {
	for n := len(o.cleanups); n > 0; n = len(o.cleanups) {
		f := o.cleanups[n-1]
		o.cleanups = o.cleanups[:n-1]
		f()
	}
}
