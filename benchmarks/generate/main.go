// Command generate measures the cost of generating, and that of two generators of mocks, which do a similar job: moq and mockgen. It installs
// both into a temporary folder, at the versions below. Each tool works on a copy of the same sources. Before each run the annotated file is
// edited. The command prints a table. With -out it writes the table between the two markers in that file. It asserts nothing, because the results
// depend on the machine.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/ratelimit-go/ratelimit/benchmarks/internal/marked"
	"github.com/ratelimit-go/ratelimit/benchmarks/internal/origin"
)

// part is the part of benchmarks/README.md with the table.
var part = marked.Part{
	Begin:   "<!-- begin of what `go run ./generate -out README.md` writes -->",
	End:     "<!-- end of generate -->",
	Heading: "## Generating",
}

func main() {
	log.SetFlags(0)
	quick := flag.Bool("quick", false, "run each case once, and those with large clients not at all, to see that it works; the figures mean nothing")
	out := flag.String("out", "", "also put the table between the markers in this `file`")
	only := flag.String("only", "", "measure only the cases whose names contain this `text`")
	flag.Parse()
	rounds, coldRounds := 15, 3
	if *quick {
		rounds, coldRounds = 1, 1
	}
	dir, err := os.MkdirTemp("", "ratelimit-generate-")
	if err != nil {
		log.Fatal(err)
	}
	err = run(dir, *out, func(c benchmark) int {
		switch {
		case !strings.Contains(c.name, *only), *quick && c.requires != nil:
			return 0
		case c.cold:
			return coldRounds
		}
		return rounds
	})
	if err := os.RemoveAll(dir); err != nil {
		log.Print(err)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// run measures each case. rounds returns the number of rounds for a case.
func run(dir, out string, rounds func(benchmark) int) error {
	tools, err := install(dir)
	if err != nil {
		return err
	}
	var report strings.Builder
	fmt.Fprintf(&report, "%s, beside %s and %s: the process and all that it starts, from an edit of the annotated "+
		"file to the end. Medians of runs by turns, with the build cache warm. The last column is ratelimit's cpu as a multiple of the peer's.\n\n",
		origin.At(), moqModule, mockgenModule)
	report.WriteString("| case | tool | cpu s | wall s | peak MiB | cpu of ratelimit |\n|---|---|--:|--:|--:|--:|\n")
	for _, c := range benchmarks() {
		n := rounds(c)
		if n == 0 {
			continue
		}
		results, err := c.measure(dir, tools, n)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		for i, r := range results {
			name, relation := "", ""
			if i == 0 {
				name = c.name
			} else {
				relation = fmt.Sprintf("%.2f×", results[0].cpu/r.cpu)
			}
			fmt.Fprintf(&report, "| %s | %s | %.3f | %.3f | %.0f | %s |\n", name, r.tool, r.cpu, r.wall, r.peak, relation)
		}
		fmt.Fprintf(os.Stderr, "%s\n", c.name)
	}
	fmt.Print(report.String())
	if out == "" {
		return nil
	}
	return part.Replace(out, report.String())
}
