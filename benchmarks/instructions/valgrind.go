package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
)

// calls is the number of calls of the shorter of the two runs of a case.
const calls = 10_000

// program is the file of this program, built to run under valgrind. Valgrind writes files beside it.
type program string

func (p program) build(flags ...string) error {
	args := append([]string{"build", "-o", string(p)}, flags...)
	return run("go", append(args, "github.com/ratelimit-go/ratelimit/benchmarks/instructions")...)
}

// instructions returns how many instructions a call of a case takes. Of two runs, the second makes twice as many calls, so that the start of the
// program cancels.
func (p program) instructions(index int) (int64, error) {
	var sums [2]int64
	for i := range sums {
		out := string(p) + ".cachegrind"
		if err := p.valgrind("--tool=cachegrind --cache-sim=no --cachegrind-out-file="+out,
			"-case", strconv.Itoa(index), "-calls", strconv.Itoa(calls*(i+1))); err != nil {
			return 0, err
		}
		text, err := os.ReadFile(out)
		if err != nil {
			return 0, err
		}
		if sums[i], err = summary(string(text)); err != nil {
			return 0, fmt.Errorf("%s: %w", out, err)
		}
	}
	return (sums[1] - sums[0] + calls/2) / calls, nil
}

// summary returns the number of instructions in a file that cachegrind wrote.
func summary(text string) (int64, error) {
	_, sum, _ := strings.Cut(text, "\nsummary: ")
	return strconv.ParseInt(strings.TrimSpace(sum), 10, 64)
}

// trace returns the functions of this module that each traced call entered, and the file of each.
func (p program) trace(redis string) (map[string]string, error) {
	out := string(p) + ".callgrind"
	if err := p.valgrind("--tool=callgrind --compress-strings=no --zero-before=main.begin --dump-before=main.end --callgrind-out-file="+out,
		"-trace", "-redis", redis); err != nil {
		return nil, err
	}
	var all map[string]string
	for turn := 1; turn <= turns; turn++ {
		text, err := os.ReadFile(fmt.Sprintf("%s.%d", out, turn))
		if err != nil {
			return nil, err
		}
		entered := functions(string(text))
		if turn == 1 {
			all = entered
		}
		maps.DeleteFunc(all, func(name, _ string) bool { return entered[name] == "" })
	}
	return all, nil
}

var (
	ofModule = regexp.MustCompile(`^(github\.com/ratelimit-go/ratelimit/|main\.\(\*LimitedLimits\))`)
	part     = regexp.MustCompile(`\.(defer|go)wrap\d+|-range\d+|-fm|'\d+`) // what the compiler and callgrind add to the name of a function
)

// functions returns the functions of this module in a file that callgrind wrote, and the file of each. It leaves out methods that the compiler
// made, which are in no file, and functions of which only callees took instructions: other goroutines had entered these before.
func functions(text string) map[string]string {
	all, file, function, ofCallee := map[string]string{}, "", "", false
	for line := range strings.Lines(text) {
		kind, name, _ := strings.Cut(strings.TrimSpace(line), "=")
		isCost := strings.Trim(kind, "+-*0123456789 ") == "" && kind != ""
		switch {
		case kind == "fl":
			file = name
		case kind == "fn":
			function = part.ReplaceAllString(name, "")
		case isCost && !ofCallee && strings.HasSuffix(file, ".go") && ofModule.MatchString(function):
			all[function] = file
		}
		ofCallee = kind == "calls" // the next line has what the callee took
	}
	return all
}

// valgrind runs the program under valgrind. Garbage is not collected, and goroutines are not interrupted, because that depends on time.
func (p program) valgrind(options string, args ...string) error {
	if _, err := exec.LookPath("valgrind"); err != nil {
		return errors.New("valgrind is missing: install the package valgrind of your system (apt-get install valgrind, dnf install valgrind)")
	}
	command := append(strings.Fields("GOGC=off GOMAXPROCS=1 GODEBUG=asyncpreemptoff=1 valgrind "+options), string(p))
	return run("env", append(command, args...)...)
}

func run(name string, args ...string) error {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return nil
}
