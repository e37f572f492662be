package generator_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/ratelimit-go/ratelimit/generator"
	"github.com/ratelimit-go/ratelimit/internal/testmodule"
)

// platforms are the builds that TestPlatforms tries: a system, an architecture, tags, and whether cgo is on.
var platforms = [][4]string{
	{"linux", "amd64", "", "1"}, {"linux", "arm64", "", "0"}, {"windows", "amd64", "", "0"}, {"darwin", "arm64", "", "0"}, {"linux", "amd64", "special", "0"},
}

// split are packages with methods in files of platforms and tags. Each begins with what it shows.
const split = `
-- through/svc.go --
// Package through has a method without a directive on one platform.
package through

import "context"

type Service struct{}

//ratelimit:rule key="{id}" limit=1 per=1m
func (s *Service) Do(ctx context.Context, id string) error { return nil }
-- through/svc_linux.go --
package through

// Fd is there on linux only.
func (s *Service) Fd() int { return 1 }
-- limited/a.go --
// Package limited has methods with directives on two platforms, and some of its methods in other files.
package limited

import "context"

type Service struct{ n, calls int }

//ratelimit:rule key="{s.Region()}" limit=1 per=1m
func (s *Service) A(ctx context.Context) error {
	s.calls++
	return nil
}

func (s *Service) Region() string { return "eu" }
-- limited/b.go --
package limited

import ctx "context"

//ratelimit:rule key="{r.n}:{id}" limit=1 per=1m
func (r *Service) B(c ctx.Context, id string) error { return nil }
-- limited/c_windows.go --
package limited

import "context"

//ratelimit:rule name=windows limit=1 per=1m refund=error
func (s *Service) Windows(ctx context.Context) error { return nil }
-- limited/c_linux.go --
package limited

import "context"

//ratelimit:rule name=linux key="{s.n}" limit=1 per=1m
//ratelimit:fallback .A
func (s *Service) Linux(ctx context.Context) error { return nil }
-- limited/c_linux_test.go --
package limited

import (
	"testing"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
)

// early is made before the variables of c_linux_ratelimit.go.
var early = NewLimitedService(&Service{}, ratelimit.New(memstore.New()))

func TestEarly(t *testing.T) {
	ctx, late := t.Context(), NewLimitedService(&Service{}, ratelimit.New(memstore.New()))
	for _, s := range []*LimitedService{early, late} {
		if first, second := s.Linux(ctx), s.Linux(ctx); first != nil || second != nil {
			t.Errorf("%v, %v; the second call has a fallback", first, second)
		}
		if s.next.calls != 1 {
			t.Errorf("%d calls of A, expected that of the fallback", s.next.calls)
		}
		if n := len(s.RateLimits()); n != 3 {
			t.Errorf("there are %d rules, expected those of A, B and Linux", n)
		}
	}
}
-- same/svc.go --
// Package same has a method of one name on three platforms. On one of them it has a directive, and on another one other results.
package same

// Service is limited.
//
//ratelimit:rule name=all limit=10 per=1m
type Service struct{ Base }

func (s *Service) One() error { return nil }

func (s *Service) Two() error { return nil }
-- same/fd_linux.go --
package same

import "syscall"

//ratelimit:rule name=fd limit=1 per=1m
func (s *Service) Fd() (syscall.Timespec, error) { return syscall.Timespec{}, nil }
-- same/fd_windows.go --
package same

import "syscall"

//ratelimit:skip
func (s *Service) Fd() syscall.Handle { return 0 }
-- same/fd_other.go --
//go:build !linux && !windows

package same

//ratelimit:skip
func (s *Service) Fd() error { return nil }
-- same/base_linux.go --
package same

type Base struct{}

func (*Base) Linux(fd int) error { return nil }
-- same/base_rest.go --
//go:build !linux

package same

type Base struct{ *deeper }

type deeper struct{}

func (deeper) Deep() error { return nil }
-- deep/svc.go --
// Package deep has a type that embeds a type that embeds another one, which has a method on one platform.
package deep

type Service struct{ Base }

type Base struct{ *deeper }

type deeper struct{}

//ratelimit:rule limit=1 per=1m
func (*Service) Do() error { return nil }
-- deep/deep_windows.go --
package deep

func (deeper) Deep() error { return nil }
-- only/svc.go --
// Package only has directives in files of platforms alone.
package only

type Service struct{}

func (Service) Plain() {}
-- only/a_linux.go --
package only

//ratelimit:rule limit=1 per=1m name=unix
func (Service) Do() error { return nil }
-- only/b_windows.go --
package only

//ratelimit:rule limit=1 per=1m name=win
func (Service) Open() error { return nil }
-- own/svc_unix.go --
//go:build unix

// Package own has a type whose own file has a constraint, with a method in a file of fewer builds.
package own

type Service struct{}

//ratelimit:rule limit=1 per=1m
func (Service) Do() error { return nil }
-- own/svc_linux.go --
package own

func (Service) Fd() int { return 0 }
-- own/svc_linux_arm64.go --
package own

//ratelimit:rule limit=1 per=1m name=arm
func (Service) Arm() error { return nil }
-- own/rest.go --
//go:build !unix

package own
-- tags/svc.go --
// Package tags has methods under tags, under cgo, and in files whose names only look like constraints.
package tags

type Service struct{}

//ratelimit:rule limit=1 per=1m
func (Service) Do() error { return nil }
-- tags/linux.go --
package tags

func (Service) Everywhere() {}
-- tags/a_special.go --
//go:build special

package tags

//ratelimit:rule limit=1 per=1m name=special
func (Service) Special() error { return nil }
-- tags/a_linux.go --
//go:build linux && !special

package tags

//ratelimit:rule limit=1 per=1m name=other
func (Service) Other() error { return nil }
-- tags/c.go --
package tags

import "C"

type Count C.int

func (Service) Count() (Count, error) { return 0, nil }
-- tests/svc.go --
// Package tests has a type of tests, and methods in tests of one platform.
package tests

type Service struct{}

//ratelimit:rule limit=1 per=1m
func (Service) Do() error { return nil }
-- tests/x_linux_test.go --
package tests

func (Service) Tested() {}

func (fake) Linux() {}
-- tests/x_test_linux.go --
package tests

func (Service) NoTest() {}
-- tests/fake_test.go --
package tests

type fake struct{}

//ratelimit:rule limit=1 per=1m name=fake
func (fake) Do() error { return nil }
-- guarded/svc.go --
// Package guarded has guards of methods on one platform.
package guarded

//ratelimit:guard
type Service struct{ guard *ServiceGuard }

//ratelimit:rule limit=1 per=1m
func (s *Service) Do() error { return s.guard.Do() }
-- guarded/svc_windows.go --
package guarded

//ratelimit:rule limit=1 per=1m name=open algorithm=concurrency
func (s *Service) Open() (err error) {
	done, err := s.guard.Open()
	if err != nil {
		return err
	}
	defer done(&err)
	return nil
}

//ratelimit:rule limit=1 per=1m name=limits
func (s *Service) limits() error { return s.guard.limits() }
-- generic/svc.go --
// Package generic has a type with type parameters, and hands out wrappers on one platform.
package generic

type Service[K comparable] struct{}

//ratelimit:rule limit=1 per=1m
func (*Service[K]) Do(K) error { return nil }
-- generic/svc_darwin.go --
package generic

func (s *Service[Key]) With(Key) (*Service[Key], error) { return s, nil }

//ratelimit:rule limit=1 per=1m name=mac
func (s *Service[_]) Mac() (*Service[int], error) { return nil, nil }
-- passes/tx.go --
// Package passes has values that only types, and only methods, of one platform hand out and take back.
package passes

type Tx interface {
	//ratelimit:rule limit=1 per=1m
	Exec() error
}

type Another = Other

type Other interface {
	//ratelimit:rule limit=1 per=1m name=other
	Do() error
}

//ratelimit:rule limit=1 per=1m name=task
type Task func() error

type Rows struct{}

//ratelimit:rule limit=1 per=1m name=next
func (*Rows) Next() error { return nil }

-- passes/db_linux.go --
package passes

type DB interface {
	//ratelimit:rule limit=1 per=1m name=begin
	Begin() (Tx, error)
	Save(Tx) error
}

type Pool struct{}

//ratelimit:rule limit=1 per=1m name=query
func (Pool) Query() (*Rows, Task, error) { return nil, nil, nil }
-- passes/funcs_windows.go --
package passes

type Funcs struct {
	//ratelimit:rule limit=1 per=1m name=begin-windows
	Begin func() (Another, error)
}
-- interfaces/svc.go --
// Package interfaces has an interface that embeds one of each platform.
package interfaces

type Service interface {
	//ratelimit:rule limit=1 per=1m
	Do() error
	platform
}
-- interfaces/p_linux.go --
package interfaces

type platform interface {
	//ratelimit:rule limit=1 per=1m name=fd
	Fd() (int, error)
}
-- interfaces/p_rest.go --
//go:build !linux

package interfaces

type platform interface{ Handle() uintptr }
-- apart/a_linux.go --
// Package apart has a type of one name on each platform.
package apart

type Service interface {
	//ratelimit:rule limit=1 per=1m
	Do() error
}
-- apart/a_windows.go --
package apart

type Service interface {
	//ratelimit:rule limit=2 per=1m
	Do(int) error
}
-- apart/a.go --
package apart
`

