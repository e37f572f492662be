package ratelimit

import (
	"context"
	"errors"
	"fmt"

	"github.com/ratelimit-go/ratelimit/internal/decide"
)

// Hash is whether [WithSubjectHash] applies to a rule.
type Hash uint8

const (
	HashSubject Hash = iota // subjects and members are hashed if the limiter has a secret
	HashNever               // subjects and members are kept and shown as they are
)

// String returns the directives' word: "true" or "false".
func (h Hash) String() string { return word("Hash", uint8(h), "true", "false") }

// minSecret is the least number of bytes in the secret of [WithSubjectHash].
const minSecret = 32

// WithSubjectHash keeps personal data, such as phone numbers, out of the store, errors, events and logs. It replaces subjects, members, and
// the values of key expressions in messages by a hash: the first 16 bytes of their HMAC-SHA-256 (RFC 2104) under the secret, as unpadded
// base64url. A [KeyError] does not show the text of its cause. Rules with HashNever are exempt. All processes that share counts need the same
// secret. With a new secret every count starts from zero. WithSubjectHash panics if the secret has fewer than 32 bytes.
func WithSubjectHash(secret []byte) Option {
	if len(secret) < minSecret {
		panic(fmt.Sprintf("ratelimit.WithSubjectHash: the secret has %d bytes; expected at least %d", len(secret), minSecret))
	}
	h := decide.NewHasher(secret)
	return func(o *options) { o.Hasher = h }
}

// WithShownKeys makes the limiter accept keys of requests in the form that errors, events and [Quota] show: escaped, cut if they are long,
// and hashed if the program hashes them. A key in any other form is used as it is. The option is for tools that pass such keys to
// [Limiter.Peek], [Limiter.Reset] or [Limiter.Block]. Do not use it in a program that takes keys from its callers: a caller could name the
// counts of another.
func WithShownKeys() Option { return func(o *options) { o.ShownKeys = true } }

// subject returns the subject for the key of a call under a rule.
func (l *Limiter) subject(rule *Rule, text string) string {
	return l.machine().Subject(rule.Hash == HashNever, text)
}

// discreet returns err. If the limiter hashes subjects, it returns a KeyError without the text of its cause, which may name a subject.
func discreet(l *decide.Limiter, err error) error {
	if e, ok := err.(*KeyError); ok && l.Hashes() {
		return e.withoutCause()
	}
	return err
}

// keyless returns err, or an error in it without what may name a key.
func keyless(err error) error {
	if e, ok := errors.AsType[*KeyError](err); ok {
		return e.withoutCause()
	}
	if errors.Is(err, ErrTooManyRequests) { // it has keys, and a message that may show them
		return ErrTooManyRequests
	}
	return err
}

// withoutCause returns e without the text of its cause.
func (e *KeyError) withoutCause() error {
	if e.Err == nil {
		return e
	}
	shown := *e
	shown.Err = hiddenCause{e.Err}
	return &shown
}

// hiddenCause wraps an error for errors.Is and errors.As, without showing its text.
type hiddenCause struct{ cause error }

func (hiddenCause) Error() string { return "the cause is not shown: it may name a key" }

func (h hiddenCause) Unwrap() error { return h.cause }

// WithClientIP returns a context in which clientIP(ctx) is ip: the address of the client that the call is made for. Use a source that the
// client cannot forge: the connection, or a header that your own proxy sets.
func WithClientIP(ctx context.Context, ip string) context.Context {
	return context.WithValue(ctx, decide.ClientIP, ip)
}

// WithUserID returns a context in which userID(ctx) is id: the authenticated user that the call is made for.
func WithUserID(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, decide.UserID, id)
}
