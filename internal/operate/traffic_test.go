package operate

import (
	"fmt"
	"testing"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
)

// Reports that were read long ago are in no sum, also if there are too many to read them all again at once.
func TestOldReportsAreForgotten(t *testing.T) {
	p := New(ratelimit.New(memstore.New()), time.Minute)
	at, known := time.Now(), reports{}
	for _, step := range []struct {
		later time.Duration
		known int
	}{{0, 200}, {0, 400}, {0, 450}, {5 * time.Second, 450}, {10 * time.Minute, 200}, {0, 400}} {
		at = at.Add(step.later)
		var processes []fleet.Process
		for i := range 450 {
			processes = append(processes, fleet.Process{ID: fmt.Sprint(i), At: at, Stats: true})
		}
		p.processes.value, p.processes.tried = processes, time.Now().Add(time.Hour) // they are not read again
		var err error
		if known, err = p.readReports(t.Context(), known); err != nil || len(known.by) != step.known {
			t.Errorf("%v later, %d reports are known, want %d; error %v", step.later, len(known.by), step.known, err)
		}
	}
}
