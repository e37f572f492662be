package fleet

import (
	"testing"
	"unsafe"
)

// A line outlives the call that began it, and the memory of that call's key, which the program may use again.
func TestLineOutlivesTheTextOfItsKey(t *testing.T) {
	var l Lines
	text := []byte("ann")
	reused := Count{Name: "rule", Subject: unsafe.String(&text[0], len(text))}
	ann := Count{Name: "rule", Subject: "ann"}
	first := l.Put(nil, 1, reused, []Count{reused}, Holding)
	second := l.Put(nil, 1, ann, []Count{ann}, Holding)
	third := l.Put(nil, 1, reused, []Count{reused}, Holding)
	first.Leave()
	third.Leave()
	copy(text, "bob")
	if l.IsFree(ann, nil) || !l.IsFree(Count{Name: "rule", Subject: "bob"}, nil) {
		t.Error("the call that holds is in the line of another key")
	}
	if second.Leave(); len(l.all) > 0 {
		t.Errorf("%d lines are left", len(l.all))
	}
}
