package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator"
	"github.com/ratelimit-go/ratelimit/internal/printable"
)

// toModule sets the patterns to all packages of the module around the working directory.
func (c *command) toModule() error {
	root := moduleAround(c.config.Dir)
	if root == "" {
		return errors.New("there is no go.mod in this directory or above it")
	}
	path, err := filepath.Rel(c.config.Dir, root)
	c.module, c.config.Patterns = root, []string{filepath.ToSlash(path) + "/..."}
	return err
}

// moduleAround returns the root of the module that contains a directory, or "".
func moduleAround(dir string) string {
	for goMod(dir) == nil {
		if dir == filepath.Dir(dir) {
			return ""
		}
		dir = filepath.Dir(dir)
	}
	return dir
}

// goMod returns the file info of the go.mod file in a directory, or nil.
func goMod(dir string) fs.FileInfo {
	info, err := os.Stat(filepath.Join(dir, "go.mod"))
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	return info
}

// writeLock writes ratelimit.lock.
func (c *command) writeLock(rules []generator.Rule) error {
	return generator.Replace(filepath.Join(c.module, lockName), formatLock(c.lockOf(rules)))
}

// checkLocks compares the rules of modules with their ratelimit.lock, for each module that has one and that a pattern such as ./...
// names as a whole.
func (c *command) checkLocks(rules []generator.Rule) (messages []annotations.Message) {
	for _, pattern := range c.config.Patterns {
		root, whole := strings.CutSuffix(filepath.ToSlash(pattern), "/...")
		if !filepath.IsAbs(root) {
			root = filepath.Join(c.config.Dir, root)
		}
		if module := goMod(root); whole && module != nil {
			own := slices.DeleteFunc(slices.Clone(rules), func(r generator.Rule) bool {
				return !os.SameFile(goMod(moduleAround(filepath.Dir(r.File))), module)
			})
			messages = append(messages, c.checkLock(root, own)...)
		}
	}
	return messages
}

// checkLock compares the rules of a module with its ratelimit.lock, if there is one.
func (c *command) checkLock(root string, rules []generator.Rule) (messages []annotations.Message) {
	path := filepath.Join(root, lockName)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return c.told(err)
	}
	name := c.relative(path)
	if before, line, err := parseLock(name, text); err != nil {
		messages = []annotations.Message{{File: name, Span: annotations.Span{Line: line, Column: 1}, Text: err.Error()}}
	} else {
		messages = changes(before, c.lockOf(rules))
	}
	if len(messages) == 0 {
		return nil
	}
	accept := "the rules have changed; to accept the changes, run: go tool ratelimit -lock"
	if folder := filepath.Dir(name); folder != "." {
		accept += ", in " + folder
	}
	messages = slices.Insert(messages, 0, annotations.Message{File: name, Text: accept})
	for i := range messages {
		messages[i].Code = "lock"
	}
	return messages
}

// maxChange is the maximum length in bytes of a message about a change. Key templates may be long and have unprintable characters.
const maxChange = 1000

// changes returns a message for each difference between the lines before and now.
func changes(before, now []locked) []annotations.Message {
	var messages []annotations.Message
	add := func(at annotations.Message, format string, args ...any) {
		at.Text = printable.Text(fmt.Sprintf(format, args...), maxChange)
		messages = append(messages, at)
	}
	// match removes pairs of alike lines from before and now, and passes them to tell.
	match := func(alike func(was, is locked) bool, tell func(was, is locked)) {
		now = slices.DeleteFunc(now, func(is locked) bool {
			i := slices.IndexFunc(before, func(was locked) bool { return alike(was, is) })
			if i < 0 {
				return false
			}
			tell(before[i], is)
			before = slices.Delete(before, i, i+1)
			return true
		})
	}
	match(func(was, is locked) bool { return was.text() == is.text() }, func(was, is locked) {})
	match(func(was, is locked) bool { return was.counts() == is.counts() }, func(was, is locked) {
		add(is.at, "the limit of %s is %s instead of %s; usage so far still counts", is.Rule, is.limits(), was.limits())
	})
	match(func(was, is locked) bool { return was.Rule == is.Rule }, func(was, is locked) {
		alike := was
		if alike.Key = is.Key; alike.counts() == is.counts() {
			add(is.at, "the key of %s is %q instead of %q; its counts continue where both give the same text", is.Rule, is.Key, was.Key)
		} else {
			add(is.at, "the counts of %s start anew: they are %s instead of %s", is.Rule, is.layout(), was.layout())
		}
		if is.limits() != was.limits() {
			add(is.at, "the limit of %s is %s instead of %s", is.Rule, is.limits(), was.limits())
		}
	})
	for _, is := range now {
		add(is.at, "%s is a new rule: its counts, %s, start from nothing", is.Rule, is.layout())
	}
	for _, was := range before {
		add(was.at, "%s is gone: its counts, %s, expire", was.Rule, was.layout())
	}
	return messages
}
