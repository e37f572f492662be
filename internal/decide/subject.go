package decide

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"hash"
	"strings"
	"sync"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/key"
)

// Hasher hashes texts under a secret.
type Hasher struct{ macs sync.Pool }

// mac is a hash with a buffer for its input and output, so that hashing a text costs one allocation.
type mac struct {
	hash.Hash
	room []byte
}

// NewHasher returns a Hasher with a secret.
func NewHasher(secret []byte) *Hasher {
	secret = append([]byte(nil), secret...)
	return &Hasher{sync.Pool{New: func() any { return &mac{Hash: hmac.New(sha256.New, secret)} }}}
}

// hashBytes is how many bytes of a hash replace a text.
const hashBytes = 16

// Hash returns a hash of a text: the first 16 bytes of its HMAC-SHA-256, as unpadded base64url.
func (h *Hasher) Hash(text string) string {
	m := h.macs.Get().(*mac)
	defer h.macs.Put(m)
	m.Reset()
	m.room = append(m.room[:0], text...)
	m.Write(m.room)
	m.room = m.Sum(m.room[:0])
	var out [(hashBytes*8 + 5) / 6]byte
	base64.RawURLEncoding.Encode(out[:], m.room[:hashBytes])
	return string(out[:])
}

// Fingerprint identifies the secret by which the limiter hashes subjects: see fleet.Process. It is "" without one.
func (l *Limiter) Fingerprint() string {
	hash, _ := l.Shown("fingerprint")
	return hash[:min(len(hash), 11)] // 8 bytes
}

// hidden returns the text, or its hash if the limiter hashes the texts of this rule. It never hashes the empty text.
func (l *Limiter) hidden(plainKeys bool, text string) string {
	if l.hasher == nil || plainKeys || text == "" {
		return text
	}
	return l.hasher.Hash(text)
}

// hashes reports whether the keys of a rule are hashed.
func (l *Limiter) hashes(rule *Rule) bool { return l.hasher != nil && !rule.PlainKeys }

// Subject returns the subject for the key of a call, under a rule that hashes subjects or not.
func (l *Limiter) Subject(plainKeys bool, text string) string {
	if l.shownKeys && text != "" && key.IsEscaped(text) {
		return text
	}
	return key.Subject(l.hidden(plainKeys, text))
}

// ParseMatch returns a pattern of keys as settings have it: see fleet.ParseMatch. isHashed says that the keys of the rule are hashed if the limiter
// hashes: then no text matches them.
func (l *Limiter) ParseMatch(pattern string, isHashed bool) (parsed string, err error) {
	if parsed = pattern; !l.shownKeys || !fleet.IsMatch(pattern) {
		parsed, err = fleet.ParseMatch(pattern)
	}
	if err == nil && isHashed && l.hasher != nil && strings.HasSuffix(parsed, "*") {
		err = textOfHashed(parsed)
	}
	return parsed, err
}

// textOfHashed says that a text matches no key that is hashed.
func textOfHashed(pattern string) error {
	return fmt.Errorf("found the text %s; expected a network such as 203.0.113.0/24: the keys of this rule are hashed, so no text matches them", pattern)
}

// IsHash reports whether a text may be the hash of a key.
func IsHash(text string) bool {
	b, err := base64.RawURLEncoding.DecodeString(text)
	return err == nil && len(b) == hashBytes
}

// Shown returns the form in which a message shows a text that is part of a key: its hash if the limiter hashes subjects. Otherwise it reports
// false.
func (l *Limiter) Shown(text string) (hash string, ok bool) {
	if l.hasher == nil {
		return "", false
	}
	return l.hasher.Hash(text), true
}

// identity is a key of a value in a context.
type identity string

// The keys of the values in a context: who the call is made for.
const (
	ClientIP identity = "client IP"
	UserID   identity = "user ID"
)

// Missing is the error of an identity that nobody has said: "the context carries no client IP", for example.
type Missing string

func (m Missing) Error() string { return string(m) }

// Unset is the error of a function in limit= or anchor=, of which Argument is the word.
type Unset struct {
	Argument string
	Err      error
}

func (u Unset) Error() string { return u.Err.Error() }

func (u Unset) Unwrap() error { return u.Err }

// Panic is the error of an expression in which a function panicked.
type Panic struct{ Value any }

func (p Panic) Error() string { return fmt.Sprintf("panic: %v", p.Value) }

// Unwrap returns the value if it is an error, and otherwise nil.
func (p Panic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// looking is a key of a value in a context.
type looking string

// Looks is the key of a value in the context of a Peek by a console. Such a Peek does not make the limiter follow settings.
const Looks looking = "looks"
