package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/redisinfo"
	"github.com/ratelimit-go/ratelimit/internal/redistest"
)

// ctx can end, like the context of a request. Clients do more work for such a context.
var ctx, _ = context.WithCancel(context.Background())

// redisServer is a Redis server of our own.
type redisServer struct {
	client *redis.Client // with one connection
	pool   *redis.Client // with one connection for each of many callers
	owner  *owner
}

func startRedis() *redisServer {
	o := &owner{}
	addr := redistest.Start(o).Addr
	// A server takes a while to delete millions of keys.
	return &redisServer{
		client: redis.NewClient(&redis.Options{Addr: addr, PoolSize: 1, ReadTimeout: time.Minute}),
		pool:   redis.NewClient(&redis.Options{Addr: addr, PoolSize: many, ReadTimeout: time.Minute}), owner: o,
	}
}

func (s *redisServer) stop() {
	s.client.Close()
	s.pool.Close()
	s.owner.end()
}

func (s *redisServer) info(sections ...any) map[string]string {
	text, err := s.client.Do(ctx, append([]any{"info"}, sections...)...).Text()
	if err != nil {
		s.owner.Fatal(err)
	}
	return redisinfo.Fields(text)
}

func (s *redisServer) version() string { return s.info("server")["redis_version"] }

// cost is what a server spends on a call.
type cost struct {
	script, cpu float64 // microseconds: inside the script, and in all
	scripts     float64
}

// during returns the mean cost of the calls that do makes. do returns their number.
func (s *redisServer) during(do func() (calls int, err error)) (cost, error) {
	start := s.spent()
	n, err := do()
	end := s.spent()
	of := func(start, end float64) float64 { return (end - start) / float64(n) }
	return cost{of(start.script, end.script), of(start.cpu, end.cpu), of(start.scripts, end.scripts)}, err
}

// spent returns what the server has spent so far.
func (s *redisServer) spent() (c cost) {
	info := s.info("cpu", "commandstats")
	for _, command := range []string{"fcall", "evalsha", "eval"} {
		stats := redisinfo.List(info["cmdstat_"+command])
		c.scripts += float64(redisinfo.Number(stats, "calls"))
		c.script += float64(redisinfo.Number(stats, "usec"))
	}
	for _, name := range []string{"used_cpu_sys", "used_cpu_user"} {
		seconds, _ := strconv.ParseFloat(info[name], 64)
		c.cpu += 1e6 * seconds
	}
	return c
}

// onOneCore runs do while this process and the server share a core. Where the program taskset is missing, they do not.
func (s *redisServer) onOneCore(do func() error) error {
	status, _ := os.ReadFile("/proc/self/status")
	cores := strings.TrimSpace(redisinfo.Fields(string(status))["Cpus_allowed_list"])
	move := func(cores string) {
		for _, pid := range []string{strconv.Itoa(os.Getpid()), s.info("server")["process_id"]} {
			if out, err := exec.Command("taskset", "-a", "-c", "-p", cores, pid).CombinedOutput(); err != nil {
				log.Printf("this process and the server do not share a core: taskset: %v\n%s", err, out)
			}
		}
	}
	move(cores[strings.LastIndexAny(cores, ",-")+1:]) // the last one, because the system itself mostly uses the first
	defer move(cores)
	return do()
}

// owner takes the place of the test that a server of redistest belongs to. It has the methods that redistest calls.
type owner struct {
	testing.TB
	cleanups []func()
}

// Helper implements testing.TB.
func (*owner) Helper() {}

// Cleanup implements testing.TB.
func (o *owner) Cleanup(f func()) { o.cleanups = append(o.cleanups, f) }

// TempDir implements testing.TB.
func (o *owner) TempDir() string {
	dir, err := os.MkdirTemp("", "ratelimit-benchmarks-")
	if err != nil {
		log.Fatal(err)
	}
	o.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// Fatal implements testing.TB.
func (o *owner) Fatal(args ...any) {
	o.end()
	log.Fatal(args...)
}

// Fatalf implements testing.TB.
func (o *owner) Fatalf(format string, args ...any) { o.Fatal(fmt.Sprintf(format, args...)) }

// end runs the cleanups, the last one first.
func (o *owner) end() {
	for i := range o.cleanups {
		o.cleanups[len(o.cleanups)-1-i]()
	}
}
