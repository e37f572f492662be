package ratelimit

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"hash"
	"sync"

	"github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/internal/printable"
	"github.com/ratelimit-go/ratelimit/runtime/internal/bridge"
)

func init() { bridge.Shown = shown }

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
// expressions in messages. Rules with HashNever are exempt. All processes that share counts need the same secret, and a new secret
// starts every count anew. A secret of fewer than 32 bytes panics.
func WithSubjectHash(secret []byte) Option {
	if len(secret) < minSecret {
		panic(fmt.Sprintf("ratelimit.WithSubjectHash: the secret has %d bytes; expected at least %d", len(secret), minSecret))
	}
	h := newHasher(secret)
	return func(l *Limiter) { l.hasher = h }
}

// hasher hashes texts under a secret.
type hasher struct{ macs sync.Pool }

// mac is a hash with room for what goes in and what comes out, so that a text costs one allocation.
type mac struct {
	hash.Hash
	in  []byte
	sum [sha256.Size]byte
}

func newHasher(secret []byte) *hasher {
	secret = append([]byte(nil), secret...)
	return &hasher{sync.Pool{New: func() any { return &mac{Hash: hmac.New(sha256.New, secret), in: make([]byte, 0, maxShown)} }}}
}

// hashBytes is how much of a hash stands for a text.
const hashBytes = 16

func (h *hasher) hash(text string) string {
	m := h.macs.Get().(*mac)
	defer h.macs.Put(m)
	m.Reset()
	m.Write(append(m.in, text...))
	var out [(hashBytes*8 + 5) / 6]byte
	base64.RawURLEncoding.Encode(out[:], m.Sum(m.sum[:0])[:hashBytes])
	return string(out[:])
}

// hidden returns what stands for a caller's text under a rule. The empty text is nobody's.
func (l *Limiter) hidden(rule *Rule, text string) string {
	if l.hasher == nil || rule.Hash == HashNever || text == "" {
		return text
	}
	return l.hasher.hash(text)
}

// subject returns whom a key of a call under a rule names.
func (l *Limiter) subject(rule *Rule, text string) string { return key.Subject(l.hidden(rule, text)) }

// maxShown is how many bytes of a caller's text a message shows.
const maxShown = 128

// shown returns the text of a key expression for the message of a refusal.
func shown(err error, text string) string {
	if refusal, ok := err.(*TooManyRequestsError); ok && refusal.hasher != nil {
		return refusal.hasher.hash(text)
	}
	return printable.Text(text, maxShown)
}
