package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// input is what a generator reads.
type input struct {
	name       string
	source     string   // of x.go, in which each run changes edited
	interfaces []string // in source, for the other tools
	requires   string   // a module
}

const edited = "1000000"

func inputs() []input {
	return []input{
		{"one interface in a small package", smallSource, []string{"Sender"}, ""},
		fifty(),
		{"one interface over a client with 261 packages below (AWS S3)", awsSource, []string{"Bucket"}, "github.com/aws/aws-sdk-go-v2/service/s3@v1.114.7"},
		{"one interface over a client with 473 packages below (Kubernetes)", kubernetesSource, []string{"Cluster"}, "k8s.io/client-go@v0.37.2"},
	}
}

const smallSource = `package x

import "context"

// Sender delivers one-time codes.
type Sender interface {
	// SendCode sends a login code to phone.
	//
	//ratelimit:rule key="{phone}" limit=1 per=1m
	//ratelimit:rule key="{phone}" limit=1000000 cron="0 0 0 * * *"
	SendCode(ctx context.Context, phone string) error
	Close() error
}
`

const awsSource = `package x

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// Bucket is what this program uses of S3.
type Bucket interface {
	//ratelimit:rule key="{params.Bucket ?? ''}" limit=1000000 per=1s
	PutObject(ctx context.Context, params *s3.PutObjectInput, optFns ...func(*s3.Options)) (*s3.PutObjectOutput, error)
	GetObject(ctx context.Context, params *s3.GetObjectInput, optFns ...func(*s3.Options)) (*s3.GetObjectOutput, error)
}

var _ Bucket = (*s3.Client)(nil)
`

const kubernetesSource = `package x

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// Cluster is what this program uses of Kubernetes.
type Cluster interface {
	//ratelimit:rule key="{pod.Namespace}" limit=1000000 per=1s
	Create(ctx context.Context, pod *corev1.Pod, opts metav1.CreateOptions) (*corev1.Pod, error)
	Pods(namespace string) typedcorev1.PodInterface
}
`

// fifty returns the input of fifty interfaces that use net/http.
func fifty() input {
	in := input{name: "fifty interfaces in one call", source: "package x\n\nimport (\n\t\"context\"\n\t\"net/http\"\n\t\"time\"\n)\n"}
	for i := range 50 {
		name := fmt.Sprint("Store", i)
		in.interfaces = append(in.interfaces, name)
		in.source += fmt.Sprintf(`
// %[1]s keeps documents.
type %[1]s interface {
	// Get returns the document with the given id.
	//
	//ratelimit:rule key="{id}" limit=1000000 per=1m
	Get(ctx context.Context, id string) (*http.Response, error)
	//ratelimit:rule key="{id}" limit=10 per=1m
	//ratelimit:rule limit=1000 per=1s
	Put(ctx context.Context, id string, body []byte, ttl time.Duration) (version int64, err error)
	Close() error
}
`, name)
	}
	return in
}

// generator is a tool. args returns its arguments for an input in the current directory.
type generator struct {
	name, module string
	args         func(input) []string
}

// generators are ratelimit, and two generators of mocks, which do a similar job.
var generators = []generator{
	{"ratelimit", "", func(input) []string { return nil }},
	{"moq", "github.com/matryer/moq@v0.8.1", func(in input) []string { return append([]string{"-out", "x_moq.go", "."}, in.interfaces...) }},
	{"mockgen", "go.uber.org/mock/mockgen@v0.6.0", func(in input) []string {
		return []string{"-destination", filepath.Join("mocks", "x.go"), ".", strings.Join(in.interfaces, ",")}
	}},
}

// generateSections measures each generator and all processes that it starts, from an edit of the annotated file to the end.
func generateSections(server *redisServer, e effort) []section {
	return []section{generateSection(server.owner.TempDir(), generators, inputs(), e.turns/2)}
}

func generateSection(dir string, tools []generator, inputs []input, rounds int) section {
	s := section{title: "Generating, beside two generators of mocks", rounds: max(1, rounds)}
	for _, g := range tools {
		s.columns = append(s.columns, column{g.name + ": cpu s", median, threeDigits, false}, column{"wall s", median, threeDigits, false},
			column{"peak MiB", median, grouped, false})
	}
	for i, in := range inputs {
		prepare := sync.OnceValue(func() error { return in.prepare(filepath.Join(dir, fmt.Sprint(i)), tools) })
		runs := 0
		s.cases = append(s.cases, benchmark{in.name, func() (figures []float64, err error) {
			if err := prepare(); err != nil {
				return nil, err
			}
			runs++
			for _, g := range tools {
				used, err := g.run(filepath.Join(dir, fmt.Sprint(i), g.name), in, runs)
				if err != nil {
					return nil, err
				}
				figures = append(figures, used...)
			}
			return figures, nil
		}})
	}
	return s
}

func threeDigits(x float64) string { return fmt.Sprintf("%.3f", x) }

// prepare makes a folder for each tool with its program and a module of the input, and runs it once, which fills the caches.
func (in input) prepare(dir string, tools []generator) error {
	for _, g := range tools {
		at := filepath.Join(dir, g.name)
		if err := errors.Join(in.write(at), g.install(at)); err != nil {
			return err
		}
		if _, err := g.run(at, in, 0); err != nil {
			return err
		}
	}
	return nil
}

// write makes a module of the input. It requires what this one does, so that generated code compiles.
func (in input) write(dir string) error {
	root, err := filepath.Abs("..")
	if err != nil {
		return err
	}
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		return err
	}
	sums, err := os.ReadFile("go.sum")
	if err != nil {
		return err
	}
	text := strings.NewReplacer("github.com/ratelimit-go/ratelimit/benchmarks", "example.com/x", "=> ../", "=> "+root).Replace(string(mod))
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "go.mod"), []byte(text), 0o644),
		os.WriteFile(filepath.Join(dir, "go.sum"), sums, 0o644), in.edit(dir, 0)); err != nil || in.requires == "" {
		return err
	}
	return goCommand(dir, "get", in.requires, ".")
}

// edit writes the source with a limit of 1000+n, so each n gives another source.
func (in input) edit(dir string, n int) error {
	return os.WriteFile(filepath.Join(dir, "x.go"), []byte(strings.ReplaceAll(in.source, edited, strconv.Itoa(1000+n))), 0o644)
}

// install makes the program of a generator in a folder.
func (g generator) install(dir string) error {
	if g.module == "" {
		return goCommand("..", "build", "-o", filepath.Join(dir, g.name), "./cmd/ratelimit")
	}
	return goCommand(dir, "install", g.module)
}

// run edits the source and runs the tool. It returns seconds of processors, seconds, and the MiB of the largest process.
func (g generator) run(dir string, in input, n int) ([]float64, error) {
	if err := in.edit(dir, n); err != nil {
		return nil, err
	}
	cmd := exec.Command("./"+g.name, g.args(in)...)
	cmd.Dir = dir
	start := time.Now()
	if err := execute(cmd); err != nil {
		return nil, err
	}
	wall, used := time.Since(start).Seconds(), cmd.ProcessState
	peak := used.SysUsage().(*syscall.Rusage).Maxrss
	return []float64{(used.UserTime() + used.SystemTime()).Seconds(), wall, float64(peak) / 1024}, nil
}

// goCommand runs the go command in a folder. go install puts programs there.
func goCommand(dir string, args ...string) error {
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOBIN="+dir)
	return execute(cmd)
}

func execute(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	return nil
}
