package ratelimit

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"hash"
	"sync"

	"github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/runtime/internal/bridge"
)

func init() { bridge.Hashed = hashed }

// Hash is whether [WithSubjectHash] applies to a rule.
type Hash uint8

const (
	HashSubject Hash = iota // subjects and members are hashed if the limiter has a secret
	HashNever               // they are kept and shown as they are
)

// String returns the directives' word: "true" or "false".
func (h Hash) String() string { return word("Hash", uint8(h), "true", "false") }

// minSecret is how many bytes the secret of [WithSubjectHash] has at least.
const minSecret = 32

// WithSubjectHash keeps personal data, such as phone numbers, out of the store, errors, events and logs. Subjects and members are
// replaced by the unpadded base64url text of the first 16 bytes of their HMAC-SHA-256 (RFC 2104) under the secret, and so are the key
// expressions in messages. A [KeyError] does not show the text of its cause. Rules with HashNever are exempt. All processes that share
// counts need the same secret, and a new secret starts every count anew. A secret of fewer than 32 bytes panics.
func WithSubjectHash(secret []byte) Option {
	if len(secret) < minSecret {
		panic(fmt.Sprintf("ratelimit.WithSubjectHash: the secret has %d bytes; expected at least %d", len(secret), minSecret))
	}
	h := newHasher(secret)
	return func(l *Limiter) { l.hasher = h }
}

// hasher hashes texts under a secret.
type hasher struct{ macs sync.Pool }

// mac is a hash with room for what goes in, and then for what comes out, so that a text costs one allocation.
type mac struct {
	hash.Hash
	room []byte
}

func newHasher(secret []byte) *hasher {
	secret = append([]byte(nil), secret...)
	return &hasher{sync.Pool{New: func() any { return &mac{Hash: hmac.New(sha256.New, secret)} }}}
}

// hashBytes is how much of a hash stands for a text.
const hashBytes = 16

func (h *hasher) hash(text string) string {
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

// hidden returns what stands for a caller's text under a rule. The empty text is nobody's.
func (l *Limiter) hidden(rule *Rule, text string) string {
	if l.hasher == nil || rule.Hash == HashNever || text == "" {
		return text
	}
	return l.hasher.hash(text)
}

// WithShownKeys makes the limiter take keys of requests as errors, events and [Quota] show them: with escaped characters, cut if they are
// long, hashed if the program hashes them. It is for tools that act on what they are shown, by [Limiter.Peek], [Limiter.Reset] or
// [Limiter.Block]. Any other key stands for itself. A program that takes keys from its callers must not use it: they could name each
// other's counts.
func WithShownKeys() Option { return func(l *Limiter) { l.shownKeys = true } }

// subject returns whom a key of a call under a rule names.
func (l *Limiter) subject(rule *Rule, text string) string {
	if l.shownKeys && text != "" && key.IsEscaped(text) {
		return text
	}
	return key.Subject(l.hidden(rule, text))
}

// hashed returns the hash of a key expression for the message of a refusal, if the limiter hashes subjects.
func hashed(err error, text string) (string, bool) {
	refusal, ok := err.(*TooManyRequestsError)
	if !ok || refusal.hasher == nil {
		return "", false
	}
	return refusal.hasher.hash(text), true
}

// discreet returns err. If the limiter hashes subjects, the text of a KeyError leaves out its cause, which may name a subject.
func (l *Limiter) discreet(err error) error {
	e, ok := err.(*KeyError)
	if l.hasher == nil || !ok || e.Err == nil {
		return err
	}
	shown := *e
	shown.Err = hiddenCause{e.Err}
	return &shown
}

// hiddenCause is an error that errors.Is and errors.As find, and whose text is not shown.
type hiddenCause struct{ cause error }

func (hiddenCause) Error() string { return "the cause is not shown, as subjects are hashed" }

func (h hiddenCause) Unwrap() error { return h.cause }
