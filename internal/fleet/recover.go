package fleet

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
)

// After the store has lost its settings, the processes still know them, and may not write them. So a tool asks by a word that beats read, and each process
// answers with what it knows and the store has lost. The answers are in one hash for each word. It has a field for each version of a setting, so that
// processes which know the same write the same, a field for each set of settings that is there as a whole, and a field for each process that has answered.

const (
	askedLife   = time.Minute      // of the word
	answerLife  = 10 * time.Minute // of the answers
	answerEvery = 5 * time.Second  // every program can write a word, so a process does not answer more often
	maxWord     = 64               // bytes

	answered = "process:" // and the ID of a process
	whole    = "whole:"   // and a hash of what is there as a whole
)

// Recovery is what the processes know of the settings that the store has lost.
type Recovery struct {
	Settings []*Setting // those that still hold, in the order of Compare, without those for whose rule and key the store has a newer one
	Answered []Process
	Silent   []Process // live, and have not answered yet; perhaps of a version that does not
}

// AskKnown asks the processes what they know of the settings that the store has lost. They answer within two seconds, or within six where they know
// none, or 1,000 or more, but not within five seconds after an answer to another word. Known returns the answers to the word.
func (f *Fleet) AskKnown(ctx context.Context) (word string, err error) {
	word = newID()
	if f.server == nil {
		return word, nil
	}
	_, err = alone(ctx, f, func() ([]any, error) {
		return f.do(ctx, Command{"SET", f.keys.recover, word, "PX", askedLife.Milliseconds()})
	})
	return word, err
}

// Known returns what the processes have answered to a word so far. Programs wrote it, so people should see it before it is in force: see Recover.
func (f *Fleet) Known(ctx context.Context, word string) (r Recovery, err error) {
	if f.server == nil {
		return r, nil
	}
	return alone(ctx, f, func() (r Recovery, err error) {
		if err = f.refresh(ctx, f.do); err != nil {
			return r, err
		}
		newest, from := map[string]*Setting{}, map[string]bool{}
		err = f.scan(ctx, f.keys.known+word, perScan, maxRead+2*MaxProcesses, func(field, text string) {
			if id, ok := strings.CutPrefix(field, answered); ok {
				from[id] = true
			} else if s := parseKnown(field, text); s != nil && s.isNewer(newest[s.Name()]) {
				newest[s.Name()] = s
			}
		})
		if err != nil {
			return r, err
		}
		for name, s := range newest {
			if has := f.changed.settings.get(name); s.holds(f.Now()) && (has == nil || has.lost || s.At.After(has.At)) {
				r.Settings = append(r.Settings, s)
			}
		}
		slices.SortFunc(r.Settings, Compare)
		all, _, err := f.processes(ctx, perScan)
		for _, p := range all {
			if from[p.ID] {
				r.Answered = append(r.Answered, p)
			} else {
				r.Silent = append(r.Silent, p)
			}
		}
		return r, err
	})
}

// isNewer reports whether s replaces another setting, or nil.
func (s *Setting) isNewer(other *Setting) bool {
	return other == nil || s.version > other.version || s.version == other.version && s.At.After(other.At)
}

// parseKnown parses a version of a setting in an answer: the field "12 block:login:{ann}" has the text of the setting. It returns nil for other fields.
func parseKnown(field, text string) *Setting {
	number, name, _ := strings.Cut(field, " ")
	version, err := strconv.ParseInt(number, 10, 64)
	if err != nil || version < 1 || len(name) > MaxText {
		return nil
	}
	s, err := parse(name, text)
	if err != nil {
		return nil
	}
	s.version = version
	return s
}

// Recover makes settings that Known returned hold again. It is an import.
func (f *Fleet) Recover(ctx context.Context, by Actor, settings []*Setting) error {
	return f.replace(ctx, by, "recover", settings)
}

// answer answers the word that is asked, if a beat has read it, unless it was answered. What was lost may not be known for some seconds.
func (f *Fleet) answer(ctx context.Context, asked []any) error {
	s, word := &f.self, ""
	if len(asked) > 0 {
		word = append(texts(asked[0]), "")[0]
	}
	if word == "" || word == s.answered || len(word) > maxWord || !f.changed.readAt.IsZero() || time.Since(s.answeredAt) < answerEvery {
		return nil
	}
	fields, texts, set := f.lostSettings()
	if s.asked != word {
		s.asked, s.answerAt = word, time.Now()
		if len(fields) >= spreadFrom {
			s.answerAt = s.answerAt.Add(rand.N(3 * time.Second)) // then others may have written the same
		}
	}
	if time.Now().Before(s.answerAt) {
		return nil
	}
	key := f.keys.known + word
	replies, err := f.do(ctx, Command{"HMGET", key, set})
	if err != nil {
		return err
	}
	if isThere, _ := replies[0].([]any); len(isThere) == 1 && isThere[0] != nil {
		fields = nil
	}
	for some := range slices.Chunk(fields, perCommand) {
		write := Command{"HSET", key}
		for _, field := range some {
			write = append(write, field, texts[field])
		}
		if _, err := f.do(ctx, write, Command{"PEXPIRE", key, answerLife.Milliseconds()}); err != nil {
			return err
		}
	}
	_, err = f.do(ctx, Command{"HSET", key, set, "", answered + s.id, ""}, Command{"PEXPIRE", key, answerLife.Milliseconds()})
	if err == nil {
		s.answered, s.answeredAt = word, time.Now()
	}
	return err
}

// lostSettings returns the settings that the store has lost, also cleared ones: the fields of an answer with their texts, and the field of the whole.
func (f *Fleet) lostSettings() (fields []string, texts map[string]string, set string) {
	texts = map[string]string{}
	for s := range f.changed.settings.all() {
		if text, err := s.text(); s.lost && err == nil {
			field := fmt.Sprint(s.version, " ", s.Name())
			fields, texts[field] = append(fields, field), text
		}
	}
	slices.Sort(fields)
	h := sha256.New()
	for _, field := range fields {
		_, _ = io.WriteString(h, field+"\n"+texts[field]+"\n") // it never fails
	}
	return fields, texts, whole + base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:12])
}
