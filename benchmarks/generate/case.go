package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// benchmark is an input, with the arguments of ratelimit for it.
type benchmark struct {
	name       string
	args       []string // of ratelimit
	source     string   // of x.go, the file that is edited; "" if there is none to edit
	interfaces []string // the interfaces in source, for the other tools; nil if they cannot do the same
	requires   []string // modules
	forest     int      // the number of other packages, which have no directives
	cold       bool     // each run begins with an empty build cache
	says       string   // what ratelimit says as it exits with status 1; "" means that it succeeds
}

func benchmarks() []benchmark {
	small := benchmark{name: "one interface in a small package", source: smallSource, interfaces: []string{"Sender"}}
	cold := small
	cold.name, cold.args, cold.cold, cold.says = small.name+", cold build cache, `-check`", []string{"-check"}, true, "run: go tool ratelimit"
	return []benchmark{
		small,
		fifty(),
		{
			name: "one interface over a client with 261 packages below (AWS S3)", source: awsSource, interfaces: []string{"Bucket"},
			requires: []string{"github.com/aws/aws-sdk-go-v2/service/s3@v1.114.7"},
		},
		{
			name: "one interface over a client with 473 packages below (Kubernetes)", source: kubernetesSource, interfaces: []string{"Cluster"},
			requires: []string{"k8s.io/client-go@v0.37.2"},
		},
		cold,
		{name: "`./...` of 388 packages, one annotated", args: []string{"./..."}, source: smallSource, forest: 387},
		{name: "`./...` of 388 packages, none annotated", args: []string{"./..."}, forest: 388, says: "no //ratelimit: directives"},
	}
}

// edit is replaced by another number for each run.
const edit = "1000000"

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

// fifty returns the case of fifty interfaces that use net/http.
func fifty() benchmark {
	c := benchmark{name: "fifty interfaces in one call"}
	var b strings.Builder
	b.WriteString("package x\n\nimport (\n\t\"context\"\n\t\"net/http\"\n\t\"time\"\n)\n")
	for i := range 50 {
		name := fmt.Sprint("Store", i)
		c.interfaces = append(c.interfaces, name)
		fmt.Fprintf(&b, `
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
	c.source = b.String()
	return c
}

// plant writes a package of five files without directives.
func plant(dir, name string) error {
	for i := range 5 {
		var b strings.Builder
		fmt.Fprintf(&b, "// Package %[1]s has no limits.\npackage %[1]s\n\nimport \"context\"\n", name)
		for k := range 60 {
			fmt.Fprintf(&b, "\n// F%[1]d_%[2]d returns what became of ctx.\nfunc F%[1]d_%[2]d(ctx context.Context) error {\n\treturn ctx.Err()\n}\n", i, k)
		}
		if err := writeFile(filepath.Join(dir, name, fmt.Sprintf("f%d.go", i)), b.String()); err != nil {
			return err
		}
	}
	return nil
}

// write makes the module of the case in dir. It keeps nothing in memory, because a new process starts with the size of its parent, which would
// show in its peak.
func (c benchmark) write(dir string) error {
	root, err := filepath.Abs("..")
	if err != nil {
		return err
	}
	module := "module example.com/x\n\ngo 1.26.0\n\nreplace github.com/ratelimit-go/ratelimit => " + root + "\n"
	if err := writeFile(filepath.Join(dir, "go.mod"), module); err != nil {
		return err
	}
	for i := range c.forest {
		if err := plant(dir, fmt.Sprint("p", i)); err != nil {
			return err
		}
	}
	if c.source != "" {
		if err := writeFile(filepath.Join(dir, "x.go"), c.source); err != nil {
			return err
		}
	}
	if c.requires != nil {
		if err := goCommand(dir, nil, append([]string{"get"}, c.requires...)...); err != nil {
			return err
		}
	}
	return requireRuntime(dir)
}

// requireRuntime adds to the go.mod file in dir what generated code needs. The other tools have no file that imports the runtime.
func requireRuntime(dir string) error {
	importing := filepath.Join(dir, "runtime.go")
	if err := writeFile(importing, "package x\n\nimport _ \"github.com/ratelimit-go/ratelimit/runtime/wrap\"\n"); err != nil {
		return err
	}
	if err := goCommand(dir, nil, "mod", "tidy"); err != nil {
		return err
	}
	return os.Remove(importing)
}
