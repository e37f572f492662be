// Command benchmarks measures the limiters of this module and of others: how much time a decision takes on a Redis server, how much memory a
// subject takes there, and how much time a decision takes in memory and from end to end. It starts its own Redis server and prints its tables.
// With -out it writes them between two markers in that file, and five sentences about them between two others. It asserts nothing, because the
// results depend on the machine.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit-go/ratelimit/benchmarks/internal/marked"
	"github.com/ratelimit-go/ratelimit/benchmarks/internal/origin"
)

// effort says how much to measure. With more effort, the figures vary less from run to run.
type effort struct {
	rounds   int           // of each case on the server
	calls    int           // in a round
	limits   []int64       // of sliding windows
	large    []int64       // limits of large sliding windows
	members  int64         // of a large set
	subjects int           // for measurements of memory
	bench    time.Duration // of one turn of a benchmark in memory
	turn     time.Duration // of one turn of a load
	turns    int           // of each benchmark or load. The best one counts; turns are short, because the machine may be busy now and then
	load     time.Duration // of each load without turns
	repeats  int           // of measurements that take long or hardly vary. The best one counts
	fleet    int           // processes of one prefix
	settings int           // in force for them
	rules    int           // that one of them declares
	crowd    int           // calls that wait for one subject
	settle   time.Duration // after they have started
	idle     time.Duration // of processes that make no call
}

var (
	full = effort{
		rounds: 60, calls: 600, limits: []int64{10, 100, 1_000, 10_000, 100_000}, subjects: 1_000_000,
		large: []int64{1_000, 10_000, 100_000, 1_000_000}, members: 500_000,
		bench: 20 * time.Millisecond, turn: 100 * time.Millisecond, turns: 30, load: time.Second, repeats: 3,
		fleet: 1000, settings: 10_000, rules: 1000, crowd: 2000, settle: 8 * time.Second, idle: 10 * time.Second,
	}
	quick = effort{
		rounds: 1, calls: 50, limits: []int64{10, 100, 1_000}, large: []int64{100, 1000}, members: 1000, subjects: 960, bench: 5 * time.Millisecond,
		turn: 20 * time.Millisecond, turns: 1, load: 20 * time.Millisecond, repeats: 1,
		fleet: 10, settings: 20, rules: 10, crowd: 20, idle: 20 * time.Millisecond,
	}
)

// sections are the measurements. Each returns its tables.
var sections = []struct {
	name    string
	measure func(*redisServer, effort) ([]table, error)
}{
	{"server", measureServer},
	{"worst", measureWorst},
	{"longest", measureLongest},
	{"commands", measureCommands},
	{"memory", measureMemory},
	{"amounts", measureAmounts},
	{"running", measureRunning},
	{"throughput", measureThroughput},
	{"latency", measureLatency},
	{"refused", measureRefused},
	{"leased", measureLeased},
	{"process", measureProcess}, // its limiters keep hundreds of megabytes: collections would be rare in a section after it that allocates
	{"fleet", measureFleet},
	{"settings", measureWriting},
}

// part is the part of README.md with the tables, and short that with the sentences about them.
var (
	part  = marked.Part{Begin: "<!-- begin of what `go run . -out README.md` writes -->", End: "<!-- end -->"}
	short = marked.Part{Begin: "<!-- begin of what it writes at the top -->", End: "<!-- end of the top -->"}
)

func main() {
	log.SetFlags(0)
	testing.Init() // for testing.Benchmark's own flags
	smoke := flag.Bool("quick", false, "run every case for a moment only, to see that it works; the figures mean nothing")
	out := flag.String("out", "", "also put the tables, and sentences about them, between the markers in this `file`; needs all sections")
	only := flag.String("only", "", "measure only these `sections`, of server,worst,longest,commands,memory,amounts,running,throughput,latency,refused,leased,process,fleet,settings")
	subjects := flag.Int("subjects", 0, "`number` of subjects to measure memory over (default 1000000)")
	flag.Parse()
	e := full
	if *smoke {
		e = quick
	}
	if *subjects > 0 {
		e.subjects = *subjects
	}
	if err := run(e, *only, *out); err != nil {
		log.Fatal(err)
	}
}

func run(e effort, only, out string) error {
	if out != "" && only != "" {
		return errors.New("-out needs all sections, so that all tables are of one commit: leave out -only")
	}
	if err := flag.Set("test.benchtime", e.bench.String()); err != nil {
		return err
	}
	server := startRedis()
	defer server.stop()
	var report strings.Builder
	tee := io.MultiWriter(os.Stdout, &report)
	where := fmt.Sprintf("%s, Redis %s.\n", origin.At(), server.version())
	fmt.Print(where)
	var all []table
	for _, s := range sections {
		if only != "" && !strings.Contains(","+only+",", ","+s.name+",") {
			continue
		}
		tables, err := s.measure(server, e)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		for _, t := range tables {
			t.write(tee)
		}
		all = append(all, tables...)
	}
	if out == "" {
		return nil
	}
	sentences, err := summary(all)
	if err != nil {
		return err
	}
	if err := short.Replace(out, where+"\n"+sentences); err != nil {
		return err
	}
	return part.Replace(out, report.String())
}
