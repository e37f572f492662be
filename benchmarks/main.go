// Command benchmarks measures the limiters of this module and of others: how much time a decision takes on a Redis server, how much memory a
// subject takes there, and how much time a decision takes in process and from end to end. It starts its own Redis server and prints tables.
// With -out it writes them between markers in that file, and five sentences about them. It asserts nothing, because the results depend on the
// machine.
package main

import (
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"strings"
	"time"
)

// effort says how much to measure. With more effort, the figures vary less from run to run.
type effort struct {
	rounds int           // of each case on the server
	calls  int           // in a round
	limits []int64       // of sliding windows
	turns  int           // of each load and each case in process. Turns are short, because the machine may be busy now and then
	turn   time.Duration // of a load
	long   time.Duration // of a load that is not measured in many turns
	repeat int           // of what takes long or hardly varies
	hot    int           // calls of one key in process, in a turn
	keys   int           // in process
	crowd  int           // calls that wait for one subject
}

var (
	full = effort{
		rounds: 60, calls: 600, limits: []int64{10, 100, 1_000, 10_000, 100_000},
		turns: 30, turn: 100 * time.Millisecond, long: time.Second, repeat: 3, hot: 100_000, keys: 200_000, crowd: 2000,
	}
	quick = effort{
		rounds: 1, calls: 50, limits: []int64{10, 100},
		turns: 1, turn: 20 * time.Millisecond, long: 20 * time.Millisecond, repeat: 1, hot: 100, keys: 100, crowd: 20,
	}
)

// part is a group of tables, which a run measures or leaves out.
type part struct {
	name     string
	sections func(*redisServer, effort) []section
	asked    bool // it is measured only if -only names it, because it needs more than a Redis server
}

// parts are the parts of README.md that this program writes.
var parts = []part{
	{"server", serverSections, false},
	{"memory", memorySections, false},
	{"loads", loadSections, false},
	{"longest", longestSections, false},
	{"process", processSections, false},
	{"generate", generateSections, true},
	{"instructions", instructionSections, true},
}

func names() (all []string) {
	for _, p := range parts {
		all = append(all, p.name)
	}
	return all
}

func main() {
	log.SetFlags(0)
	smoke := flag.Bool("quick", false, "run every case for a moment only, to see that it works; the figures mean nothing (instructions takes as long as ever)")
	out := flag.String("out", "", "also put the tables, and sentences about them, between the markers in this `file`")
	only := flag.String("only", "", "measure only these `parts`, of "+strings.Join(names(), ","))
	repeat := flag.String("case", "", "make calls of the case with this `name`, for the part instructions")
	calls := flag.Int("calls", 0, "make `n` of them")
	flag.Parse()
	if *repeat != "" {
		if err := repeatCase(*repeat, *calls); err != nil {
			log.Fatal(err)
		}
		return
	}
	e := full
	if *smoke {
		e = quick
	}
	if err := measure(e, *only, *out); err != nil {
		log.Fatal(err)
	}
}

func measure(e effort, only, out string) error {
	named := strings.Split(only, ",")
	for _, name := range named {
		if only != "" && !slices.Contains(names(), name) {
			return fmt.Errorf("-only: unknown part %q; expected some of %s", name, strings.Join(names(), ","))
		}
	}
	server := startRedis()
	defer server.stop()
	for _, p := range parts {
		if !slices.Contains(named, p.name) && (only != "" || p.asked) {
			continue
		}
		if err := server.client.FlushAll(ctx).Err(); err != nil {
			return err
		}
		var report strings.Builder
		w := io.MultiWriter(os.Stdout, &report)
		fmt.Fprint(w, origin(server.version()))
		for _, s := range p.sections(server, e) {
			t, err := s.measure()
			if err != nil {
				return err
			}
			t.write(w)
		}
		if out == "" {
			continue
		}
		if err := replace(out, p.name, report.String()); err != nil {
			return err
		}
	}
	if out == "" {
		return nil
	}
	return writeSummary(out)
}
