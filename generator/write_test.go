package generator

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/ratelimit-go/ratelimit/generator/internal/source"
	"github.com/ratelimit-go/ratelimit/internal/testmodule"
)

// TestWriteNamesTheOutput tells what the disk has against a file by the file's own name, not by a temporary one.
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

// TestWriteRemovesAbandoned finds what runs left behind that were killed, and nothing else.
func TestWriteRemovesAbandoned(t *testing.T) {
	dir := t.TempDir()
	output := File{Name: filepath.Join(dir, "x_ratelimit.go"), Source: []byte(source.Header + "\n\npackage x\n")}
	long := time.Now().Add(-time.Hour)
	for name, text := range map[string]string{
		".ratelimit-1.tmp":      string(output.Source),
		".ratelimit-23.tmp":     source.Header[:10],
		".ratelimit-456.tmp":    "",
		".ratelimit-7.tmp":      "a file of somebody else",
		".ratelimit-notes.tmp":  "",
		"ratelimit-1.tmp":       "",
		".ratelimit-1.tmp.save": "",
	} {
		testmodule.Write(t, filepath.Join(dir, name), text)
		if err := os.Chtimes(filepath.Join(dir, name), long, long); err != nil {
			t.Fatal(err)
		}
	}
	testmodule.Write(t, filepath.Join(dir, ".ratelimit-8.tmp"), "") // by a run that goes on
	want := []string{".ratelimit-1.tmp.save", ".ratelimit-7.tmp", ".ratelimit-8.tmp", ".ratelimit-notes.tmp", "ratelimit-1.tmp", "x_ratelimit.go"}
	if _, err := Write([]File{output}); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if !slices.Equal(left, want) {
		t.Errorf("left are %q, expected %q", left, want)
	}
}
