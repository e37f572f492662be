package generator

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/ratelimit-go/ratelimit/generator/internal/source"
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
