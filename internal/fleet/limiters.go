package fleet

import (
	"maps"
	"runtime"
	"slices"
)

// maxSecrets bounds how many secrets of its limiters a process tells of.
const maxSecrets = 4

// Join counts a limiter of this process until it is collected. secret is the fingerprint of the secret by which it hashes subjects, or "".
func Join[L any](f *Fleet, limiter *L, secret string) {
	f.count(secret, 1)
	runtime.AddCleanup(limiter, func(secret string) { f.count(secret, -1) }, secret)
}

func (f *Fleet) count(secret string, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := f.self.limiters
	if all[secret] += n; all[secret] == 0 {
		delete(all, secret)
	}
}

// secrets returns the fingerprints of the limiters' secrets, and how many limiters there are.
func (s *self) secrets() (all []string, limiters int) {
	for _, n := range s.limiters {
		limiters += n
	}
	all = slices.Sorted(maps.Keys(s.limiters))
	return all[:min(len(all), maxSecrets)], limiters
}
