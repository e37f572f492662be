package fleet

import (
	"context"
	"slices"
	"strings"
)

// Patterns are glob patterns of the keys that the fleets of all prefixes have.
var Patterns = []string{"*.fleet:{*}:*", "*.seen:{*}:*"}

// PrefixOf returns the prefix of the fleet that has a key. It reports false if no fleet has it.
func PrefixOf(key string) (prefix string, ok bool) {
	head, _, _ := strings.Cut(key, ":{")
	prefix, ok = strings.CutSuffix(head, ".fleet")
	if !ok {
		prefix, ok = strings.CutSuffix(head, ".seen")
	}
	return prefix, ok && strings.HasPrefix(key, head+SlotOf(prefix))
}

// Exists reports whether the store knows anything of this fleet: its rules, processes, settings or changes. A store in this process knows this one.
func (f *Fleet) Exists(ctx context.Context) (bool, error) {
	if f.server == nil {
		return true, nil
	}
	return beside(ctx, f, func() (bool, error) {
		replies, err := f.do(ctx, Command{"HLEN", f.keys.sets}, Command{"HLEN", f.keys.processes}, Command{"MGET", f.keys.epoch, f.keys.version},
			Command{"LRANGE", f.keys.changes, 0, 0})
		if err != nil {
			return false, err
		}
		epoch, version := epochAndVersion(replies[2])
		return replies[0] != int64(0) || replies[1] != int64(0) || epoch != "" || version != 0 || len(texts(replies[3])) > 0, nil
	})
}

// Behind returns the processes, and those of them that do not say yet that they follow the newest setting that this one knows.
func (f *Fleet) Behind(ctx context.Context) (all, behind []Process, err error) {
	if all, err = f.Processes(ctx); err != nil {
		return nil, nil, err
	}
	behind, err = alone(ctx, f, func() (behind []Process, _ error) {
		for _, p := range all {
			if p.Epoch != f.changed.epoch || p.Version < f.changed.version {
				behind = append(behind, p)
			}
		}
		return behind, nil
	})
	return all, behind, err
}

// Shared returns the programs that share counts by chance: each declares a rule without a name that another declares as well.
func (f *Fleet) Shared(ctx context.Context) ([]string, error) {
	if f.server == nil {
		return nil, nil
	}
	return beside(ctx, f, func() ([]string, error) {
		sets, err := f.sets(ctx, false)
		var shared []string
		for _, programs := range programsOf(sets) {
			if len(programs) > 1 {
				shared = append(shared, programs...)
			}
		}
		slices.Sort(shared)
		return slices.Compact(shared), err
	})
}
