package fleet

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// known are the settings as this process last read them.
type known struct {
	epoch     string           // a random word of the store's first setting; another one means that the store has lost its settings
	version   int64            // of the newest setting that was read
	settings  *tree[*Setting]  // by name; also cleared ones and ended ones
	over      map[string]bool  // names of settings that are over, and that the store still has
	malformed map[string]error // what is wrong with some settings, by name; under the name tooMany, that the store has more than are read
	imported  int64            // when the newest import was made that this process follows
	readAt    time.Time        // after a loss: when to read all of them
	sweptTo   int64            // the version at which those that are over were last looked for
	sweptAt   time.Time        // when that was
}

// Status is what is wrong with the settings.
type Status struct {
	Err       error   // of the last attempt to read them
	Malformed []error // settings that cannot be parsed, and those that are too many; earlier ones stay in force
	Lost      int     // settings in force that the store has lost
	Version   int64   // of the newest setting that is followed
}

// importTime returns the time of the import that began an epoch. It is 0 if no import began it. After an import, nothing holds that a
// process knows of earlier epochs. The epoch of an import is its time, in milliseconds, a dot, and a random word.
func importTime(epoch string) int64 {
	text, _, _ := strings.Cut(epoch, ".")
	at, _ := strconv.ParseInt(text, 10, 64)
	return at
}

// maxGap is how many versions a process can be behind and still find every setting that was cleared.
const maxGap = MaxSettings

// lose marks settings that the store has lost.
func (f *Fleet) lose(isLost func(*Setting) bool) {
	var lost []*Setting
	for s := range f.changed.settings.all() {
		if !s.lost && isLost(s) {
			c := s.copy()
			c.version, c.lost = s.version, true
			lost = append(lost, c)
		}
	}
	f.put(lost)
}

// epochAndVersion returns what a reply says.
func epochAndVersion(reply any) (epoch string, version int64) {
	found := append(texts(reply), "", "")
	version, _ = strconv.ParseInt(found[1], 10, 64) // 0 if it is missing
	return found[0], version
}

// follow reads the settings that are newer than those known.
func (f *Fleet) follow(ctx context.Context, do Do, epoch string, version int64) error {
	k := &f.changed
	if epoch == k.epoch && version == k.version {
		return nil
	}
	if _, err := f.clock(ctx); err != nil {
		return err
	}
	if epoch != k.epoch || version < k.version { // the store has other data
		clear(k.over)
	}
	replaced := importTime(epoch) > k.imported
	switch {
	case epoch != k.epoch && !replaced:
		f.lose(func(*Setting) bool { return true })
	case epoch == k.epoch && version < k.version: // the store has an older copy of its data
		f.lose(func(s *Setting) bool { return s.version > version })
		k.version = version
	}
	if lost := int(f.InForce().total().lost); lost > f.Status().Lost {
		f.warn("the store lost its settings; those that this process knows stay in force until they end", "settings", lost)
	}
	if epoch == k.epoch && version-k.version <= maxGap {
		return k.readNew(ctx, f, do, version)
	}
	err := k.readAll(ctx, f, do, epoch, version, replaced)
	f.enforce()
	return err
}

func (k *known) readNew(ctx context.Context, f *Fleet, do Do, version int64) error {
	var news []*Setting
	err := f.readSettings(ctx, do, k.version, func(name, text string, version int64) {
		if s := k.take(f, &k.settings, name, text, version); s != nil {
			news = append(news, s)
		}
	})
	if err == nil {
		k.version = version
	}
	f.apply(news)
	return err
}

// readAll replaces the settings by those of the store. Lost ones stay, unless an import replaced them.
func (k *known) readAll(ctx context.Context, f *Fleet, do Do, epoch string, version int64, replaced bool) error {
	var settings *tree[*Setting]
	for s := range k.settings.all() {
		if s.lost && !replaced {
			settings = settings.with(s.Name(), s)
		}
	}
	before := maps.Clone(k.malformed)
	err := f.readSettings(ctx, do, 0, func(name, text string, version int64) { k.take(f, &settings, name, text, version) })
	if err == nil {
		maps.DeleteFunc(k.malformed, func(name string, err error) bool { return err == before[name] }) // what is still wrong has a new error
		k.epoch, k.version, k.settings, k.imported = epoch, version, settings, max(k.imported, importTime(epoch))
	}
	return err
}

