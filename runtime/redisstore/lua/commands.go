package lua

import (
	"slices"
	"strings"

	"github.com/ratelimit-go/ratelimit/internal/engine"
)

// ofPlaces are the commands for free places, besides PEXPIREAT.
const ofPlaces = " ZADD ZCARD ZRANGE ZREM ZREMRANGEBYSCORE"

// commandsOf has the Redis commands of the functions in the file of each algorithm, except DEL and TIME, which every rule needs.
var commandsOf = map[string]string{
	"sliding_window":  "LINDEX LLEN LPOP LRANGE LREM LSET LTRIM PEXPIREAT RPUSH SET" + ofPlaces,
	"window":          "GET SET SETRANGE",
	"bucket":          "GET PEXPIREAT SET SETRANGE" + ofPlaces,
	"sliding_counter": "GET GETRANGE PEXPIREAT SET SETRANGE",
	"concurrency":     "GET PEXPIREAT SET SETRANGE",
	"amounts":         "GET GETRANGE PEXPIREAT SET SETRANGE STRLEN",
	"warmup":          "GET PEXPIREAT SET" + ofPlaces,
	"distinct":        "PEXPIREAT ZADD ZCOUNT ZRANGE ZREM ZREMRANGEBYRANK ZSCORE",
}

// Commands returns the Redis commands that the script runs for the rules, in alphabetical order. Reset also uses DEL.
func Commands(rules ...*engine.Rule) []string {
	names := []string{"DEL", "TIME"}
	for _, r := range rules {
		names = append(names, strings.Fields(commandsOf[r.Kind.Row().Lua])...)
		if r.Block > 0 || r.Pausable {
			names = append(names, "GET", "SET")
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