// TestPlatforms generates once, and expects that nothing is stale under other builds, and that what was generated compiles there.
func TestPlatforms(t *testing.T) {
	dir := place(t, split)
	all := generator.Config{Dir: dir, Patterns: []string{"./..."}}
	names, notes := written(t, all)
	if len(notes) > 0 {
		t.Errorf("said %q", notes)
	}
	for _, output := range []string{"through/svc_linux", "limited/c_linux", "limited/c_windows", "same/fd_other", "same/base_rest", "deep/deep_windows", "own/svc_linux_arm64", "tags/a_special",
		"tags/c", "guarded/svc_windows", "generic/svc_darwin", "passes/db_linux", "passes/funcs_windows", "interfaces/p_linux", "interfaces/p_rest", "apart/a_linux", "apart/a_windows"} {
		if !strings.Contains(strings.Join(names, " "), output+"_ratelimit.go") {
			t.Errorf("nothing is generated for %s.go; wrote %q", output, names)
		}
	}
	goIn(t, dir, "test", "./limited")
	for _, p := range platforms {
		for i, name := range []string{"GOOS", "GOARCH", "", "CGO_ENABLED"} {
			if name != "" {
				t.Setenv(name, p[i])
			}
		}
		all.Tags = p[2]
		if names, notes := written(t, all); len(names)+len(notes) > 0 {
			t.Errorf("%v: wrote %q, said %q", p, names, notes)
		}
		goIn(t, dir, "vet", "-tags="+p[2], "./...")
	}
}