// take adds a setting of the store to settings, and returns it. If it cannot be parsed, the earlier one stays, and take returns nil.
func (k *known) take(f *Fleet, settings **tree[*Setting], name, text string, version int64) *Setting {
	delete(k.over, name)
	if len(name) > MaxText || (*settings).get(name) == nil && (*settings).total().settings >= maxRead {
		k.exceed(f)
		return nil
	}
	s, err := parse(name, text)
	if err != nil {
		k.refuse(f, name, "cannot read a setting; any earlier one stays in force", err)
		if before := k.settings.get(name); before != nil {
			*settings = (*settings).with(name, before)
		}
		return nil
	}
	delete(k.malformed, name)
	s.version = version
	*settings = (*settings).with(name, s)
	return s
}

// maxRead bounds how many settings are read: those that hold, as many that have ended, and those that were cleared within maxGap versions.
const maxRead = 2*MaxSettings + maxGap

// tooMany stands for a name in known.malformed. No setting has it.
const tooMany = ""

// tooManyPatterns stands for a name in known.malformed. No setting has it.
const tooManyPatterns = "*"

// exceed notes that the store has too many settings.
func (k *known) exceed(f *Fleet) {
	const text = "the store has settings beyond the %d that are read, or names of over %d bytes: delete the keys %s and %s, and import the right settings"
	k.refuse(f, tooMany, "cannot follow all settings", fmt.Errorf(text, maxRead, MaxText, f.keys.settings, f.keys.versions))
}

// refuse notes what is wrong with a setting. It logs only what was not noted before. Of many settings it notes some.
func (k *known) refuse(f *Fleet, name, text string, err error) {
	if k.malformed[name] == nil {
		if len(k.malformed) > perCommand && name != tooMany {
			return
		}
		f.warn(text, "err", err.Error())
	}
	k.malformed[name] = err
}

// readSettings passes the settings of versions above after, in their order. It asks for the next names together with the texts of the last ones.
func (f *Fleet) readSettings(ctx context.Context, do Do, after int64, take func(name, text string, version int64)) error {
	next := func() []Command {
		return []Command{{"ZRANGEBYSCORE", f.keys.versions, "(" + strconv.FormatInt(after, 10), "+inf", "WITHSCORES", "LIMIT", 0, perCommand}}
	}
	replies, err := do(ctx, next()...)
	for range maxRead / perCommand {
		if err != nil {
			return err
		}
		names, versions := scored(replies[0])
		if len(names) == 0 {
			return nil
		}
		var commands []Command
		if after = versions[len(versions)-1]; len(names) == perCommand {
			commands = next()
		}
		if replies, err = do(ctx, append(commands, command("HMGET", f.keys.settings, names...))...); err != nil {
			return err
		}
		for i, text := range texts(replies[len(commands)]) {
			if text != "" {
				take(names[i], text, versions[i])
			}
		}
		if len(names) < perCommand {
			return nil
		}
	}
	f.changed.exceed(f)
	return nil
}

// scored returns the members and the scores of a sorted set. The protocol of the client says whether they are in pairs.
func scored(reply any) (names []string, scores []int64) {
	array, _ := reply.([]any)
	var flat []any
	for _, v := range array {
		if pair, ok := v.([]any); ok {
			flat = append(flat, pair...)
		} else {
			flat = append(flat, v)
		}
	}
	for i := 0; i+1 < len(flat); i += 2 {
		name, _ := flat[i].(string)
		var score float64
		switch v := flat[i+1].(type) {
		case float64:
			score = v
		case string:
			score, _ = strconv.ParseFloat(v, 64) // 0 if it is none, which no version is
		}
		names, scores = append(names, name), append(scores, int64(score))
	}
	return names, scores
}

// Follow reads the settings of the store, unless they are known.
func (f *Fleet) Follow(ctx context.Context) error {
	_, err := alone(ctx, f, func() (struct{}, error) { return struct{}{}, f.refresh(ctx, f.do) })
	return err
}

// refresh is Follow for a caller that is alone.
func (f *Fleet) refresh(ctx context.Context, do Do) error {
	if f.server == nil {
		return nil
	}
	replies, err := do(ctx, Command{"MGET", f.keys.epoch, f.keys.version})
	if err == nil {
		epoch, version := epochAndVersion(replies[0])
		err = f.follow(ctx, do, epoch, version)
	}
	return f.noteRead(err)
}

