package load

import (
	"errors"
	"go/token"
	"os"
	"os/exec"
	"regexp"
	"strings"

	"golang.org/x/tools/go/packages"
)

// metadata is what the go command is asked about a package and all that it imports: nothing that it has to compile for.
const metadata = packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedDeps | packages.NeedModule | packages.NeedForTest

// list calls the go command.
func (l *loader) list(mode packages.LoadMode, tests bool, patterns []string) ([]*packages.Package, error) {
	cfg := &packages.Config{Context: l.ctx, Mode: mode, Dir: l.cfg.Dir, Tests: tests}
	cfg.Env, cfg.BuildFlags = fromGOFLAGS("-modfile")
	if l.cfg.Tags != "" {
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

// fromGOFLAGS takes a flag out of the environment, which go/packages also gives to a go command that it runs outside of all
// modules, to learn its version.
func fromGOFLAGS(name string) (env, flags []string) {
	var others []string
	for _, field := range goFlag.FindAllString(os.Getenv("GOFLAGS"), -1) {
		flag := strings.Trim(field, `'"`)
		if found, _, _ := strings.Cut(flag, "="); found == name || found == "-"+name {
			flags = append(flags, flag)
		} else {
			others = append(others, field)
		}
	}
	if len(flags) == 0 {
		return nil, nil // the environment as it is
	}
	return append(os.Environ(), "GOFLAGS="+strings.Join(others, " ")), flags
}

// goFlag is a flag in GOFLAGS, with the quotes that may stand around it.
var goFlag = regexp.MustCompile(`'[^']*'|"[^"]*"|[^\s'"]\S*`)

// noteOverlay tells that what replaces files for the compiler does not do so here.
func (l *loader) noteOverlay() {
	if _, flags := fromGOFLAGS("-overlay"); len(flags) > 0 {
		l.set.Found.Warn(token.NoPos, "GOFLAGS has %s, but directives are read from the files as they are on the disk", flags[0])
	}
}

// goError takes the go command's words out of what go/packages says about it.
func goError(err error) error {
	if _, lost := exec.LookPath("go"); lost != nil {
		return errors.New("there is no go command in PATH, which is needed to find packages; install Go, or add its bin folder to PATH")
	}
	before, after, _ := strings.Cut(err.Error(), "stderr: ")
	if after = strings.Join(strings.Fields(after), " "); after != "" {
		return errors.New(after)
	}
	return errors.New(strings.Trim(strings.TrimPrefix(before, "err: "), ": "))
}

// listError is the first error of a package, with its place.
func listError(p *packages.Package) error {
	if e := p.Errors[0]; e.Pos != "" && e.Pos != "-" {
		return errors.New(e.Pos + ": " + message(p))
	}
	return errors.New(message(p))
}

// message is what is wrong with a package, in one line.
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
