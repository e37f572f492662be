// Command scale estimates how many decisions a second clusters of several sizes make. It measures the cost of decisions on one server and on
// clusters of one and three nodes on this machine, and simulates larger clusters with these costs. It prints tables. With -out it writes them
// between the two markers in that file.
package main

import (
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"time"

	"github.com/ratelimit-go/ratelimit/benchmarks/internal/marked"
	"github.com/ratelimit-go/ratelimit/benchmarks/internal/origin"
)

// part is the part of scale.md with the tables.
var part = marked.Part{Begin: "<!-- begin of what `go run ./scale -out scale.md` writes -->", End: "<!-- end -->"}

func main() {
	log.SetFlags(0)
	out := flag.String("out", "", "also put the tables between the markers in this `file`")
	span := flag.Duration("span", 3*time.Second, "how long each load is measured")
	flag.Parse()
	if err := run(*span, []int{1, 3, 10, 100}, *out); err != nil {
		log.Fatal(err)
	}
}

func run(span time.Duration, nodes []int, out string) error {
	loads, err := measureAll(span)
	if err != nil {
		return err
	}
	c, err := costsOf(loads)
	if err != nil {
		return err
	}
	var report strings.Builder
	w := io.MultiWriter(os.Stdout, &report)
	fmt.Fprintf(w, "%s. Client and servers share the cores.\n", origin.At())
	writeMeasured(w, loads, c)
	writeCosts(w, c)
	writeSimulated(w, c, nodes)
	if out == "" {
		return nil
	}
	return part.Replace(out, report.String())
}

func writeMeasured(w io.Writer, loads []load, c costs) {
	fmt.Fprint(w, "\n### Measured, and what the costs below add up to\n\n",
		"| servers | callers | subjects | decisions a second | scripts a decision | server us a decision | by the costs | client us a decision |\n",
		"|---|--:|---|--:|--:|--:|--:|--:|\n")
	for _, l := range loads {
		fmt.Fprintf(w, "| %s | %d | %s | %.0f | %.4f | %.2f | %.2f | %.2f |\n",
			l.servers, l.callers, l.subjects, l.rate, l.scripts, l.server, c.server(l), l.client)
	}
}

func writeCosts(w io.Writer, c costs) {
	fmt.Fprint(w, "\n### Costs, microseconds\n\n| of | us |\n|---|--:|\n")
	for _, cost := range []struct {
		of string
		us float64
	}{
		{"a read of a connection, and the replies to it: server", c.trip},
		{"a script of a run: server", c.script},
		{"a decision in it: server", c.decision},
		{"one of equal decisions in it: server", c.equal},
		{"a decision: client", c.client},
		{"one of equal decisions: client", c.clientEqual},
		{"a decision from a lease: client", c.leased},
	} {
		fmt.Fprintf(w, "| %s | %.2f |\n", cost.of, cost.us)
	}
}

func writeSimulated(w io.Writer, c costs, nodes []int) {
	fmt.Fprintf(w, "\n### Simulated: processes of %d cores and %d callers each, %v away from the servers\n\n", cores, callersEach, network)
	fmt.Fprint(w, "| nodes | subjects | processes | decisions a second | busiest node | busiest process | connections of a node | what saturates |\n",
		"|--:|---|--:|--:|--:|--:|--:|---|\n")
	for _, subjects := range []string{cold, hot, leased} {
		for _, nodes := range nodes {
			s := saturate(c, subjects, nodes)
			fmt.Fprintf(w, "| %d | %s | %d | %.0f | %.0f %% | %.0f %% | %d | %s |\n",
				nodes, subjects, s.processes, s.rate, 100*s.node, 100*s.process, flying*s.processes, s.saturated())
		}
	}
}
