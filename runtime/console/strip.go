package console

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/engine"
)

// strip is a picture of when a subject's permits were taken, and for when its calls wait: a bar for each of its parts, 200 wide and 24 high.
type strip struct {
	Taken, Waiting int           // permits
	Back, Ahead    time.Duration // from now to its ends
	First          time.Duration // until the first of the permits that calls wait for
	Bars, Waits    string        // paths
	Now            int           // where the present is
}

const (
	maxStrips  = 6 // on a page
	stripParts = 100
)

// drawStrip draws the charges of a window, those of the past first, or all of them if its length is 0. It returns nil if there are none.
func drawStrip(charges []engine.Charge, now time.Time, window time.Duration) *strip {
	if len(charges) == 0 {
		return nil
	}
	s := &strip{Back: cmp.Or(window, max(time.Second, now.Sub(charges[0].At))), Ahead: max(0, charges[len(charges)-1].At.Sub(now))}
	whole := s.Back + s.Ahead
	s.Now = int(2 * stripParts * float64(s.Back) / float64(whole))
	var taken, waits [stripParts]int64
	for _, c := range charges {
		ahead := c.At.Sub(now)
		part := min(stripParts-1, int(stripParts*float64(s.Back+ahead)/float64(whole)))
		switch {
		case ahead <= -s.Back: // it counts no more
		case ahead <= 0:
			s.Taken += int(c.Permits)
			taken[part] += c.Permits
		default:
			s.First = cmp.Or(s.First, ahead)
			s.Waiting += int(c.Permits)
			waits[part] += c.Permits
		}
	}
	if s.Taken+s.Waiting == 0 {
		return nil
	}
	most := int64(1)
	for i := range taken {
		most = max(most, taken[i], waits[i])
	}
	s.Bars, s.Waits = bars(taken, most), bars(waits, most)
	return s
}

// bars returns the path of bars whose heights are numbers of permits. The highest stands for most.
func bars(permits [stripParts]int64, most int64) string {
	var path strings.Builder
	for i, n := range permits {
		if n > 0 {
			fmt.Fprintf(&path, "M%d 24v-%d", 2*i+1, 4+int64(20*float64(n)/float64(most)))
		}
	}
	return path.String()
}
