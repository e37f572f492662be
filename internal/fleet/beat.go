package fleet

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"
	"weak"
)

const (
	beatEvery  = time.Second
	sayEvery   = 5 // beats
	firstBeat  = 10 * time.Millisecond
	tellAgain  = 720 * sayEvery // beats after which a process declares its rules again: an hour
	spreadFrom = 1000           // versions that a loss must have left behind before reading them is spread
	spread     = 10 * time.Second
)

// startBeat starts the beat if there is none. The beat is two chains of timers: a server that hangs does not keep permits on others from being renewed.
// Both end with the fleet, which no timer keeps alive, or when the client is closed.
func (f *Fleet) startBeat() {
	if f.server == nil || f.self.beating {
		return
	}
	f.self.beating = true
	time.AfterFunc(beatEvery/2, func() { build() }) // the second beat tells it, and nothing waits for it now
	third := rand.N(beatEvery)                      // so that processes that start together beat apart
	beatAfter(weak.Make(f), (*Fleet).beat, firstBeat, beatEvery, third)
	beatAfter(weak.Make(f), (*Fleet).renewPermits, beatEvery, third)
}

// beatAfter calls beat after each of the pauses, and then regularly, as long as it returns true.
func beatAfter(w weak.Pointer[Fleet], beat func(*Fleet) bool, pauses ...time.Duration) {
	time.AfterFunc(pauses[0], func() {
		if f := w.Value(); f != nil && beat(f) {
			beatAfter(w, beat, append(pauses[1:], beatEvery)...)
		}
	})
}

// renewPermits is the beat of permits. It reports whether the client is open.
func (f *Fleet) renewPermits() (open bool) {
	f.server.Renew(context.Background(), f.lost.Swap(false))
	return !f.closed.Load()
}

// beat reads what is new, and says what this process has to say. It reports whether the client is open.
func (f *Fleet) beat() (open bool) {
	ctx := context.Background() // the client's own timeouts bound it
	_, err := alone(ctx, f, func() (struct{}, error) {
		f.self.beats++
		f.drop()
		return struct{}{}, f.exchange(ctx)
	})
	f.closed.Store(err != nil && f.server.IsClosed(err))
	return !f.closed.Load()
}

// exchange is a beat.
func (f *Fleet) exchange(ctx context.Context) error {
	s, due := &f.self, f.self.beats%sayEvery == 0
	if due {
		if err := f.readClock(ctx); err != nil {
			return f.noteRead(err)
		}
	}
	commands := []Command{
		{"MGET", f.keys.epoch, f.keys.version}, {"HMGET", f.keys.processes, s.id}, {"HLEN", f.keys.sets}, {"HLEN", f.keys.rules},
	}
	if due || f.changed.settings.total().lost > 0 { // apart: while a slot moves, no command may have several keys, one of which is missing
		commands = append(commands, Command{"MGET", f.keys.recover})
	}
	replies, err := f.do(ctx, commands...)
	epoch, version, setID := f.changed.epoch, f.changed.version, s.setID
	if err == nil {
		newEpoch, newest := epochAndVersion(replies[0])
		err = f.followLater(ctx, newEpoch, newest)
	}
	if f.noteRead(err) != nil {
		return err
	}
	if err := f.answer(ctx, replies[4:]); err != nil {
		return err
	}
	if s.beats == 1 || f.watches() { // a program that ends soon says nothing
		return nil
	}
	missing := f.isMissing(texts(replies[1]))
	sets, _ := replies[2].(int64)
	rules, _ := replies[3].(int64)
	fewer := sets < s.sets || rules < s.texts // the store may have lost some
	s.texts = rules
	if err = f.declareNews(ctx, missing || fewer); err == nil && (missing || due || epoch != f.changed.epoch || version != f.changed.version || setID != s.setID) {
		err = f.say(ctx, missing)
	}
	if err == nil {
		err = f.noteSets(ctx, sets)
	}
	if err != nil {
		return err
	}
	return f.tellMore(ctx, due)
}

// isMissing reports whether the store does not have the last word of this process, which has found said. Then it may have lost other things, too.
func (f *Fleet) isMissing(said []string) bool {
	if slices.Equal(said, []string{f.self.said}) && said[0] != "" { // a server that takes over may have an older copy
		return false
	}
	f.lost.Store(true)
	if f.self.said != "" {
		f.renewPauses()
	}
	return true
}

// tellMore writes what this process knows besides itself and its rules.
func (f *Fleet) tellMore(ctx context.Context, due bool) error {
	if err := f.tellPauses(ctx, due); err != nil || !due || f.Stats == nil {
		return err
	}
	return f.publishReport(ctx)
}

// followLater follows at once, or after a loss at an instant of its own if there is much to read.
func (f *Fleet) followLater(ctx context.Context, epoch string, version int64) error {
	k := &f.changed
	loss := epoch != k.epoch && (k.epoch != "" || f.Status().Lost > 0) // otherwise these are the first settings that this process sees
	if loss && version >= spreadFrom {
		if k.readAt.IsZero() {
			k.readAt = time.Now().Add(rand.N(spread))
		}
		if time.Now().Before(k.readAt) {
			return nil
		}
	}
	k.readAt = time.Time{}
	return f.follow(ctx, f.do, epoch, version)
}

// declareNews writes the rules of this process if some are new, if the store may have lost them, or if that is due. While rules become known one
// after the other, it waits longer each time.
func (f *Fleet) declareNews(ctx context.Context, missing bool) error {
	s := &f.self
	f.mu.Lock()
	news := s.news && !time.Now().Before(s.again)
	f.mu.Unlock()
	if !missing && !news && s.beats%tellAgain != 0 {
		return nil
	}
	if news {
		s.pause = min(max(2*s.pause, beatEvery), time.Minute)
		s.again = time.Now().Add(s.pause)
	}
	err := f.declare(ctx)
	if err != nil {
		f.renew()
	}
	return err
}

// renew makes a later beat declare the rules again.
func (f *Fleet) renew() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.self.news, f.self.again = true, time.Time{}
}

// say writes what this process says of itself. A process that was not listed first removes those that are gone.
func (f *Fleet) say(ctx context.Context, missing bool) error {
	if missing {
		all, gone, err := f.processes(ctx, perBeat)
		if err != nil {
			return err
		}
		isListed := slices.ContainsFunc(all, func(p Process) bool { return p.ID == f.self.id })
		if len(all) >= MaxProcesses && !isListed {
			return nil
		}
		if err := f.remove(ctx, f.keys.processes, gone); err != nil {
			return err
		}
	}
	if _, err := f.clock(ctx); err != nil {
		return err
	}
	word := f.word()
	replies, err := f.do(ctx, Command{"HSET", f.keys.processes, f.self.id, word},
		Command{"PEXPIRE", f.keys.processes, (2 * processLife).Milliseconds()}, Command{"HEXISTS", f.keys.sets, f.self.setID})
	if err != nil {
		return err
	}
	f.self.said = word
	if replies[2] != int64(1) && f.self.setID != "" {
		f.renew()
	}
	return nil
}

// noteSets looks at the rules of other processes if there are new ones.
func (f *Fleet) noteSets(ctx context.Context, n int64) error {
	if n == f.self.sets || n > maxSets {
		return nil
	}
	f.self.sets = n
	sets, err := f.sets(ctx, false)
	f.warnOf(sets)
	return err
}
