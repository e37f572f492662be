package httplimit

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// limit is a policy and what it has left for the client.
type limit struct {
	id         string
	name       string // printable ASCII, and different from the other names of a response
	quota      int64
	window     time.Duration // 0 for a calendar
	concurrent bool          // the quota is of requests that run
	remaining  int64
	cost       int64         // of a call like the last one
	more       time.Duration // until more than remaining is there; 0 if nothing more comes, or nobody knows
	wait       time.Duration // until the client may come back, or until all permits are back
}

// limits are the limits of one response.
type limits []limit

// add adds what a policy has left, and returns its name. If several limits have the same id, such as those of one rule for two keys, only the
// tightest stays.
func (ls *limits) add(id string, p ratelimit.QuotaPolicy, l limit) string {
	l.id, l.name, l.quota, l.window, l.concurrent = id, printable(p.Name), p.Quota, p.Window, p.Concurrent
	for i := range *ls {
		if other := &(*ls)[i]; other.id == id {
			if l.name = other.name; tightestFirst(l, *other) < 0 {
				*other = l
			}
			return l.name
		}
	}
	l.rename(func(quoted string) bool { return slices.ContainsFunc(*ls, named(quoted)) })
	*ls = append(*ls, l)
	return l.name
}

// rename adds a number to the name, such as -2, if the name is in use. The function that says so takes the name in quotes.
func (l *limit) rename(isUsed func(quoted string) bool) {
	base := l.name
	for n := 2; isUsed(strconv.Quote(l.name)); n++ {
		l.name = base + "-" + strconv.Itoa(n)
	}
}

// named returns a function that reports whether a limit has a name, which is in quotes.
func named(quoted string) func(limit) bool {
	return func(l limit) bool { return strconv.Quote(l.name) == quoted }
}

// tightestFirst orders limits of one rule by how soon a client reaches them.
func tightestFirst(a, b limit) int {
	return cmp.Or(cmp.Compare(a.remaining, b.remaining), cmp.Compare(b.more, a.more), cmp.Compare(b.wait, a.wait))
}

// fewestCallsFirst orders limits by how many calls like the last one they admit. Windows decide between equal ones, and no running time does, so
// that a client sees one rule for as long as it stays the first. A calendar, whose windows differ, counts as the longest.
func fewestCallsFirst(a, b limit) int {
	return cmp.Or(cmp.Compare(a.remaining/max(1, a.cost), b.remaining/max(1, b.cost)), cmp.Compare(b.longest(), a.longest()))
}

func (l limit) longest() time.Duration { return cmp.Or(l.window, math.MaxInt64) }

// policies returns the value of RateLimit-Policy.
func (ls limits) policies() string { return ls.list(limit.policy) }

// policy returns the limit's member of RateLimit-Policy. It leaves out a window that is not in whole seconds, and the units of requests, which
// are the default.
func (l limit) policy() string {
	item := strconv.Quote(l.name) + ";q=" + integer(l.quota)
	if l.concurrent {
		item += `;qu="concurrent-requests"`
	}
	if l.window > 0 && l.window%time.Second == 0 {
		item += ";w=" + integer(seconds(l.window))
	}
	return item
}

// left returns the value of RateLimit. The effective window t ends when more than r is there.
func (ls limits) left() string {
	return ls.list(func(l limit) string {
		item := strconv.Quote(l.name) + ";r=" + integer(l.remaining)
		if l.more > 0 {
			item += ";t=" + integer(seconds(l.more))
		}
		return item
	})
}

// list returns a List of RFC 9651.
func (ls limits) list(item func(limit) string) string {
	items := make([]string, len(ls))
	for i, l := range ls {
		items[i] = item(l)
	}
	return strings.Join(items, ", ")
}

// integer returns an Integer of RFC 9651, which has at most 15 digits.
func integer(n int64) string { return strconv.FormatInt(min(max(n, 0), 999_999_999_999_999), 10) }

// printable escapes all but printable ASCII as in a URL. With Go's quotes around it, the result is a String of RFC 9651.
func printable(name string) string {
	var b strings.Builder
	for i := range len(name) {
		if c := name[i]; c >= ' ' && c < 0x7f {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
