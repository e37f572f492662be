package scripts

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ratelimit-go/ratelimit/internal/testmodule"
)

var needs = []string{"server", "compiler", "promtool", "chromium", "axe"}

// server is the output of redis-server --version.
const (
	server    = "echo Redis server v=7.2.4 sha=0"
	oldServer = "echo Redis server v=6.0.16 sha=0"
)

// machine is a folder with the script, the commands bin, and the folder packages.
type machine struct {
	*testing.T
	dir string
}

// newMachine has nothing that tests need, and no package manager. Its user is not root.
func newMachine(t *testing.T) machine {
	m := machine{t, testmodule.Dir(t)}
	text, err := os.ReadFile("test-needs.sh")
	if err != nil {
		t.Fatal(err)
	}
	testmodule.Write(t, filepath.Join(m.dir, "scripts/test-needs.sh"), text)
	testmodule.Write(t, filepath.Join(m.dir, "browser/go.mod"), "module browser\n")
	for name, script := range map[string]string{"id": "echo 1000", "uname": "echo Linux", "go": "echo gcc -m64"} {
		m.command("bin/"+name, script)
	}
	for _, name := range []string{"sh", "sed", "tr", "grep", "dirname", "env", "cp", "mkdir"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(m.dir, "bin", name)); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

func (m machine) command(path, script string) {
	path = filepath.Join(m.dir, path)
	testmodule.Write(m, path, "#!/bin/sh\n"+script+"\n")
	if err := os.Chmod(path, 0o755); err != nil {
		m.Fatal(err)
	}
}

// manager adds a package manager. It logs what it is asked, and installs the packages whose names are in the list and say "package command".
func (m machine) manager(name string, packages ...string) {
	m.command("bin/"+name, `echo "`+name+` $*" >>"$MACHINE/log"
for p; do if [ -d "$MACHINE/packages/$p" ]; then cp "$MACHINE/packages/$p/"* "$MACHINE/bin"; fi; done`)
	for _, line := range packages {
		name, command, _ := strings.Cut(line, " ")
		script := "exit 1"
		switch command {
		case "redis-server", "valkey-server":
			script = server
		case "npm":
			script = `mkdir -p node_modules/axe-core && echo '"version": "4.14.1"' >node_modules/axe-core/package.json`
		}
		m.command("packages/"+name+"/"+command, script)
	}
}

// see runs the script. It returns the output, whether it succeeded, and what managers were asked.
func (m machine) see() (output string, ok bool, log string) {
	cmd := exec.CommandContext(m.Context(), "sh", append([]string{filepath.Join(m.dir, "scripts/test-needs.sh")}, needs...)...)
	cmd.Env = []string{"PATH=" + filepath.Join(m.dir, "bin"), "MACHINE=" + m.dir}
	out, err := cmd.CombinedOutput()
	asked, _ := os.ReadFile(filepath.Join(m.dir, "log")) // missing if nothing was asked
	return string(out), err == nil, string(asked)
}

func (m machine) expectNamed(texts ...string) {
	m.Helper()
	output, ok, _ := m.see()
	if ok || strings.Count(output, "missing: ") != len(needs) {
		m.Errorf("ok is %v; expected %d missing needs:\n%s", ok, len(needs), output)
	}
	for _, text := range texts {
		if !strings.Contains(output, text) {
			m.Errorf("this is not said: %s\n%s", text, output)
		}
	}
}

// Where nothing can be installed, the script names all that is missing, with the packages.
func TestNeedsAreNamed(t *testing.T) {
	t.Run("no manager", func(t *testing.T) {
		newMachine(t).expectNamed("none of the package managers apt-get, dnf", "valkey or redis", "compiler gcc,", "prometheus", "chromium", "npm")
	})
	t.Run("no root", func(t *testing.T) {
		m := newMachine(t)
		m.manager("apt-get")
		m.expectNamed("you are not root, and there is no sudo for apt-get",
			"redis-server or valkey-server\n", "gcc and libc6-dev\n", "prometheus\n", "chromium and fonts-dejavu-core or chromium-browser\n", "npm\n")
		if _, _, log := m.see(); log != "" {
			t.Errorf("apt-get was asked %s", log)
		}
	})
	t.Run("no packages", func(t *testing.T) {
		m := newMachine(t)
		m.manager("brew")
		m.expectNamed("brew did not install everything", "redis or valkey\n", "google-chrome\n", "node\n")
	})
	t.Run("an old server", func(t *testing.T) {
		m := newMachine(t)
		m.command("bin/redis-server", oldServer)
		m.expectNamed("of version 7 or newer", "bin/redis-server has version 6: put a newer one before it on PATH")
	})
}

// What a package manager has is installed, by root except with brew. A second run asks for nothing.
func TestNeedsAreInstalled(t *testing.T) {
	for manager, packages := range map[string][]string{
		"apt-get": {"redis-server redis-server", "gcc gcc", "prometheus promtool", "chromium-browser chromium-browser", "npm npm"},
		"dnf":     {"redis redis-server", "gcc gcc", "golang-github-prometheus promtool", "chromium chromium-browser", "npm npm"},
		"yum":     {"redis redis-server", "gcc gcc", "prometheus promtool", "chromium chromium-browser", "npm npm"},
		"apk":     {"valkey valkey-server", "gcc gcc", "prometheus promtool", "chromium chromium", "npm npm"},
		"pacman":  {"valkey valkey-server", "gcc gcc", "prometheus promtool", "chromium chromium", "npm npm"},
		"zypper":  {"valkey valkey-server", "gcc gcc", "golang-github-prometheus-prometheus promtool", "chromium chromium", "npm npm"},
		"brew":    {"redis redis-server", "gcc gcc", "prometheus promtool", "google-chrome google-chrome", "node npm"},
	} {
		t.Run(manager, func(t *testing.T) {
			m := newMachine(t)
			m.manager(manager, packages...)
			m.command("bin/sudo", `echo sudo >>"$MACHINE/log"; "$@"`)
			output, ok, log := m.see()
			if !ok || strings.Contains(log, "sudo") != (manager != "brew") {
				t.Fatalf("ok is %v, %s was asked\n%s\nand the script said\n%s", ok, manager, log, output)
			}
			if output, ok, again := m.see(); !ok || output != "" || again != log {
				t.Errorf("the second time, ok is %v, %s was asked\n%s\nand the script said\n%s", ok, manager, strings.TrimPrefix(again, log), output)
			}
		})
	}
}
