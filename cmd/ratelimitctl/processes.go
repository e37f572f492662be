package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/operate"
)

// shownProcess is a process as JSON.
type shownProcess struct {
	fleet.Process
	Ahead string `json:"ahead,omitempty"` // how far its clock is ahead of the store's
	Late  bool   `json:"late,omitempty"`  // it does not follow the newest setting yet
}

// nobodyReports says that no process has lately said anything.
const nobodyReports = "no process of this prefix reports: none runs, or none can write to the server"

// printProcesses prints the processes of the prefix.
func printProcesses(ctx context.Context, s *session) error {
	all, at := s.prefix.ProcessStates(ctx)
	if at.Err != nil {
		return at.Err
	}
	var rows []shownProcess
	for _, p := range all {
		row := shownProcess{Process: p.Process, Late: p.Late}
		if p.IsSkewed() {
			row.Ahead = p.Ahead.Round(time.Millisecond).String()
		}
		rows = append(rows, row)
	}
	return printTable(s.output, rows, nobodyReports, "HOST, PID, PROGRAM, BUILD, SINCE, LAST WORD, SETTINGS, CLOCK, WRONG", func(p *shownProcess) []string {
		return []string{p.Host, fmt.Sprint(p.PID), p.Program, p.Build, operate.LocalTime(p.Start), operate.Ago(s.prefix.Now().Sub(p.At)), p.settings(), p.clock(), p.wrong()}
	})
}

func (p *shownProcess) settings() string {
	switch {
	case p.Lost > 0:
		return fmt.Sprintf("%d that the store lost", p.Lost)
	case p.Late:
		return "older ones"
	}
	return "current"
}

func (p *shownProcess) clock() string {
	if p.Ahead == "" {
		return "right"
	}
	if strings.HasPrefix(p.Ahead, "-") {
		return p.Ahead[1:] + " behind"
	}
	return p.Ahead + " ahead"
}

// wrong returns its last errors.
func (p *shownProcess) wrong() string {
	return strings.Join(slices.DeleteFunc([]string{p.Store, p.Setting}, func(text string) bool { return text == "" }), "; ")
}
