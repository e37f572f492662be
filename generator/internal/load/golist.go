package load

import (
	"cmp"
	"errors"
	"fmt"
	"go/token"
	"os"
	"os/exec"
	"regexp"
	"strings"

	"golang.org/x/tools/go/packages"
)

// metadata is what the loader asks the go command about a package and its imports. It excludes everything that would have to be
// compiled.
const metadata = packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedDeps | packages.NeedModule | packages.NeedForTest

// list calls the go command. With GOGC=800 it ends before it collects garbage, which takes a fifth of its time otherwise.
func (l *loader) list(mode packages.LoadMode, tests bool, patterns []string) ([]*packages.Package, error) {
	cfg := &packages.Config{Context: l.ctx, Mode: mode, Dir: l.cfg.Dir, Tests: tests, Env: append([]string{"GOGC=800"}, os.Environ()...)}
	if flags := os.Getenv("GOFLAGS"); modfile.MatchString(flags) {
		cfg.Env = append(cfg.Env, "GOFLAGS="+modfile.ReplaceAllString(flags, ""))
		cfg.BuildFlags = []string{unquoted(modfile.FindString(flags))}
	}
	if b := l.cfg.Build; b != nil {
		cfg.Env, cfg.BuildFlags = append(cfg.Env, b.environ()...), append(cfg.BuildFlags, "-tags="+b.Tags)
	} else if l.cfg.Tags != "" {
		cfg.BuildFlags = append(cfg.BuildFlags, "-tags="+l.cfg.Tags)
	}
	pkgs, err := packages.Load(cfg, patterns...)
	if err := l.ctx.Err(); err != nil {
		return nil, err
	}
	if err != nil {
		return nil, goError(err)
	}
	return pkgs, nil
}

// list moves modfile from GOFLAGS to the command line: go/packages asks the go command for its version outside of all modules, where
// the go command refuses this flag.
var modfile, overlay = goFlag("modfile"), goFlag("overlay")

// goFlag matches a flag in GOFLAGS, with or without quotes around it.
func goFlag(name string) *regexp.Regexp {
	return regexp.MustCompile(fmt.Sprintf(`'--?%[1]s=[^']*'|"--?%[1]s=[^"]*"|--?%[1]s=\S*`, name))
}

func unquoted(flag string) string { return strings.Trim(flag, `'"`) }

// noteOverlay warns that an overlay, which replaces files for the compiler, has no effect here.
func (l *loader) noteOverlay() {
	if flag := overlay.FindString(os.Getenv("GOFLAGS")); flag != "" {
		l.set.Found.Warn(token.NoPos, "GOFLAGS has %s, but directives are read from the files as they are on the disk", unquoted(flag))
	}
}

// goError returns what the go command printed, without what go/packages says about it. If it printed nothing, the error says how the
// go command ended.
func goError(err error) error {
	if _, lost := exec.LookPath("go"); lost != nil {
		return errors.New("there is no go command in PATH, which is needed to find packages; install Go, or add its bin folder to PATH")
	}
	ended, said, _ := strings.Cut(err.Error(), ": stderr: ")
	return errors.New(cmp.Or(strings.Join(strings.Fields(said), " "), strings.TrimPrefix(ended, "err: ")))
}

// listError returns the first error of a package, with its position.
func listError(p *packages.Package) error {
	if e := p.Errors[0]; e.Pos != "" && e.Pos != "-" {
		return errors.New(e.Pos + ": " + message(p))
	}
	return errors.New(message(p))
}

// message returns the first error of a package on one line.
func message(p *packages.Package) string {
	if len(p.Errors) == 0 {
		return "it has no Go files other than tests"
	}
	msg := strings.Join(strings.Fields(p.Errors[0].Msg), " ")
	if strings.Contains(msg, "disabled by -mod=vendor") {
		msg += "; to mend the vendor folder: go mod vendor"
	}
	return msg
}
