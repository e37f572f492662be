package operate

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/ratelimit-go/ratelimit/internal/decide"
	"github.com/ratelimit-go/ratelimit/internal/fleet"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// ErrSecret is the error of a key as text that programs would hash otherwise.
var ErrSecret = errors.New("the programs hash keys with another secret, so to them this is another key: set RATELIMIT_SECRET to their secret, or " +
	"give the key as errors show it, with -shown")

// checkSecret returns an error if a key would be another one to the programs, as they hash keys with another secret. The hash of a key is the same to
// everybody, and a network is matched before a key is hashed.
func (p *Prefix) checkSecret(ctx context.Context, k Key, rules []ratelimit.UsedRule) error {
	own := p.machine().Fingerprint()
	hashes := slices.ContainsFunc(rules, func(r ratelimit.UsedRule) bool { return r.Hash != ratelimit.HashNever })
	isNetwork := k.Match && !strings.HasSuffix(k.Text, "*")
	if k.Shown || k.Text == "" || isNetwork || !hashes || own == "" && decide.IsHash(k.Text) {
		return nil
	}
	processes, _ := p.processes.Get(ctx)
	known := false
	for _, one := range processes {
		if slices.Contains(one.Secrets, own) {
			return nil
		}
		known = known || len(one.Secrets) > 0
	}
	if known {
		return ErrSecret
	}
	return nil
}

// judgeSecrets finds secrets that differ. by has a process with each, by its fingerprint.
func (p *Prefix) judgeSecrets(f *findings, by map[string]string) {
	switch {
	case len(by) > 1:
		who := strings.Join(slices.Sorted(maps.Values(by))[:2], " and ")
		f.add(SecretDiffers, Warning, "", "processes hash keys with different secrets, or some do not hash: one caller has several counts. They differ between "+who,
			"give all programs of the prefix one secret by ratelimit.WithSubjectHash")
	case len(by) == 1 && by[p.machine().Fingerprint()] == "":
		f.add(SecretDiffers, Warning, "", "the programs hash keys with another secret than this tool, or only one of the two hashes: a key that is given as text is another one to them",
			"set RATELIMIT_SECRET to the programs' secret, or give keys as errors show them, with -shown")
	}
}

// allHash reports whether all processes hash keys, as far as they say.
func allHash(processes []fleet.Process) bool {
	said := false
	for _, one := range processes {
		if slices.Contains(one.Secrets, "") {
			return false
		}
		said = said || len(one.Secrets) > 0
	}
	return said
}
