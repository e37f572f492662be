package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Every load is measured, small clusters are simulated, and the tables are written to their place in scale.md.
func TestRun(t *testing.T) {
	text, err := os.ReadFile("../scale.md")
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "scale.md")
	if err := os.WriteFile(out, text, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := run(20*time.Millisecond, []int{1, 3}, out); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	_, report, _ := strings.Cut(string(written), part.Begin)
	if tables := strings.Count(report, "\n### "); tables != 3 {
		t.Errorf("%d tables were written; expected 3", tables)
	}
}

// A node that takes a millisecond for each run of at most one call decides a thousand a second, however many processes there are.
func TestSimulate(t *testing.T) {
	c := costs{trip: 0, script: 1000, decision: 0}
	s := simulate(c, cold, 1, 1)
	if s.node < 0.99 {
		t.Errorf("the node is busy for %.2f of the time; expected all of it", s.node)
	}
	if alone := simulate(costs{trip: 1000}, cold, 1, 8); alone.rate < 2*s.rate {
		t.Errorf("calls that share a trip make %.0f decisions a second, those that each need a script %.0f", alone.rate, s.rate)
	}
}

func TestSolve(t *testing.T) {
	x, ok := solve([3][4]float64{{0, 1, 1, 5}, {1, 0, 1, 4}, {1, 1, 0, 3}})
	if !ok || x != [3]float64{1, 2, 3} {
		t.Errorf("got %v, %t", x, ok)
	}
	if _, ok := solve([3][4]float64{{1, 1, 1, 1}, {1, 1, 1, 1}, {1, 2, 3, 4}}); ok {
		t.Error("equal equations have no one solution")
	}
}
