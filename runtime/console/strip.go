package console

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/decide"
	"github.com/ratelimit-go/ratelimit/internal/engine"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
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
	maxStrips  = 6 // on a page, a command each
	stripParts = 100
)

// addStrips draws the rules under which something is used.
func (c *console) addStrips(ctx context.Context, l *ratelimit.Limiter, uses []use, text string) error {
	n := 0
	for i := range uses {
		u := &uses[i]
		if u.Err != nil || u.Used() <= 0 && u.Left == 0 || n == maxStrips {
			continue
		}
		charges, err := chargesOf(ctx, l, ratelimit.Request{Rule: u.Rule, Key: text})
		if err != nil {
			return err
		}
		if u.Strip = drawStrip(charges, c.fleet.Now(), u.InForce.Per); u.Strip != nil {
			n++
		}
	}
	return nil
}

// chargesOf returns when the permits of a request's counts were taken.
func chargesOf(ctx context.Context, l *ratelimit.Limiter, r ratelimit.Request) (all []engine.Charge, err error) {
	rules, err := ratelimit.Prepare("", r.Rule)
	if err != nil {
		return nil, err
	}
	machine, rule := (*decide.Limiter)(l), (*decide.Rules)(rules).All[0]
	subject := machine.Subject(rule.PlainKeys, r.Key)
	counts, err := machine.Look(ctx, machine.InForce(rule, r.Key, subject), subject)
	for _, count := range counts {
		all = append(all, count.Taken...)
	}
	slices.SortStableFunc(all, func(a, b engine.Charge) int { return a.At.Compare(b.At) })
	return all, err
}

// drawStrip draws the charges of a window, or all of them if its length is 0. It returns nil if there are none.
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
