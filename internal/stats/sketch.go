// Package stats has what a process tells ratelimitctl top of its decisions: a sketch of each rule, and the report that is published.
// It does not know what a rule is, and sends nothing.
package stats

import (
	"cmp"
	"slices"
)

// A sketch has sets of ways. A subject belongs to one set, and takes a way there.
const (
	sets = 32
	ways = 8

	maxSubject = 128 // bytes; package key makes none longer
)

// Counts are of decisions.
type Counts struct {
	Calls   int64 `json:"calls"`
	Refused int64 `json:"refused,omitempty"` // by the rule
	Shadow  int64 `json:"shadow,omitempty"`  // that the rule would have refused, were it not in shadow mode
}

// Add adds other to c.
func (c *Counts) Add(other Counts) {
	c.Calls += other.Calls
	c.Refused += other.Refused
	c.Shadow += other.Shadow
}

// Sketch counts the decisions of one rule, and keeps the subjects with the most of them. It is the algorithm Space-Saving
// (Metwally, Agrawal, El Abbadi, "Efficient computation of frequent and top-k elements in data streams", 2005) in sets of eight: a
// subject that finds no way in its set takes that of the subject with the fewest decisions. So a subject with more than an eighth of
// the decisions of its set is always kept. The memory of a sketch is fixed. It is not safe for concurrent use.
type Sketch struct {
	all  Counts
	sets [sets]set
}

type set struct {
	hashes [ways]uint64
	counts [ways]Counts
	before [ways]int64 // decisions on others, counted in counts
	sizes  [ways]uint8
	texts  [ways][maxSubject]byte
}

// Count adds counts to a subject, whose hash must be the same each time.
func (s *Sketch) Count(subject string, hash uint64, n Counts) {
	s.all.Add(n)
	hash |= 1 // 0 is of a free way
	in := &s.sets[hash>>59]
	least := 0
	for i, h := range in.hashes {
		if h == hash {
			in.counts[i].Add(n)
			return
		}
		if in.counts[i].Calls < in.counts[least].Calls {
			least = i
		}
	}
	in.hashes[least], in.before[least] = hash, in.counts[least].Calls
	in.counts[least] = n
	in.counts[least].Calls += in.before[least]
	in.sizes[least] = uint8(copy(in.texts[least][:], subject))
}

// Counts returns the counts of all decisions.
func (s *Sketch) Counts() Counts { return s.all }

// MaxSubjects is how many subjects of a rule a report has at most.
const MaxSubjects = 128

// Subjects returns the subjects with the most decisions, and those decisions that are theirs for sure.
func (s *Sketch) Subjects() []Subject {
	var found []Subject
	for i := range s.sets {
		in := &s.sets[i]
		for j, h := range in.hashes {
			if h == 0 {
				continue
			}
			own := in.counts[j]
			own.Calls -= in.before[j]
			found = append(found, Subject{Name: string(in.texts[j][:in.sizes[j]]), Counts: own})
		}
	}
	slices.SortFunc(found, func(a, b Subject) int { return cmp.Compare(b.Calls, a.Calls) })
	return found[:min(len(found), MaxSubjects)]
}
