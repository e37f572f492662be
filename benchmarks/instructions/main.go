// Command instructions counts the instructions of a decision in process, and the functions of this module that a call of two rules enters, in
// process and on Redis. It prints two tables. Unlike times, these numbers do not depend on how busy the machine is. It asserts nothing, because
// they depend on the compiler.
//
// It needs valgrind and a Redis server, and runs itself under valgrind: with -case or -trace it makes the calls that are counted.
package main

import (
	"flag"
	"fmt"
	"log"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ratelimit-go/ratelimit/benchmarks/internal/origin"
	"github.com/ratelimit-go/ratelimit/benchmarks/internal/redisproc"
	"github.com/ratelimit-go/ratelimit/internal/redistest"
)

func main() {
	log.SetFlags(0)
	one := flag.Int("case", -1, "make the calls of the case with this `index`")
	calls := flag.Int("calls", 0, "make `n` calls of it")
	trace := flag.Bool("trace", false, "make the calls that are traced")
	redis := flag.String("redis", "", "make them on the server at this `address` instead of in process")
	list := flag.Bool("list", false, "also print the functions")
	flag.Parse()
	var err error
	switch {
	case *one >= 0:
		err = cases[*one].run(*calls)
	case *trace:
		err = traced(*redis)
	default:
		err = measure(*list)
	}
	if err != nil {
		log.Fatal(err)
	}
}

func measure(list bool) error {
	dir, err := os.MkdirTemp("", "ratelimit-instructions-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	fmt.Printf("%s.\n\n", origin.At())
	if err := printInstructions(program(filepath.Join(dir, "optimized"))); err != nil {
		return err
	}
	return printFunctions(program(filepath.Join(dir, "not-inlined")), list)
}

// printInstructions prints a table of all cases. The loop around the calls is not part of a decision.
func printInstructions(p program) error {
	if err := p.build(); err != nil {
		return err
	}
	fmt.Print("| instructions of a decision in process |  | wanted, at most |\n|---|--:|--:|\n")
	var loop int64
	for i, c := range cases {
		n, err := p.instructions(i)
		if err != nil {
			return err
		}
		if i == 0 {
			loop = n
			continue
		}
		fmt.Printf("| %s | %d | %s |\n", c.name, n-loop, c.wanted)
	}
	return nil
}

// printFunctions prints how many functions a call of two rules enters, and in how many files these are.
func printFunctions(p program, list bool) error {
	if err := p.build("-gcflags=all=-l"); err != nil { // a function that is inlined is entered, too
		return err
	}
	owner := &redisproc.Owner{}
	defer owner.End()
	fmt.Print("\n| a call of two rules enters | functions | in files | wanted, at most |\n|---|--:|--:|--:|\n")
	for _, c := range []struct{ name, addr, wanted string }{
		{"in process", "", "50 in 18"},
		{"on Redis, before the client", redistest.Start(owner).Addr, "60 in 22"},
	} {
		if err := traced(c.addr); err != nil { // loads the function into the server, which may take too long under valgrind
			return err
		}
		functions, err := p.trace(c.addr)
		if err != nil {
			return err
		}
		files := slices.Compact(slices.Sorted(maps.Values(functions)))
		fmt.Printf("| %s | %d | %d | %s |\n", c.name, len(functions), len(files), c.wanted)
		if list {
			fmt.Println(strings.Join(slices.Sorted(maps.Keys(functions)), "\n"))
		}
	}
	return nil
}
