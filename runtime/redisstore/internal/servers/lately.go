package servers

import (
	"reflect"
	"sync"
	"time"
)

// lately counts what the stores of this process have done within the present minute, by the client and a text. A program that makes a store or a
// limiter for each request does the same again and again, and each of these knows nothing of the others.
var lately struct {
	sync.Mutex
	since time.Time
	times map[done]int
}

// done is something that was done with a client.
type done struct {
	client any // a pointer, so that it can be compared; or nil
	what   string
}

// Lately notes that something was done with the client, and returns how often that was within the present minute.
func (s *Servers) Lately(what string) int {
	lately.Lock()
	defer lately.Unlock()
	if now := time.Now(); now.Sub(lately.since) >= time.Minute {
		lately.since, lately.times = now, map[done]int{}
	}
	d := done{what: what}
	if reflect.TypeOf(s.Client).Kind() == reflect.Pointer {
		d.client = s.Client
	}
	lately.times[d]++
	return lately.times[d]
}
