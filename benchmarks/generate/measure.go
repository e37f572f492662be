package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// sample is the result of one run, or the medians of several.
type sample struct {
	tool      string
	cpu, wall float64 // seconds
	peak      float64 // of the largest of its processes, in MiB
}

// measure runs the tools in turns and returns the medians, those of ratelimit first.
func (c benchmark) measure(dir string, tools []tool, rounds int) ([]sample, error) {
	if c.interfaces == nil {
		tools = tools[:1]
	}
	samples := make([][]sample, len(tools))
	root, err := os.MkdirTemp(dir, "case-")
	if err != nil {
		return nil, err
	}
	for _, t := range tools {
		if err := c.write(filepath.Join(root, t.name)); err != nil {
			return nil, err
		}
	}
	for round := range rounds + 1 {
		for i, t := range tools {
			s, err := c.run(t, filepath.Join(root, t.name), round)
			if err != nil {
				return nil, err
			}
			if round > 0 { // the first round fills the caches
				samples[i] = append(samples[i], s)
			}
		}
	}
	var medians []sample
	for i, t := range tools {
		medians = append(medians, sample{
			t.name,
			median(samples[i], func(s sample) float64 { return s.cpu }),
			median(samples[i], func(s sample) float64 { return s.wall }),
			median(samples[i], func(s sample) float64 { return s.peak }),
		})
	}
	return medians, os.RemoveAll(root)
}

// run edits the source and runs a tool once.
func (c benchmark) run(t tool, dir string, round int) (sample, error) {
	if c.source != "" {
		source := strings.ReplaceAll(c.source, edit, strconv.Itoa(1000+round))
		if err := writeFile(filepath.Join(dir, "x.go"), source); err != nil {
			return sample{}, err
		}
	}
	cmd := exec.Command(t.program, t.args(c)...)
	cmd.Dir = dir
	if c.cold {
		cache, err := os.MkdirTemp("", "ratelimit-cache-")
		if err != nil {
			return sample{}, err
		}
		defer os.RemoveAll(cache)
		cmd.Env = append(os.Environ(), "GOCACHE="+cache)
	}
	start := time.Now()
	out, err := cmd.CombinedOutput()
	wall := time.Since(start).Seconds()
	if err != nil && (c.says == "" || !strings.Contains(string(out), c.says)) {
		return sample{}, fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	used := cmd.ProcessState
	peak := used.SysUsage().(*syscall.Rusage).Maxrss
	return sample{t.name, (used.UserTime() + used.SystemTime()).Seconds(), wall, float64(peak) / 1024}, nil
}

func median(samples []sample, of func(sample) float64) float64 {
	var values []float64
	for _, s := range samples {
		values = append(values, of(s))
	}
	slices.Sort(values)
	return values[len(values)/2]
}

func writeFile(name, text string) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, []byte(text), 0o644)
}
