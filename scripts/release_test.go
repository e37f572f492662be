// Package scripts tests the scripts in this folder.
package scripts

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ratelimit-go/ratelimit/internal/testmodule"
)

const (
	top     = ".."
	module  = "github.com/ratelimit-go/ratelimit"
	version = "v0.1.0"
)

// shell runs commands in folders with one environment.
type shell struct {
	*testing.T
	env []string
}

func (s shell) run(dir, name string, args ...string) string {
	s.Helper()
	cmd := exec.CommandContext(s.Context(), name, args...)
	cmd.Dir, cmd.Env = dir, s.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// clone returns a clone of the files of this repository as they are now, with a changelog of the version, and the environment for commands in it.
func clone(t *testing.T) (shell, string) {
	outside := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "GIT_") }) // such as those of a hook
	s := shell{t, append(outside,
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com",
		"GOFLAGS=-modcacherw -trimpath", "GOWORK=off")} // -trimpath lets the build cache serve every folder of modules
	root, err := filepath.Abs(top)
	if err != nil {
		t.Fatal(err)
	}
	origin, dir := testmodule.Dir(t), filepath.Join(testmodule.Dir(t), "clone")
	s.run(origin, "git", "init", "-q")
	s.run(origin, "git", "--work-tree="+root, "add", "-A")
	s.run(origin, "git", "commit", "-q", "-m", "Everything")
	s.run(origin, "git", "clone", "-q", origin, dir)
	testmodule.Write(t, filepath.Join(dir, "CHANGELOG.md"), "# Changelog\n\n## "+version+" (2026-11-30)\n")
	s.run(dir, "git", "commit", "-q", "-a", "-m", "Date the changes")
	return s, dir
}

// TestRelease makes a release in a clone, and uses it as users do: the module, the tools, the quick start of README.md and every module of
// contrib come from a folder of modules, as from a proxy.
func TestRelease(t *testing.T) {
	t.Parallel()
	s, dir := clone(t)
	head := s.run(dir, "git", "rev-parse", "HEAD")
	s.run(dir, "make", "release", "VERSION="+version)

	modules := []string{module}
	tags := []string{version}
	for _, path := range strings.Fields(s.run(dir, "sh", "-c", "echo contrib/*")) {
		modules, tags = append(modules, module+"/"+path), append(tags, path+"/"+version)
		gomod := s.run(dir, "git", "show", path+"/"+version+":"+path+"/go.mod")
		if strings.Contains(gomod, "replace") || !strings.Contains(gomod, module+" "+version+"\n") {
			t.Errorf("%s: go.mod is\n%s", path, gomod)
		}
	}
	if got := strings.Fields(s.run(dir, "git", "tag")); !slices.Equal(got, slices.Sorted(slices.Values(tags))) {
		t.Errorf("the tags are %q; expected %q", got, tags)
	}
	if got := s.run(dir, "git", "rev-parse", "HEAD", version); got != head+head {
		t.Errorf("the branch and the tag are at\n%s; expected both at %s", got, head)
	}
	use(s, proxy(s, dir, modules), modules)
}

// proxy returns a folder of the tagged modules, in the format of GOPROXY. The go command makes it from the tags of the clone.
func proxy(s shell, clone string, modules []string) string {
	dir := testmodule.Dir(s)
	s.env = append(slices.Clone(s.env), "GOMODCACHE="+dir, "GOPROXY=direct", "GOSUMDB=off",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url."+clone+".insteadOf", "GIT_CONFIG_VALUE_0=https://"+module)
	args := []string{"mod", "download"}
	for _, m := range modules {
		args = append(args, m+"@"+version)
	}
	s.run(dir, "go", args...)
	return filepath.Join(dir, "cache/download")
}

// use follows README.md in a new module: it installs the tools and makes the quick starts. Then it requires the other modules.
func use(s shell, proxy string, modules []string) {
	cached := strings.TrimSpace(s.run(top, "go", "env", "GOMODCACHE"))
	dir := testmodule.Dir(s)
	s.env = append(slices.Clone(s.env), "GOMODCACHE="+testmodule.Dir(s), "GOBIN="+dir, "GOSUMDB=off",
		"GOPROXY=file://"+proxy+",file://"+cached+"/cache/download,"+strings.TrimSpace(s.run(top, "go", "env", "GOPROXY")))
	s.run(dir, "go", "mod", "init", "example.com/codes")
	readme, err := os.ReadFile(filepath.Join(top, "README.md"))
	if err != nil {
		s.Fatal(err)
	}
	for _, m := range regexp.MustCompile("(?ms)^```go\n// (\\S+)\n.*?^```$").FindAllStringSubmatch(string(readme), -1) {
		testmodule.Write(s, filepath.Join(dir, m[1]), strings.TrimSuffix(strings.TrimPrefix(m[0], "```go\n"), "```"))
	}
	commands := regexp.MustCompile(`(?m)^\$ (go (?:get|install|generate) .*)$`).FindAllStringSubmatch(string(readme), -1)
	if len(commands) < 2 {
		s.Fatalf("README.md has the commands %q", commands)
	}
	for _, m := range commands {
		s.run(dir, "sh", "-c", m[1])
	}
	s.run(dir, "go", "test", "./...")
	s.run(dir, "go", slices.Concat([]string{"get"}, modules[1:])...)
	s.run(dir, "go", slices.Concat([]string{"build"}, modules[1:])...)
	got := s.run(dir, "go", slices.Concat([]string{"list", "-m", "-f={{.Version}}"}, modules)...)
	if got != strings.Repeat(version+"\n", len(modules)) {
		s.Errorf("the versions of %q are\n%s; expected %s", modules, got, version)
	}
	if got := s.run(dir, "./ratelimitctl", "-version"); !strings.HasPrefix(got, "ratelimitctl "+version+" ") {
		s.Errorf("the tool is %s; expected version %s", got, version)
	}
}

// A release that cannot be made leaves the repository as it was.
func TestNoRelease(t *testing.T) {
	t.Parallel()
	s, dir := clone(t)
	fails := func(version, want string) {
		t.Helper()
		state := func() string { return s.run(dir, "sh", "-c", "git rev-parse HEAD; git tag; git worktree list") }
		before := state()
		if got := s.run(dir, "sh", "-c", "! sh scripts/release.sh '"+version+"'"); !strings.Contains(got, want) {
			t.Errorf("%q: got %s; expected %s", version, got, want)
		}
		if after := state(); after != before {
			t.Errorf("%q: before\n%s, after\n%s", version, before, after)
		}
	}
	for _, v := range []string{"", "0.1.0", "v0.1", "v0.1.0;x"} {
		fails(v, "expected one such as")
	}
	fails("v0.1.1", `CHANGELOG.md begins with "## v0.1.0 (2026-11-30)"`)
	testmodule.Write(t, filepath.Join(dir, "contrib/broken/go.mod"), "senseless\n")
	fails(version, "commit your changes")
	s.run(dir, "git", "add", "-A")
	s.run(dir, "git", "commit", "-q", "-m", "Break a module")
	fails(version, "senseless")
}
