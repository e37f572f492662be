package lua

import (
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/key"
)

const mostTold = 500 // charges that one run of the script tells, in less than a millisecond

// Look returns what people see of the count of a call's claim. It changes nothing. ask runs the script. The
// script is sent the calendar window that holds at now. If another window holds at the server's time, Look asks again for that time.
func Look(call *engine.Call, now int64, ask func(Run) (reply any, err error)) (l engine.Looked, err error) {
	var before []engine.Charge
	for runs := 0; runs == 0 || len(before) == mostTold && runs*mostTold < engine.MostTold; runs++ {
		var run Run
		run.addLook(call, now, runs*mostTold)
		reply, err := ask(run)
		if err != nil {
			return l, err
		}
		if at, other := reply.(int64); other && runs == 0 && -at != now {
			return Look(call, -at, ask)
		}
		texts, ok := reply.([]any)
		if !ok || len(texts) != 4 {
			return l, ErrReply
		}
		if runs == 0 {
			l = call.Claims[0].See(sight(texts[0]))
			l.Free = charges(texts[2])
			addRunning(&l, texts[3])
		}
		before = charges(texts[1])
		l.Taken = append(slices.DeleteFunc(slices.Clone(before), func(c engine.Charge) bool {
			return len(l.Taken) > 0 && c.At.After(l.Taken[0].At) // it was told: later charges have moved it to this run
		}), l.Taken...)
	}
	l.Taken = call.Claims[0].Counting(l.Taken, l.Now.UnixMicro())
	return l, nil
}

// sight reads the numbers of a Looked.
func sight(text any) (s engine.Sight) {
	numbers, _ := text.(string)
	for _, n := range []*int64{&s.Now, &s.Earliest, &s.Room, &s.Full, &s.BlockEnd, &s.BlockLength, &s.Paused} {
		if len(numbers) >= 8 {
			*n, numbers = number(numbers), numbers[8:]
		}
	}
	return s
}

// charges reads times and permits, which follow each other.
func charges(text any) (list []engine.Charge) {
	for text, _ := text.(string); len(text) >= 16; text = text[16:] {
		list = append(list, engine.Charge{At: time.UnixMicro(number(text)), Permits: number(text[8:])})
	}
	return list
}

// addRunning reads the state of running calls: after its first byte, when the permits of each end, how many they are, and the call's number.
func addRunning(l *engine.Looked, state any) {
	const entry, digits = 32, 16
	text, _ := state.(string)
	for text = text[min(1, len(text)):]; len(text) >= entry; text = text[entry:] {
		id, err := strconv.ParseUint(text[entry-digits:entry], 16, 64)
		if err == nil {
			l.AddRunning(id, number(text[8:]), number(text))
		}
	}
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

// ReadBlock returns when a block ends, in microseconds, or 0 for a state that no script writes; and how long it is, or 0 if the state does not say so.
func ReadBlock(state string) (end, length int64) {
	if len(state)%8 == 1 && state[0] == layout {
		state = state[1:]
	}
	if len(state) == 0 || len(state)%8 > 0 {
		return 0, 0
	}
	if end = valid(state); end > 0 && len(state) == 16 {
		length = min(end, valid(state[8:]))
	}
	return end, length
}

// valid returns the number at the beginning of s, or 0 if no program writes it.
func valid(s string) int64 {
	f := math.Float64frombits(binary.LittleEndian.Uint64([]byte(s[:8])))
	if !(f >= 0 && f < 1<<53 && f == math.Trunc(f)) {
		return 0
	}
	return int64(f)
}
