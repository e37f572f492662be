package redisstore

import (
	"encoding/binary"
	"errors"
	"math"
	"strconv"

	"github.com/ratelimit-go/ratelimit/runtime/internal/decide"
)

// keyOf returns the key of a claim's state. Its hash tag is the subject, which therefore decides the slot alone.
func keyOf(prefix string, c *decide.Claim) string {
	id := c.Rule.ID.Value()
	return prefix + ":" + id.Scope + ":{" + c.Subject + "}:" + id.Window
}

// encode returns a claim as script.lua reads it, with the calendar window that holds now.
func encode(c *decide.Claim, now int64) []byte {
	a, b := c.Rule.Per, c.Burst
	if c.Rule.Kind == decide.Calendar {
		a, b = c.Rule.Schedule.Window(now)
	}
	rule := make([]byte, 0, 64)
	for _, n := range [...]int64{int64(c.Rule.Kind), c.Limit, c.Cost, a, b} {
		rule = binary.LittleEndian.AppendUint64(rule, math.Float64bits(float64(n)))
	}
	rule = strconv.AppendInt(rule, c.Cost-c.Limit-1, 10)
	return append(rule, 0)
}

var errReply = errors.New("unexpected reply of the script; is another version of it installed under its hash?")

// decodeRefusal reads script.lua's refusal into the claims and returns the server's time. Rules that it does not name would
// admit the call.
func decodeRefusal(reply string, claims []*decide.Claim) (now int64, err error) {
	const size = 4 * 8
	if reply == "" || len(reply)%size != 0 {
		return 0, errReply
	}
	for _, c := range claims {
		c.Earliest = 0
	}
	for ; reply != ""; reply = reply[size:] {
		var n [4]int64
		for i := range n {
			n[i] = int64(math.Float64frombits(binary.LittleEndian.Uint64([]byte(reply[8*i:]))))
		}
		if n[1] < 1 || n[1] > int64(len(claims)) {
			return 0, errReply
		}
		c := claims[n[1]-1]
		now, c.Earliest, c.Room = n[0], n[2], n[3]
	}
	return now, nil
}