// TestOnePlatformOrFile generates from single files, on two platforms, and expects the same as together.
func TestOnePlatformOrFile(t *testing.T) {
	for _, file := range []string{"svc.go", "svc_linux.go"} {
		for _, system := range []string{"linux", "windows"} {
			t.Run(file+" on "+system, func(t *testing.T) {
				t.Setenv("GOOS", system)
				dir := filepath.Join(place(t, split), "through")
				expectWritten(t, generator.Config{Dir: dir, Patterns: []string{file}}, "svc_linux_ratelimit.go", "svc_ratelimit.go")
				expectWritten(t, generator.Config{Dir: dir, Patterns: []string{"."}})
			})
		}
	}
}

// TestPartIsGone expects that the part of a file goes when the file has nothing to generate any more, on each platform.
func TestPartIsGone(t *testing.T) {
	for _, system := range []string{"linux", "windows"} {
		t.Run(system, func(t *testing.T) {
			t.Setenv("GOOS", system)
			dir := filepath.Join(place(t, split), "through")
			all := generator.Config{Dir: dir, Patterns: []string{"."}}
			written(t, all)
			testmodule.Write(t, filepath.Join(dir, "svc_linux.go"), "package through\n\nfunc (s *Service) fd() {}\n")
			expectWritten(t, all, "svc_linux_ratelimit.go")
			if _, err := os.Stat(filepath.Join(dir, "svc_linux_ratelimit.go")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("it is still there: %v", err)
			}
		})
	}
}

// lacking are packages that do not compile in some builds, because these have no file that declares a type.
const lacking = `
-- receiver/svc_unix.go --
//go:build unix

package receiver

type Service struct{}
-- receiver/svc_more.go --
package receiver

//ratelimit:rule limit=1 per=1m
func (Service) Do() error { return nil }
-- receiver/svc_linux.go --
package receiver

//ratelimit:rule limit=1 per=1m name=linux
func (Service) Linux() error { return nil }
-- mentioned/a.go --
package mentioned

type Service interface {
	//ratelimit:rule limit=1 per=1m
	Do() (Handle, error)
}
-- mentioned/z_linux.go --
package mentioned

type Handle int
-- mixed/c.go --
package mixed

import "C"

type Service struct{}

//ratelimit:rule limit=1 per=1m
func (Service) Do() (Count, error) { return 0, nil }

type Count C.int
-- mixed/more.go --
package mixed

//ratelimit:rule limit=1 per=1m name=more
func (Service) More() error { return nil }
`

