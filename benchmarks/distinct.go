package main

import (
	"fmt"
	"strings"
	"time"
)

// compact is the largest number of members that Redis keeps in a compact form.
const compact = 128

// memberMemory adds members one by one.
func memberMemory(server *redisServer, limits []int64) (table, error) {
	limits = upTo(maxFull, limits)
	most := limits[len(limits)-1]
	shown := []int64{1, compact, compact + 1, 1000, 10_000}
	t := table{title: "Memory of one subject's distinct members on the server, as they are added one by one: bytes"}
	t.header = []string{"members"}
	for _, n := range upTo(most, shown) {
		t.header = append(t.header, grouped(n))
	}
	t.header = append(t.header, fmt.Sprintf("most for a member, beside %d, up to %d", perSubject, compact), "beyond")
	for _, c := range []struct {
		name   string
		decide decideMember
		member func() string
	}{
		{"sliding window, numbers of 11 digits", oursCounting(oursAsking(server.client), distinctSliding(plenty)), newSubject},
		{"sliding window, words of 16 letters", oursCounting(oursAsking(server.client), distinctSliding(plenty)), newWord},
		{"calendar window, words of 16 letters", oursCounting(oursAsking(server.client), distinctYearly(plenty)), newWord},
		{"calendar window, words of 40 letters, which are hashed", oursCounting(oursAsking(server.client), distinctYearly(plenty)),
			func() string { return strings.Repeat("w", 24) + newWord() }},
	} {
		row := []string{c.name}
		var worst [2]float64 // with at most compact members, and with more
		err := eachMember(server, c.decide, c.member, most, func(n, bytes int64) {
			i := 0
			if n > compact {
				i = 1
			}
			worst[i] = max(worst[i], float64(bytes-perSubject)/float64(n))
			if n == shown[len(row)-1] {
				row = append(row, grouped(bytes))
			}
		})
		if err != nil {
			return t, err
		}
		t.add(append(row, number(worst[0]), number(worst[1]))...)
	}
	return t, nil
}

// newWord returns 16 letters that no traffic has used.
func newWord() string { return "words" + newSubject() }

// eachMember adds members one by one, at most the given number, and calls tell with their number and their memory.
func eachMember(server *redisServer, d decideMember, member func() string, most int64, tell func(n, bytes int64)) error {
	if err := server.flush(); err != nil {
		return err
	}
	subject := newSubject()
	for n := int64(1); n <= most; n++ {
		if allowed, err := d(subject, member()); err != nil || !allowed {
			return fmt.Errorf("member %d: admitted is %t, error %v", n, allowed, err)
		}
		if !looksAt(n, most) {
			continue
		}
		bytes, err := keyMemory(server, subject)
		if err != nil {
			return err
		}
		tell(n, bytes)
	}
	return nil
}

// sliceMemory makes calls during two windows of sliding counters.
func sliceMemory(server *redisServer, limits []int64) (table, error) {
	t := table{title: "Memory of one subject's sliding-counter on the server: bytes", header: []string{
		"slices", "after one call", "at most, in two windows", "for a slice", fmt.Sprintf("for a slice, beside %d", perSubject),
	}}
	for _, slices := range upTo(limits[len(limits)-1], []int64{10, slicesByDefault, 100, 1000, 10_000}) {
		if err := server.flush(); err != nil {
			return t, err
		}
		d := ours(oursAsking(server.client), counter(plenty, slices, steadyWindow))
		subject := newSubject()
		var first, most int64
		for start := time.Now(); most == 0 || time.Since(start) < 2*steadyWindow; {
			if allowed, err := d(subject); err != nil || !allowed {
				return t, fmt.Errorf("%d slices: admitted is %t, error %v", slices, allowed, err)
			}
			bytes, err := keyMemory(server, subject)
			if err != nil {
				return t, err
			}
			if first == 0 {
				first = bytes
			}
			most = max(most, bytes)
		}
		each := func(bytes int64) string { return number(max(0, float64(bytes)/float64(slices))) }
		t.add(grouped(slices), grouped(first), grouped(most), each(most), each(most-perSubject))
	}
	return t, nil
}
