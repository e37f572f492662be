package redistest

import (
	"testing"
	"time"
)

// Eventually waits until a condition holds. It fails the test if that takes longer than a busy machine may need.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited %v in vain: %s", patience, what)
		}
	}
}
