package fleet

import (
	"context"
	"slices"
	"sync"
)

// Lines are the calls of this process that wait until others end, a line for each count. Only the first of a line asks the store. Who comes
// later asks after it. So calls are admitted in the order in which they came. The zero Lines have no calls.
type Lines struct {
	mu     sync.Mutex
	places map[Count][]*Place // the first comes first
}

// Count identifies what one rule counts for one subject.
type Count struct{ Name, Tag, Subject string }

// Place is the place of a call in a line.
type Place struct {
	lines *Lines
	count Count
	wake  context.CancelFunc // ends the context of Turn; nil before the first
}

// Enter adds a call to the end of a line.
func (l *Lines) Enter(count Count) *Place {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.places == nil {
		l.places = map[Count][]*Place{}
	}
	p := &Place{lines: l, count: count}
	l.places[count] = append(l.places[count], p)
	return p
}

// IsFree reports whether a call may ask: nobody is in the line before its place. Without a place, nobody must be in the line at all.
func (l *Lines) IsFree(count Count, own *Place) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := l.places[count]
	return len(line) == 0 || line[0] == own
}

// Wake wakes the first call of a line, because permits came back.
func (l *Lines) Wake(count Count) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if line := l.places[count]; len(line) > 0 {
		line[0].next()
	}
}

// Is reports whether the place is in the line of a count. It may be nil.
func (p *Place) Is(l *Lines, count Count) bool { return p != nil && p.lines == l && p.count == count }

// Turn returns a context that ends when the call is to ask: since Turn, permits came back, or the place became the first. The place may be nil.
func (p *Place) Turn(ctx context.Context) context.Context {
	if p == nil {
		return ctx
	}
	p.lines.mu.Lock()
	defer p.lines.mu.Unlock()
	p.next()
	ctx, p.wake = context.WithCancel(ctx)
	return ctx
}

// next ends the context of Turn. The lines must be locked.
func (p *Place) next() {
	if p.wake != nil {
		p.wake()
	}
}

// Leave gives up the place. If it was the first, the next call asks. The place may be nil, or given up before.
func (p *Place) Leave() {
	if p == nil {
		return
	}
	l := p.lines
	l.mu.Lock()
	defer l.mu.Unlock()
	p.next()
	line := l.places[p.count]
	i := slices.Index(line, p)
	if i < 0 {
		return
	}
	line = slices.Delete(line, i, i+1)
	l.places[p.count] = line
	switch {
	case len(line) == 0:
		delete(l.places, p.count)
	case i == 0:
		line[0].next()
	}
}
