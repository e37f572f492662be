package redisstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/ratelimit-go/ratelimit/runtime/internal/decide"
)

// keyOf returns the key of a claim's state. Its hash tag is the subject, which therefore decides the slot alone.
func keyOf(prefix string, c *decide.Claim) string {
	id := c.Rule.ID.Value()
	return prefix + ":" + id.Scope + ":{" + c.Subject + "}:" + id.Window
}

// What script.lua knows in the place of a wait.
const (
	shadow  = -1
	trigger = -2
)

// maxStops bounds for how many windows behind the present one a call that waits says when they end. Behind them the script
// asks for others.
const maxStops = 8

// encode returns a claim as script.lua reads it, with the calendar window that holds now, and the next ones that begin by until.
func encode(c *decide.Claim, now, until int64) []byte {
	a, b, wait := c.Rule.Per, int64(0), c.Wait
	switch c.Rule.Kind {
	case decide.Calendar, decide.CalendarMembers:
		a, b = c.Rule.Schedule.Window(now)
	case decide.Bucket, decide.Prepaid:
		b = c.Needed()
	case decide.Warm:
		b = c.Rule.Warmup
	case decide.Counter:
		a, b = c.Rule.Slice(), c.Rule.Slices
	}
	switch c.Mode {
	case decide.Shadow:
		wait = shadow
	case decide.Trigger:
		wait = trigger
	}
	rule := make([]byte, 0, 80)
	for _, n := range [...]int64{int64(c.Rule.Kind), c.Limit, c.Cost, a, b, wait} {
		rule = binary.LittleEndian.AppendUint64(rule, math.Float64bits(float64(n)))
	}
	switch c.Rule.Kind {
	case decide.Calendar:
		for stop, n := b, 0; stop <= until && n < maxStops; n++ {
			stop = c.Rule.Schedule.After(stop)
			rule = append(strconv.AppendInt(rule, stop, 10), ' ')
		}
	case decide.Log:
		rule = strconv.AppendInt(rule, c.Cost-c.Limit-1, 10)
	case decide.Members, decide.CalendarMembers:
		rule = append(rule, c.Member...)
	case decide.Warm:
		rule = fmt.Appendf(rule, "%d %d", c.Extra, c.Stored)
	}
	return append(rule, 0)
}

var errReply = errors.New("unexpected reply of the script")

// A report of script.lua has four numbers for each rule that it is about.
const reportSize = 4 * 8

func number(s string) int64 {
	return int64(float(s))
}

func float(s string) float64 {
	return math.Float64frombits(binary.LittleEndian.Uint64([]byte(s[:8])))
}

// isPlausible reports whether the numbers of a report are exact. Those of a damaged state need not be.
func isPlausible(report string) bool {
	for i := 0; i < reportSize; i += 8 {
		if !(math.Abs(float(report[i:])) <= 1<<53) { // nor is what is not a number
			return false
		}
	}
	return true
}

// reportTime returns the server's time of a report.
func reportTime(report string) (int64, error) {
	if len(report) < reportSize {
		return 0, errReply
	}
	return number(report), nil
}

// decodeReport reads a report into the claims.
func decodeReport(report string, claims []*decide.Claim) error {
	for ; len(report) >= reportSize; report = report[reportSize:] {
		i, first, second := number(report[8:]), number(report[16:]), number(report[24:])
		took := i < 0
		if took {
			i = -i
		}
		if i < 1 || i > int64(len(claims)) {
			return errReply
		}
		switch c := claims[i-1]; {
		case c.Mode == decide.Trigger: // whose costs have no bound
			c.Fired = int64(min(float(report[24:]), 1<<62))
		case !isPlausible(report):
			return errReply
		case took:
			c.Extra, c.Stored = first, second
		default:
			c.Earliest, c.Room = first, second
		}
	}
	if report != "" {
		return errReply
	}
	return nil
}
