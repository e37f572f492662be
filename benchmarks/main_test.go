package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every case runs, and the report is written to its place in the README.
func TestQuick(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "README.md")
	if err := os.WriteFile(out, readme, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := run(quick, "", out); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	before, _, _ := strings.Cut(string(written), short.Begin)
	between, report, _ := strings.Cut(strings.TrimPrefix(string(written), before), part.Begin)
	_, between, _ = strings.Cut(between, short.End)
	if !strings.HasPrefix(string(readme), before+short.Begin) || !strings.Contains(string(readme), short.End+between+part.Begin) {
		t.Error("what stands before the tables has changed")
	}
	if tables := strings.Count(report, "\n### "); tables != 26 {
		t.Errorf("%d tables were written; expected 26", tables)
	}
}

func TestNumber(t *testing.T) {
	for x, want := range map[float64]string{0: "0.00", 9.876: "9.88", 12.345: "12.3", 999.6: "1,000", 1234567: "1,234,567"} {
		if got := number(x); got != want {
			t.Errorf("number(%v): got %s, want %s", x, got, want)
		}
	}
}
