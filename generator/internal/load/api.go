package load

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/names"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// api has the declarations that generated code uses of packages that the annotated package may not import yet, by path. To find these
// packages and to check them from source would take longer than everything else.
var api = map[string]string{
	"context": `package context
import "time"
type Context interface {
	Deadline() (deadline time.Time, ok bool)
	Done() <-chan struct{}
	Err() error
	Value(key any) any
}
func Background() Context`,
	"errors": `package errors
func Is(err, target error) bool`,
	"io": `package io
type Closer interface{ Close() error }
type Reader interface {
	Read(p []byte) (n int, err error)
}
type ReadCloser interface {
	Reader
	Closer
}`,
	"iter": `package iter
type Seq[V any] func(yield func(V) bool)
type Seq2[K, V any] func(yield func(K, V) bool)`,
	"math": `package math
func Copysign(f, sign float64) float64`,
	"slices": `package slices
func Contains[S ~[]E, E comparable](s S, v E) bool`,
	"strconv": `package strconv
func FormatBool(b bool) string
func FormatInt(i int64, base int) string
func FormatUint(i uint64, base int) string
func Itoa(i int) string`,
	"strings": `package strings
func Contains(s, substr string) bool
func HasPrefix(s, prefix string) bool
func HasSuffix(s, suffix string) bool
func Index(s, substr string) int
func LastIndex(s, substr string) int
func ToLower(s string) string
func ToUpper(s string) string
func Trim(s, cutset string) string
func TrimPrefix(s, prefix string) string
func TrimSpace(s string) string
func TrimSuffix(s, suffix string) string`,
	"time": `package time
type Time struct{}
type Duration int64
const (
	Nanosecond  Duration = 1
	Microsecond          = 1000 * Nanosecond
	Millisecond          = 1000 * Microsecond
	Second               = 1000 * Millisecond
	Minute               = 60 * Second
	Hour                 = 60 * Minute
)`,
	"time/tzdata": `package tzdata`,
	"unicode/utf8": `package utf8
func RuneCountInString(s string) (n int)`,
	names.Runtime: `package ratelimit
import "time"
type Limiter struct{}
var ErrTooManyRequests error
` + rule(),
	names.Wrap: `package wrap
import (
	"context"
	"io"
	"iter"
	"time"
	ratelimit "` + names.Runtime + `"
)
const (
	Everybody       = ""
	Keep      int64 = -1 << 62
)
type Charge struct {
	Key    string
	Cost   int64
	Member string
	Limit  int64
}
type Closer struct{}
func (c Closer) Close() error
type Hold struct{}
func NewHold(ctx context.Context, taken Taken) *Hold
func (h *Hold) Body(body io.ReadCloser) io.ReadCloser
func (h *Hold) Closer(of io.Closer) Closer
func (h *Hold) Keeps(result any, err error) bool
func (h *Hold) Return()
type Receiver[T any] struct{}
func (r Receiver[T]) Recv() (T, error)
type Taken interface {
	Pause(ctx context.Context, pauses ...time.Duration)
	RefundUnless(ctx context.Context, ok *bool)
	Release(ctx context.Context)
	Settle(ctx context.Context, costs ...int64)
	SettleFailed(ctx context.Context, err error)
}
type Rules struct{}
func NewRules(method string, rules ...ratelimit.Rule) *Rules
func (r *Rules) ClientIP(ctx context.Context) (string, error)
func (r *Rules) Named(rule string) *Rules
func (r *Rules) NilKey(param string) error
func (r *Rules) UserID(ctx context.Context) (string, error)
func (r *Rules) WithCost(rules ...int) *Rules
const AsDeclared = ""
func Begin(ctx context.Context, l *ratelimit.Limiter, rules *Rules, charges ...Charge) (Taken, error)
func Carried(identity, what string) string
func ClientIP(ctx context.Context) string
func Copy[T any](v T) *T
func Delay(rules *Rules, expr string, island func() time.Duration) time.Duration
func Describe(err error, messages ...string) error
func Failed(ctx context.Context, l *ratelimit.Limiter, err error) error
func HoldSeq2[K, V any](h *Hold, seq iter.Seq2[K, V]) iter.Seq2[K, V]
func HoldSeq[V any](h *Hold, seq iter.Seq[V]) iter.Seq[V]
func IsNil(v any) bool
func Limiter(typ string, l *ratelimit.Limiter, rules ...*Rules) *ratelimit.Limiter
func Message(rules *Rules, island func() string) string
func Must[T any](v T, err error) T
func NeedGuard(typ string, there bool)
func Next[T any](typ string, next T) T
func NotNil[T any](v T) T
func Part(s string) string
func PartBefore(s string, next rune) string
func PointerWithLimits[T, L any](result *T, l *ratelimit.Limiter, limit func(*T, *ratelimit.Limiter) *L) *L
func Printable(s string) string
func Receive[T any](h *Hold, from interface{ Recv() (T, error) }) Receiver[T]
func RetryAfter(x any) time.Duration
func RulesOf(methods ...*Rules) []ratelimit.Rule
func Shown(err error, text string) string
func Take(ctx context.Context, l *ratelimit.Limiter, rules *Rules, subjects ...string) error
func TakeCharges(ctx context.Context, l *ratelimit.Limiter, rules *Rules, charges ...Charge) error
func UserID(ctx context.Context) string
func Value[T any](rules *Rules, expr string, island func() T) (value T, err error)
func WithLimits[T, L any](result T, l *ratelimit.Limiter, limit func(T, *ratelimit.Limiter) *L) T`,
	names.Runtime + "/exprvm": `package exprvm
import "time"
type Program struct{}
func Hidden[T any](p *Program, name string, see func(T) any) *Program
func Identity[C any](what string, find func(C) string) any
func Known(what, found string) any
func New(source string, names ...string) *Program
func (p *Program) Bool(values ...any) (bool, error)
func (p *Program) Duration(values ...any) (time.Duration, error)
func (p *Program) Int(values ...any) (int64, error)
func (p *Program) Text(values ...any) (string, error)`,
	names.Runtime + "/exprvm/checked": `package checked
type Integer interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr
}
func Add[N ~int | ~int64](a, b N) (N, error)
func Multiply[N ~int | ~int64](a, b N) (N, error)
func Negate[N Integer](n N) (N, error)
func Remainder[N ~int | ~int64](a, b N) (N, error)
func Replace(text, old, new string) (string, error)
func Subtract[N ~int | ~int64](a, b N) (N, error)
func To[T, N Integer](n N) (T, error)`,
}

// rule returns the declaration of ratelimit.Rule, and those of its types with the constants that directives name.
func rule() string {
	var fields, types, constants strings.Builder
	declared := map[string]bool{}
	for f := range reflect.TypeFor[ratelimit.Rule]().Fields() {
		typ := strings.TrimPrefix(f.Type.String(), "ratelimit.")
		if f.IsExported() {
			fmt.Fprintf(&fields, "%s %s\n", f.Name, typ)
		}
		if f.Type.PkgPath() == names.Runtime && !declared[typ] {
			declared[typ] = true
			fmt.Fprintf(&types, "type %s %s\n", typ, f.Type.Kind())
		}
	}
	for _, arg := range annotations.LookUp("rule").Args {
		f, _ := reflect.TypeFor[ratelimit.Rule]().FieldByName(arg.Field)
		for _, w := range arg.Words {
			fmt.Fprintf(&constants, "const %s %s = 0\n", w.Const, strings.TrimPrefix(f.Type.String(), "ratelimit."))
		}
	}
	return types.String() + "type Rule struct {\n" + fields.String() + "}\n" + constants.String()
}
