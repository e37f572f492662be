package lua

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/backend"
	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/key"
)

const (
	mostTold = 500 // charges that one run of the script tells, in less than a millisecond
	maxRuns  = 20  // that ask for the charges of a count
)

// Charges returns when the newest permits of the count at a key were taken, and for when calls wait; and the free places. It returns nothing if the
// states of the count's algorithm do not have these times. The rest is as for the method of backend.Store. ask runs the script.
func Charges(state string, period time.Duration, burst int64, ask func(Run) (reply any, err error)) (taken, free []backend.Charge, err error) {
	kind := kindOf(state)
	switch {
	case kind != engine.Distinct && !kind.Accepts("wait") || kind.Row().Releases:
		return nil, nil, nil
	case kind == engine.LeakyBucket:
		burst = 1
	}
	for told := range maxRuns {
		claim := append([]byte{flagPeek | flagAdjust}, byte(kind), byte(engine.Enforce), hasFree)
		claim = appendNumbers(claim, kind.Row().MaxLimit, -1, period.Microseconds(), burst, int64(told*mostTold))
		claim = append(claim, "-1\x00"...) // the newest permit of a list
		reply, err := ask(Run{Keys: []any{state, key.FreeOf(state)}, Args: []any{claim, "\x00"}})
		if err != nil {
			return nil, nil, err
		}
		texts, ok := reply.([]any)
		if !ok || len(texts) != 2 {
			return nil, nil, ErrReply
		}
		before := charges(texts[0])
		more := len(before) == mostTold
		taken = append(slices.DeleteFunc(before, func(c backend.Charge) bool {
			return c.Permits == 0 || taken != nil && c.At.After(taken[0].At) // it was told: later charges have moved it to this run
		}), taken...)
		if told == 0 {
			free = charges(texts[1])
		}
		if !more {
			break
		}
	}
	return taken, free, nil
}

// charges reads times and permits, which follow each other.
func charges(text any) (list []backend.Charge) {
	for text, _ := text.(string); len(text) >= 16; text = text[16:] {
		list = append(list, backend.Charge{At: time.UnixMicro(number(text)), Permits: number(text[8:])})
	}
	return list
}

// kindOf returns how the count at a key counts, or no kind if the key is not that of a count.
func kindOf(state string) engine.Kind {
	parts, ok := key.Split(state)
	switch {
	case !ok || parts.IsBlock:
		return 0
	case strings.HasPrefix(parts.Tag, "distinct:"):
		return engine.Distinct
	case strings.HasPrefix(parts.Tag, engine.Amounts.Row().Tag):
		return engine.Amounts
	}
	kind, _ := engine.AlgorithmOf(parts.Tag)
	return kind
}

// AlgorithmOf returns how the count at a key counts, such as "fixed-window" or "distinct". It returns "" if the key is not that of a count.
func AlgorithmOf(state string) string {
	kind := kindOf(state)
	if kind == engine.Amounts {
		kind = engine.SlidingWindow
	}
	return kind.String()
}

// BlockedUntil returns the time at which a block or a pause ends, in microseconds, or 0 for a state that no script writes.
func BlockedUntil(state string) int64 {
	if len(state)%8 == 1 && state[0] == layout {
		state = state[1:]
	}
	if len(state) == 0 || len(state)%8 > 0 {
		return 0
	}
	f := math.Float64frombits(binary.LittleEndian.Uint64([]byte(state[:8])))
	if !(f >= 0 && f < 1<<53 && f == math.Trunc(f)) {
		return 0
	}
	return int64(f)
}
