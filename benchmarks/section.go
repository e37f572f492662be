package main

import (
	"fmt"
	"slices"
)

// section is cases that are measured by turns, because other work on the machine comes and goes.
type section struct {
	title   string
	names   string // the header of the column with the names of the cases
	columns []column
	cases   []benchmark
	rounds  int
	server  *redisServer // if not nil, it shares one core with this process
}

// column is a figure of each case.
type column struct {
	name  string
	keep  func([]float64) float64 // which of the rounds counts
	print func(float64) string
	ratio bool // beside the figure stands how many times that of the first case it is
}

// benchmark is a case.
type benchmark struct {
	name  string
	round func() ([]float64, error) // makes calls, and returns a figure for each column
}

func (s section) measure() (table, error) {
	rounds := make([][][]float64, len(s.cases)) // of each case
	measure := func() error {
		for i := range s.rounds * len(s.cases) {
			i %= len(s.cases)
			figures, err := s.cases[i].round()
			if err != nil {
				return fmt.Errorf("%s: %s: %w", s.title, s.cases[i].name, err)
			}
			rounds[i] = append(rounds[i], figures)
		}
		return nil
	}
	var err error
	if s.server != nil {
		err = s.server.onOneCore(measure)
	} else {
		err = measure()
	}
	if err != nil {
		return table{}, err
	}
	return s.table(rounds), nil
}

func (s section) table(rounds [][][]float64) table {
	t := table{title: s.title, header: []string{s.names}}
	for _, c := range s.columns {
		t.header = append(t.header, c.name)
		if c.ratio {
			t.header = append(t.header, "")
		}
	}
	for i, c := range s.cases {
		cells := []string{c.name}
		for j, column := range s.columns {
			x := column.of(j, rounds[i])
			cells = append(cells, column.print(x))
			if column.ratio {
				cells = append(cells, fmt.Sprintf("%.2f×", x/column.of(j, rounds[0])))
			}
		}
		t.rows = append(t.rows, cells)
	}
	return t
}

// of returns the figure of column j that counts.
func (c column) of(j int, rounds [][]float64) float64 {
	var all []float64
	for _, figures := range rounds {
		all = append(all, figures[j])
	}
	return c.keep(all)
}

// low is the tenth percentile: on a busy machine the larger values measure the machine.
func low(figures []float64) float64 {
	sorted := slices.Sorted(slices.Values(figures))
	return sorted[len(sorted)/10]
}

func median(figures []float64) float64 {
	sorted := slices.Sorted(slices.Values(figures))
	return sorted[len(sorted)/2]
}

// least and most choose the best of several rounds: other work on the machine can only make a round slower.
func least(figures []float64) float64 { return slices.Min(figures) }
func most(figures []float64) float64  { return slices.Max(figures) }