// TestPlatformsThatLack generates for builds that compile, also from builds that do not.
func TestPlatformsThatLack(t *testing.T) {
	all := generator.Config{Dir: place(t, lacking), Patterns: []string{"./..."}}
	for i, p := range []string{"linux/1", "linux/0", "windows/0", "darwin/0"} {
		system, cgo, _ := strings.Cut(p, "/")
		t.Setenv("GOOS", system)
		t.Setenv("CGO_ENABLED", cgo)
		if names, notes := written(t, all); i == 0 != (len(names) == 4) || len(notes) > 0 {
			t.Errorf("%v: wrote %q, said %q", p, names, notes)
		}
	}
	goIn(t, all.Dir, "vet", "./receiver")
}

// TestPlatformsThatDiffer expects an error for what cannot be generated for all platforms.
func TestPlatformsThatDiffer(t *testing.T) {
	for _, a := range strings.Split(strings.TrimPrefix(differing, "\n"), "====\n") {
		files, expected, _ := strings.Cut(a, "-- errors --\n")
		name := txtar.Parse([]byte(files)).Comment
		t.Run(strings.TrimSpace(string(name)), func(t *testing.T) {
			t.Setenv("GOOS", "linux")
			t.Setenv("GOARCH", "amd64")
			_, err := generator.Generate(t.Context(), generator.Config{Dir: place(t, files), Patterns: []string{"."}})
			if err == nil || err.Error()+"\n" != expected {
				t.Errorf("%v, expected %s", err, expected)
			}
		})
	}
}

const differing = `
types of platforms
-- x.go --
package x

type I interface {
	//ratelimit:rule limit=1 per=1m
	Do() (Handle, error)
}
-- h_linux.go --
package x

type Handle int
-- h_windows.go --
package x

type Handle struct{}
-- errors --
x.go:3:6: what is generated differs: "return 0, err" for linux/amd64, "return Handle{}, err" for windows/amd64; declare what differs in files with build constraints, or give x.go one
====
promoted methods of platforms
-- x.go --
package x

import "example.com/place/dep"

type S struct{ dep.T }

//ratelimit:rule limit=1 per=1m
func (S) Do() error { return nil }
-- dep/t.go --
package dep

type T struct{}
-- dep/t_linux.go --
package dep

func (T) Fd() int { return 0 }
-- errors --
x.go:5:6: what is generated differs: "// Fd calls [S.Fd]." for linux/amd64, "" for windows/amd64; declare what differs in files with build constraints, or give x.go one
====
zero values
-- x.go --
package x

type S struct{}

//ratelimit:rule limit=1 per=1m
func (S) Do() (Handle, error) { return zero, nil }

var zero Handle
-- h_linux.go --
package x

type Handle int
-- h_windows.go --
package x

type Handle struct{}

func (S) Windows() {}
-- errors --
x.go:3:6: what is generated differs: "return 0, err" for linux/amd64, "return Handle{}, err" for windows/amd64; declare what differs in files with build constraints, or give x.go one
====
an expression that one platform lacks
-- x.go --
package x

type S struct{}

//ratelimit:rule limit=1 per=1m key="{s.Fd()}"
func (s S) Do() error { return nil }
-- x_linux.go --
package x

func (S) Fd() int { return 1 }
-- x_windows.go --
package x

func (S) Handle() int { return 1 }
-- errors --
x.go:5:41: *S has no field or method Fd (for windows/amd64)
====
a mistake on another platform
-- x.go --
package x

type S struct{}

//ratelimit:rule limit=1 per=1m
func (s S) Do() error { return nil }
-- x_windows.go --
package x

//ratelimit:rule limit=0
func (S) Handle() int { return 1 }
-- errors --
x_windows.go:3:13: Handle returns no error, so its calls cannot be refused: add an error result, or write //ratelimit:fallback NAME
====
a name that another platform declares, and one that none does
-- x.go --
package x

type I interface {
	//ratelimit:rule limit=1 per=1m
	Do() (Handle, Missing, error)
}
-- h_windows.go --
package x

type Handle int
-- errors --
x.go:5:8: undefined: Handle
x.go:5:16: undefined: Missing (for windows/amd64)
`
