package generator

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/ratelimit-go/ratelimit/generator/internal/source"
	"github.com/ratelimit-go/ratelimit/internal/testmodule"
)

// TestWriteNamesTheOutput expects errors about a file to have its own name, not a temporary one.
func TestWriteNamesTheOutput(t *testing.T) {
	name := filepath.Join(t.TempDir(), "gone", "x_ratelimit.go")
	_, err := Write([]File{{Name: name, Source: []byte(source.Header + "\n")}})
	if pe, ok := err.(*fs.PathError); !ok || pe.Path != name || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of a folder that is not there: %v", err)
	}
	rename := &os.LinkError{Op: "rename", Old: ".ratelimit-1.tmp", New: name, Err: fs.ErrPermission}
	if err := about(name, rename); err.Error() != "write "+name+": permission denied" {
		t.Errorf("of a rename: %v", err)
	}
	if err := about(name, fs.ErrClosed); err.Error() != "write "+name+": file already closed" {
		t.Errorf("of an error that wraps nothing: %v", err)
	}
}

// TestWriteFails expects that no file is written if one cannot be, and that no temporary file is left. If a file cannot be removed,
// Write must return the files that it has replaced before.
func TestWriteFails(t *testing.T) {
	dir := t.TempDir()
	output := func(name string) File {
		return File{Name: filepath.Join(dir, name), Source: []byte(source.Header + "\n\npackage x\n")}
	}
	if stale, err := Write([]File{output("a_ratelimit.go"), output("gone/b_ratelimit.go")}); err == nil || len(stale) > 0 {
		t.Errorf("beside a folder that is not there: %v, %v", stale, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
	last := output("c_ratelimit.go")
	testmodule.Write(t, last.Name, last.Source)
	last.Source = nil
	stale, err := Write([]File{output("a_ratelimit.go"), last, last})
	if pe, ok := err.(*fs.PathError); !ok || pe.Path != last.Name || len(stale) != 2 {
		t.Errorf("of a file that somebody else has removed: %v, %v", stale, err)
	}
}

// TestWriteKeepsLicence expects that what somebody has put above the header of an output stays, and does not make it stale.
func TestWriteKeepsLicence(t *testing.T) {
	const licence = "// Copyright Example Ltd.\n// All rights reserved.\n\n"
	name := filepath.Join(t.TempDir(), "x_ratelimit.go")
	output := func(pkg string) []File {
		return []File{{Name: name, Source: []byte(source.Header + "\n\npackage " + pkg + "\n")}}
	}
	testmodule.Write(t, name, licence+string(output("old")[0].Source))
	if stale, err := Write(output("x")); err != nil || len(stale) != 1 {
		t.Fatal(stale, err)
	}
	if text, err := os.ReadFile(name); err != nil || string(text) != licence+string(output("x")[0].Source) {
		t.Errorf("%s %v", text, err)
	}
	if stale, err := Check(output("x")); err != nil || len(stale) > 0 {
		t.Errorf("stale is %v, %v", stale, err)
	}
	testmodule.Write(t, name, "// Package x is none of ours.\npackage x\n\n"+source.Header+"\n")
	if _, err := Check(output("x")); !errors.Is(err, errForeign) {
		t.Errorf("below the package clause: %v", err)
	}
}

// TestWriteFollowsLinks expects that a symbolic link stays one.
func TestWriteFollowsLinks(t *testing.T) {
	dir := t.TempDir()
	real, link := filepath.Join(dir, "elsewhere", "real.go"), filepath.Join(dir, "x_ratelimit.go")
	testmodule.Write(t, real, source.Header+"\n\npackage old\n")
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	want := source.Header + "\n\npackage x\n"
	if _, err := Write([]File{{Name: link, Source: []byte(want)}}); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(real); err != nil || string(text) != want {
		t.Errorf("%s %v", text, err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v %v", info, err)
	}
}
