package redisproc

import (
	"context"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/redisinfo"
)

// Info returns the fields of the sections of INFO that measurements need.
func Info(ctx context.Context, client *redis.Client) (map[string]string, error) {
	text, err := client.Do(ctx, "info", "server", "clients", "memory", "stats", "cpu", "commandstats", "keyspace").Text()
	if err != nil {
		return nil, err
	}
	return redisinfo.Fields(text), nil
}

// Parse parses a number of INFO. An absent field counts as 0: the command was not called.
func Parse(s string) float64 {
	x, _ := strconv.ParseFloat(s, 64)
	return x
}

// Spent is what a server has spent so far: reads, scripts, and microseconds.
type Spent struct {
	Reads   float64 // the number of reads from connections
	Scripts float64 // the number of scripts that ran
	Script  float64 // the time inside scripts
	CPU     float64
}

// SpentBy returns what a server has spent so far.
func SpentBy(ctx context.Context, client *redis.Client) (Spent, error) {
	info, err := Info(ctx, client)
	if err != nil {
		return Spent{}, err
	}
	s := Spent{Reads: Parse(info["total_reads_processed"])}
	for _, command := range []string{"cmdstat_fcall", "cmdstat_evalsha", "cmdstat_eval"} {
		for field := range strings.SplitSeq(info[command], ",") {
			switch name, value, _ := strings.Cut(field, "="); name {
			case "calls":
				s.Scripts += Parse(value)
			case "usec":
				s.Script += Parse(value)
			}
		}
	}
	s.CPU = 1e6 * (Parse(info["used_cpu_sys"]) + Parse(info["used_cpu_user"]))
	return s, nil
}
