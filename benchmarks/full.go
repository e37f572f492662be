package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// fullCase is a case of calls in full windows, by the limit.
type fullCase struct {
	name    string
	byLimit []*traffic
}

// maxFull is the largest limit of the full windows that are measured.
const maxFull = 10_000

func upTo(most int64, limits []int64) []int64 {
	return slices.DeleteFunc(slices.Clone(limits), func(limit int64) bool { return limit > most })
}

func fullCases(server *redisServer, e effort) []fullCase {
	limiter := oursAsking(server.client)
	var list []fullCase
	add := func(name string, make func(limit int64) *traffic) {
		c := fullCase{name: name}
		for _, limit := range upTo(maxFull, e.limits) {
			c.byLimit = append(c.byLimit, make(limit))
		}
		list = append(list, c)
	}
	for _, kind := range []struct {
		name   string
		rule   func(limit int64) ratelimit.Rule
		passes string
		leaves bool
	}{
		{"distinct, sliding window", distinctSliding, "a new member, as another leaves", true},
		{"distinct, calendar window", distinctYearly, "a new member, up to the last", false},
	} {
		add(kind.name+": a known member", func(limit int64) *traffic {
			return members{server: server, held: limit}.traffic(1, known(oursCounting(limiter, kind.rule(limit)), limit))
		})
		add(kind.name+": "+kind.passes, func(limit int64) *traffic {
			n := max(1, min(e.calls, int(copied/limit)))
			fresh := int64((e.calls + n - 1) / n) // calls for each subject
			m := members{server: server, held: limit - fresh}
			if kind.leaves {
				m.gone = fresh
			}
			return m.traffic(n, unknown(oursCounting(limiter, kind.rule(limit))))
		})
		add(kind.name+": a new member, refused", func(limit int64) *traffic {
			t := members{server: server, held: limit}.traffic(1, unknown(oursCounting(limiter, kind.rule(limit))))
			t.refused = true
			return t
		})
	}
	add("sliding-counter: in the newest slice", func(limit int64) *traffic {
		return sliced{server: server, used: limit - 1}.traffic(e.calls, ours(limiter, counter(limit, 0, long)))
	})
	add("sliding-counter: a slice later, as another leaves", func(limit int64) *traffic {
		return sliced{server: server, used: limit, age: 1}.traffic(e.calls, ours(limiter, counter(limit, 0, long)))
	})
	add("sliding-counter: refused", func(limit int64) *traffic {
		t := sliced{server: server, used: limit}.traffic(1, ours(limiter, counter(limit, 0, long)))
		t.refused = true
		return t
	})
	return list
}

// copied is the largest number of members in all states that are written for one round.
const copied = 60_000

// written returns calls for n subjects with large states. Making these states by calls would take hours. So written writes the state of one subject
// in the form of the script, and copies it, before each round.
func written(server *redisServer, n int, d decide, write func(key string) error) *traffic {
	subjects := make([]string, n)
	for i := range subjects {
		subjects[i] = newSubject()
	}
	var key string
	return &traffic{
		decide:  d,
		subject: func(i int) string { return subjects[i%n] },
		prepare: func(int) (err error) {
			if key == "" {
				if key, err = server.keyOf(subjects[0], d); err != nil {
					return err
				}
			}
			if err := write(key); err != nil {
				return err
			}
			return server.copyState(key, subjects)
		},
	}
}

// keyOf returns the key of a new subject's state, after a call.
func (s *redisServer) keyOf(subject string, d decide) (string, error) {
	if _, err := d(subject); err != nil {
		return "", err
	}
	keys, err := s.client.Keys(ctx, "*{"+subject+"}*").Result()
	if err == nil && len(keys) != 1 {
		err = fmt.Errorf("keys of subject %s: found %q; expected one", subject, keys)
	}
	return strings.Join(keys, ""), err
}

// copyState copies the state of the first subject to the others.
func (s *redisServer) copyState(key string, subjects []string) error {
	_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.PExpire(ctx, key, long)
		for _, other := range subjects[1:] {
			p.Copy(ctx, key, strings.Replace(key, subjects[0], other, 1), 0, true)
		}
		return nil
	})
	return err
}

// members is a set of members.
type members struct {
	server *redisServer
	held   int64
	gone   int64 // further members that have left the window
}

func (m members) traffic(n int, d decide) *traffic {
	return written(m.server, n, d, func(key string) error {
		now := time.Now()
		var list []redis.Z
		for i := range m.gone + m.held {
			at := now.Add(-time.Second)
			if i < m.gone {
				at = now.Add(-long - time.Second)
			}
			list = append(list, redis.Z{Score: float64(at.UnixMicro() + i), Member: heldMember(i)})
		}
		if err := m.server.client.Del(ctx, key).Err(); err != nil || list == nil {
			return err
		}
		return m.server.client.ZAdd(ctx, key, list...).Err()
	})
}

// heldMember returns the i-th member of a set that was written: a phone number that newSubject never returns.
func heldMember(i int64) string { return fmt.Sprintf("2%010d", i) }

// known makes calls for each of the members in turn, but not in the order of the set.
func known(d decideMember, limit int64) decide {
	i := int64(0)
	return func(subject string) (bool, error) {
		i += 7919
		return d(subject, heldMember(i%limit))
	}
}

// unknown makes calls for new members.
func unknown(d decideMember) decide {
	return func(subject string) (bool, error) { return d(subject, newSubject()) }
}

// sliced is the state of a sliding counter: permits in all of its slices.
type sliced struct {
	server *redisServer
	used   int64
	age    int64 // how many slices the newest one is behind the present one
}

const slicesByDefault = 60

func (s sliced) traffic(n int, d decide) *traffic {
	return written(s.server, n, d, func(key string) error {
		state, err := s.server.client.Get(ctx, key).Bytes() // the state after a call
		if err != nil {
			return err
		}
		const size = slicesByDefault + 1
		newest := time.Now().UnixMicro()/(long.Microseconds()/slicesByDefault) - s.age
		head, ring := state[1:25], state[len(state)-8*size:] // the first byte is the layout
		put(head, newest, s.used)
		for i := range int64(size) { // from the oldest slice, which has at least one permit
			permits := share(s.used, i+1, size) - share(s.used, i, size)
			if n := newest + 1 + i; i < size-1 {
				put(ring[8*(n%size):], permits)
			} else {
				put(ring[8*(n%size):], 0)
				put(head[16:], permits)
			}
		}
		return s.server.client.Set(ctx, key, state, redis.KeepTTL).Err()
	})
}

// put writes numbers as the script does.
func put(b []byte, numbers ...int64) {
	for i, n := range numbers {
		binary.LittleEndian.PutUint64(b[8*i:], math.Float64bits(float64(n)))
	}
}

// share returns i of n parts of a number, rounded up.
func share(number, i, n int64) int64 { return (number*i + n - 1) / n }

// fullTable shows one of the figures of each case.
func fullTable(title string, cases []fullCase, limits []int64, figure func(*traffic) []float64) table {
	t := table{title: title + " in a full window, by its limit: microseconds", header: []string{"limit"}}
	for _, limit := range upTo(maxFull, limits) {
		t.header = append(t.header, grouped(limit))
	}
	t.header = append(t.header, "the most against the first")
	for _, c := range cases {
		row := []string{c.name}
		most := 0.0
		for _, traffic := range c.byLimit {
			x := low(figure(traffic))
			most = max(most, x)
			row = append(row, number(x))
		}
		t.add(append(row, ratio(most, low(figure(c.byLimit[0]))))...)
	}
	return t
}
