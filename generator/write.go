package generator

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Stale is a file that is not as it should be.
type Stale struct {
	File
	Found []byte // what is there; nil if nothing is
}

// Check compares the files with what is on the disk.
func Check(files []File) ([]Stale, error) {
	var stale []Stale
	for _, f := range files {
		found, err := os.ReadFile(f.Name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			found = nil
		case err != nil:
			return nil, err
		case found == nil:
			found = []byte{}
		}
		if !bytes.Equal(found, f.Source) || (found == nil) != (f.Source == nil) {
			stale = append(stale, Stale{f, found})
		}
	}
	return stale, nil
}

// Write makes the files as they should be, and returns those that were not. First all are written beside the old ones, then
// all are renamed: a full disk or a folder that cannot be written leaves everything as it was.
func Write(files []File) ([]Stale, error) {
	stale, err := Check(files)
	if err != nil {
		return nil, err
	}
	temporary := make([]string, len(stale))
	defer func() {
		for _, name := range temporary {
			if name != "" {
				os.Remove(name)
			}
		}
	}()
	for i, s := range stale {
		if s.Source == nil {
			continue
		}
		if temporary[i], err = beside(s); err != nil {
			return nil, err
		}
	}
	for i, s := range stale {
		if s.Source == nil {
			err = os.Remove(s.Name)
		} else if err = os.Rename(temporary[i], s.Name); err == nil {
			temporary[i] = ""
		}
		if err != nil {
			return stale[:i], err
		}
	}
	return stale, nil
}

// beside writes a file under a name that no build sees.
func beside(s Stale) (name string, err error) {
	f, err := os.CreateTemp(filepath.Dir(s.Name), ".ratelimit-*.tmp")
	if err != nil {
		return "", err
	}
	_, err = f.Write(s.Source)
	mode := fs.FileMode(0o644)
	if old, statErr := os.Stat(s.Name); statErr == nil {
		mode = old.Mode().Perm()
	}
	return f.Name(), errors.Join(err, f.Chmod(mode), f.Close())
}
