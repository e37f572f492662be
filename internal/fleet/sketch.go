package fleet

import (
	"cmp"
	"slices"
)

// A sketch consists of sets, and a set of ways. A subject belongs to one set, and takes one way of it.
const (
	sets = 32
	ways = 8

	maxSubject = 128 // the maximum length of a subject in bytes, as in package key
)

// Counts are numbers of decisions.
type Counts struct {
	Calls   int64 `json:"calls"`
	Refused int64 `json:"refused,omitempty"` // calls that the rule refused
	Blocked int64 `json:"blocked,omitempty"` // those of Refused whose key was blocked
	Shadow  int64 `json:"shadow,omitempty"`  // calls that the rule would have refused if it were not in shadow mode
	Failed  int64 `json:"failed,omitempty"`  // calls that the store failed to decide
	Limit   int64 `json:"limit,omitempty"`   // of a subject: the limit that the last call brought; 0 if calls bring none
}

// Add adds other to c.
func (c *Counts) Add(other Counts) {
	c.Calls += other.Calls
	c.Refused += other.Refused
	c.Blocked += other.Blocked
	c.Shadow += other.Shadow
	c.Failed += other.Failed
	c.Limit = cmp.Or(other.Limit, c.Limit)
}

// Sketch counts the decisions of one rule, and keeps the subjects with the most decisions. It uses the algorithm Space-Saving
// (Metwally, Agrawal, El Abbadi, "Efficient computation of frequent and top-k elements in data streams", 2005) in sets of eight: if
// all ways of its set are taken, a new subject replaces the subject with the fewest decisions. So a subject with more than an eighth
// of the decisions of its set is always kept. A sketch has a fixed size. It is not safe for concurrent use.
type Sketch struct {
	all  Counts
	sets [sets]set
}

type set struct {
	hashes [ways]uint64
	counts [ways]Counts
	before [ways]int64 // the decisions in counts that belong to replaced subjects
	sizes  [ways]uint8
	texts  [ways][maxSubject]byte
}

// Count adds counts to a subject. A subject must always have the same hash.
func (s *Sketch) Count(subject string, hash uint64, n Counts) {
	s.all.Add(n)
	s.all.Limit = 0 // subjects have different ones
	hash |= 1       // 0 marks a free way
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

// MaxSubjects is the largest number of subjects of a rule in a report.
const MaxSubjects = 128

// Subjects returns the subjects with the most decisions. It counts only the decisions that certainly belong to a subject.
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
