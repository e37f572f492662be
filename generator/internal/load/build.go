package load

import (
	"cmp"
	"go/build"
	"go/build/constraint"
	"io"
	"os"
	"slices"
	"strings"
)

// Build says which files of a package the go command builds.
type Build struct {
	OS, Arch string
	Tags     string // separated by commas
	Cgo      bool
}

// platforms are systems with an architecture that Go supports there, the more frequent ones first.
var platforms = strings.Fields(`linux/amd64 windows/amd64 darwin/arm64 linux/arm64 windows/arm64 darwin/amd64 linux/386 windows/386 linux/arm
	freebsd/amd64 netbsd/amd64 openbsd/amd64 dragonfly/amd64 solaris/amd64 illumos/amd64 android/arm64 ios/arm64 plan9/amd64 aix/ppc64 js/wasm wasip1/wasm
	linux/ppc64 linux/ppc64le linux/s390x linux/riscv64 linux/loong64 linux/mips linux/mipsle linux/mips64 linux/mips64le`)

// Here returns the build of this environment, with these tags or those in GOFLAGS.
func Here(tags string) Build {
	if flag := unquoted(tagsFlag.FindString(os.Getenv("GOFLAGS"))); tags == "" && flag != "" {
		_, tags, _ = strings.Cut(flag, "=")
	}
	b := Build{OS: cmp.Or(os.Getenv("GOOS"), build.Default.GOOS), Arch: cmp.Or(os.Getenv("GOARCH"), build.Default.GOARCH), Tags: tags}
	b.Cgo = os.Getenv("CGO_ENABLED") == "1" || os.Getenv("CGO_ENABLED") == "" && build.Default.CgoEnabled
	return b
}

var tagsFlag = goFlag("tags")

// Others returns builds for the most frequent systems besides that of b.
func (b Build) Others() (all []Build) {
	for _, platform := range platforms[:3] {
		other := Build{Tags: b.Tags}
		if other.OS, other.Arch, _ = strings.Cut(platform, "/"); other.OS != b.OS {
			all = append(all, other)
		}
	}
	return all
}

// With returns the build closest to b that has files with a constraint. There is none for a constraint that contradicts itself, or that has the
// tag ignore, which stands for no build.
func (b Build) With(text string) (found Build, ok bool) {
	x, err := constraint.Parse("//go:build " + text)
	if err != nil {
		return b, false
	}
	for _, platform := range append([]string{b.OS + "/" + b.Arch}, platforms...) {
		for _, cgo := range []bool{b.Cgo, !b.Cgo} {
			for _, tags := range b.choices(x) {
				other := Build{Tags: tags, Cgo: cgo}
				other.OS, other.Arch, _ = strings.Cut(platform, "/")
				if other.has(x) {
					return other, true
				}
			}
		}
	}
	return b, false
}

// choices returns the tags of b, and then other sets of the tags that a constraint mentions, beside those of b that it does not mention.
func (b Build) choices(x constraint.Expr) []string {
	own := strings.FieldsFunc(b.Tags, func(r rune) bool { return r == ',' })
	mentioned := tagsOf(x)
	rest := slices.DeleteFunc(slices.Clone(own), func(tag string) bool { return slices.Contains(mentioned, tag) })
	all := []string{b.Tags}
	const most = 6
	for set := range 1 << min(len(mentioned), most) {
		tags := slices.Clone(rest)
		for i, tag := range mentioned {
			if set&(1<<i) != 0 {
				tags = append(tags, tag)
			}
		}
		all = append(all, strings.Join(tags, ","))
	}
	return all
}

// tagsOf returns the tags in a constraint that a build may choose.
func tagsOf(x constraint.Expr) (tags []string) {
	x.Eval(func(tag string) bool {
		fixed := slices.Contains([]string{"ignore", "unix", "cgo", "gc", "gccgo"}, tag) || strings.HasPrefix(tag, "go1.") || isPlatform(tag)
		if !fixed && !slices.Contains(tags, tag) {
			tags = append(tags, tag)
		}
		return false
	})
	slices.Sort(tags)
	return tags
}

// isPlatform reports whether a tag is the name of a system or an architecture: then it has a meaning in the name of a file.
func isPlatform(tag string) bool { return !Build{}.matches("x_"+tag+".go", "") }

// has reports whether the build has files with a constraint.
func (b Build) has(x constraint.Expr) bool { return b.matches("x.go", "//go:build "+x.String()+"\n\n") }

// matches reports whether the build has a file of this name that begins with a line.
func (b Build) matches(name, begin string) bool {
	c := build.Default
	c.GOOS, c.GOARCH, c.CgoEnabled, c.BuildTags = b.OS, b.Arch, b.Cgo, strings.Split(b.Tags, ",")
	c.OpenFile = func(string) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(begin + "package p\n")), nil
	}
	ok, err := c.MatchFile("", name)
	return ok && err == nil
}

// environ returns the variables for the go command.
func (b Build) environ() []string {
	cgo := "0"
	if b.Cgo {
		cgo = "1"
	}
	return []string{"GOOS=" + b.OS, "GOARCH=" + b.Arch, "CGO_ENABLED=" + cgo}
}

// String returns a text such as windows/amd64 with tags=a,b.
func (b Build) String() string {
	text := b.OS + "/" + b.Arch
	if b.Tags != "" {
		text += " with tags=" + b.Tags
	}
	return text
}
