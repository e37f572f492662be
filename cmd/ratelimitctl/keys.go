package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/key"
)

// maxLine bounds a line of -keys, in bytes.
const maxLine = 64 << 10

// keysOf returns the keys that a command is for: those of -keys, or the given one. It returns none if that is "".
func (in *input) keysOf(given string) ([]string, error) {
	switch {
	case in.keys == "" && given == "":
		return nil, nil
	case in.keys == "":
		return []string{given}, nil
	}
	if given != "" {
		return nil, misused("found a key and -keys; expected one of the two")
	}
	file, err := in.openFile(in.keys)
	if err != nil {
		return nil, misused(fmt.Sprintf("-keys: %s: %v", in.keys, cause(err)))
	}
	defer file.Close()
	var keys []string
	seen, lines := map[string]bool{}, bufio.NewScanner(file)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		k := strings.TrimSuffix(lines.Text(), "\r")
		switch {
		case k == "" || seen[k]:
			continue
		case in.shown && !key.IsEscaped(k):
			return nil, misused(fmt.Sprintf("-keys: -shown: found %q; expected whole keys as errors and top show them", k))
		case len(keys) == fleet.MaxSettings:
			return nil, misused(fmt.Sprintf("-keys: found more than %d keys", fleet.MaxSettings))
		}
		keys, seen[k] = append(keys, k), true
	}
	if err := lines.Err(); err != nil {
		return nil, misused("-keys: " + err.Error())
	}
	if len(keys) == 0 {
		return nil, misused("-keys: found no key; expected one in each line")
	}
	return keys, nil
}

// openFile opens a file, or the standard input for "-".
func (in *input) openFile(name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(in.stdin), nil
	}
	return os.Open(name)
}
