// Package redisproc starts the Redis servers of a measurement and reads how much time they have used.
package redisproc

import (
	"fmt"
	"log"
	"os"
	"testing"
)

// Owner takes the place of the test that a redistest server belongs to. It has the methods that redistest calls.
type Owner struct {
	testing.TB
	cleanups []func()
}

// Helper implements testing.TB.
func (*Owner) Helper() {}

// Cleanup implements testing.TB.
func (o *Owner) Cleanup(f func()) { o.cleanups = append(o.cleanups, f) }

// TempDir implements testing.TB.
func (o *Owner) TempDir() string {
	dir, err := os.MkdirTemp("", "ratelimit-benchmarks-")
	if err != nil {
		o.Fatal(err)
	}
	o.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// Fatal implements testing.TB. It ends the servers, and then the program.
func (o *Owner) Fatal(args ...any) {
	o.End()
	log.Fatal(args...)
}

// Fatalf implements testing.TB like Fatal.
func (o *Owner) Fatalf(format string, args ...any) { o.Fatal(fmt.Sprintf(format, args...)) }

// End ends the servers: it runs the cleanups, the last one first.
func (o *Owner) End() {
	for n := len(o.cleanups); n > 0; n = len(o.cleanups) {
		f := o.cleanups[n-1]
		o.cleanups = o.cleanups[:n-1]
		f()
	}
}