// noteRead notes the outcome of reading the settings, and returns it.
func (f *Fleet) noteRead(err error) error {
	if err == nil {
		f.lastRead.Store(int64(time.Since(began)))
	}
	if err != nil || f.Status().Err != nil {
		f.publish(err)
	}
	return err
}

// List returns the settings of the store, also those that have ended, in the order of Compare.
func (f *Fleet) List(ctx context.Context) ([]*Setting, error) {
	return alone(ctx, f, func() (all []*Setting, err error) {
		if err := f.refresh(ctx, f.do); err != nil {
			return nil, err
		}
		all = slices.SortedFunc(f.changed.settings.all(), Compare)
		return slices.DeleteFunc(all, func(s *Setting) bool { return s.Cleared }), nil
	})
}

// Status returns what is wrong with the settings.
func (f *Fleet) Status() Status {
	if f.failure != nil {
		return Status{Err: f.failure()}
	}
	return *f.status.Load()
}

// publish makes known what is wrong with the settings. err is that of the last attempt to read them.
func (f *Fleet) publish(err error) {
	if k := &f.changed; f.InForce().IsBeyond() {
		k.refuse(f, tooManyPatterns, "cannot follow all settings by pattern", fmt.Errorf("the store has settings by pattern beyond the %d that hold: end some of them", MaxPatterns))
	} else {
		delete(k.malformed, tooManyPatterns)
	}
	f.status.Store(&Status{err, slices.Collect(maps.Values(f.changed.malformed)), int(f.InForce().total().lost), f.changed.version})
}

// Drop puts settings out of force that have ended. While settings are being read or written it does nothing, and the next call tries again.
func (f *Fleet) Drop() {
	select {
	case f.turn <- struct{}{}:
		f.drop()
		f.release()
	default:
	}
}

func (f *Fleet) drop() {
	now := f.Now()
	if ended := slices.Collect(f.InForce().endingBy(now.UnixMilli())); len(ended) > 0 {
		f.hold(f.InForce().With(slices.Values(ended), now))
		f.publish(f.status.Load().Err)
	}
}

// enforce puts all settings in force that have not ended, and forgets those that are over.
func (f *Fleet) enforce() {
	f.sweep()
	f.holdAll()
	f.publish(f.status.Load().Err)
}

// hold puts settings in force. If settings by pattern were left out, there may be room for them again.
func (f *Fleet) hold(in *InForce) {
	f.inForce.Store(in)
	if in.IsBeyond() {
		f.holdAll()
	}
}

// holdAll puts all known settings in force. Of those by pattern the first ones that were set have room, in every process the same.
func (f *Fleet) holdAll() {
	var none *InForce
	all := slices.SortedFunc(f.changed.settings.all(), func(a, b *Setting) int { return cmp.Compare(a.version, b.version) })
	f.inForce.Store(none.With(slices.Values(all), f.Now()))
}

// What is over is looked for after so many versions, or if that was not done for some time.
const (
	sweepAfter = 1000
	sweepEvery = time.Minute
)

// sweep forgets the settings that are over. It looks at those that do not hold.
func (f *Fleet) sweep() {
	k, now := &f.changed, f.Now()
	for s := range k.settings.endingBy(now.UnixMilli()) {
		if s.isOver(now, k.version) {
			k.settings = k.settings.with(s.Name(), nil)
			if len(k.over) < maxRead {
				k.over[s.Name()] = true
			}
		}
	}
	k.sweptTo, k.sweptAt = k.version, now
}

// apply adds settings to those that are known, and puts them in force.
func (f *Fleet) apply(changed []*Setting) {
	f.put(changed)
	if k := &f.changed; k.version-k.sweptTo >= sweepAfter || f.Now().Sub(k.sweptAt).Abs() > sweepEvery {
		f.sweep()
	}
	f.publish(f.status.Load().Err)
}

// put is apply for settings of the versions that are known.
func (f *Fleet) put(changed []*Setting) {
	f.changed.settings = withAll(f.changed.settings, changed)
	f.hold(f.InForce().With(slices.Values(changed), f.Now()))
}

// withAll returns known settings with further ones.
func withAll(settings *tree[*Setting], changed []*Setting) *tree[*Setting] {
	for _, s := range changed {
		settings = settings.with(s.Name(), s)
	}
	return settings
}
