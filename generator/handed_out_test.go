package generator_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ratelimit-go/ratelimit/generator"
	"github.com/ratelimit-go/ratelimit/internal/testmodule"
)

// handedOutDB is another package, whose types have aliases with rules.
const handedOutDB = `package db

import "context"

type Tx interface {
	Begin(ctx context.Context) (Tx, error)
	Exec(ctx context.Context, sql string) error
}

type Conn struct{}

func (c *Conn) Exec(ctx context.Context, sql string) error { return nil }
func (c *Conn) Sub() *Conn                                  { return c }

type Page[T any] struct{ Items []T }

type Txs []Tx

type secret struct{}

type Secretive func(Tx, secret) error

type Sender interface {
	//ratelimit:rule name=send limit=1 per=1m
	Send() error
}

//ratelimit:guard
type Service struct{ guard *ServiceGuard }

//ratelimit:rule name=serve limit=1 per=1m
func (s *Service) Serve() error { return s.guard.Serve() }

type ServiceGuard struct{}

func (*ServiceGuard) Serve() error { return nil }
`

// handedOut has methods that hand out and take back values. After each stands what is expected: "out" if it hands out values with limits,
// "back" if it takes values back, "warned" or "noted" if a warning or a note says that it hands out values without limits, or "-" for none of
// these.
const handedOut = `package p

import (
	"context"
	"iter"

	"example.com/handedout/db"
)

type Tx interface {
	//ratelimit:rule name=exec limit=1 per=1m
	Exec(ctx context.Context) error
}

// Lone is handed out by no method, so nothing of it is taken back.
type Lone interface {
	//ratelimit:rule name=lone limit=1 per=1m
	Do() error
}

type Client struct{}

//ratelimit:rule name=client limit=1 per=1m
func (c *Client) Do() error { return nil }

func (c *Client) CSelf() *Client                        { return c }       // out
func (c *Client) CCopy() Client                         { return *c }      // out
func (c *Client) CMerge(o *Client)                      {}                 // back
func (c *Client) CEqual(o Client) bool                  { return true }    // back
func (c *Client) CAll(o ...*Client)                     {}                 // -
func (c *Client) CList() []*Client                      { return nil }     // warned
func (c *Client) CWith(f func(*Client) error) error     { return f(c) }    // warned
func (c *Client) CTx() Tx                               { return nil }     // out
func (c *Client) CSave(tx Tx) error                     { return nil }     // back
func (c *Client) CBoth(o *Client) *Client               { return o }       // out back

type Querier interface {
	Get(id int64) error
	WithTx() Querier
}

//ratelimit:rule name=store limit=1 per=1m
type Store = Querier

type Repo[K any] interface {
	Get(k K) error
	With() Repo[K]
}

//ratelimit:rule name=ids limit=1 per=1m
type IDs = Repo[int64]

//ratelimit:rule name=pairs limit=1 per=1m
type Pairs[K any] = Repo[map[string]K]

//ratelimit:rule name=tx limit=1 per=1m
type DBTx = db.Tx

//ratelimit:rule name=conn limit=1 per=1m
type DBConn = db.Conn

//ratelimit:rule name=hook limit=1 per=1m
type Hook func(ctx context.Context, tx Tx) error

type Funcs struct {
	//ratelimit:rule name=do limit=1 per=1m
	Do     func() error
	FBegin func() Tx    // out
	FSave  func(tx Tx)  // back
	FClose func()       // -
	FHook  Hook         // back warned
	//ratelimit:plain
	FPlain Hook         // -
	FTx    Tx           // noted
}

// Work has no rules, but hands out limited values.
//
//ratelimit:wrap
type Work interface {
	WTx() Tx      // out
	WSelf() Work  // out
}

type (
	Same   = Tx
	Wider  interface { Tx; Close() }
	Named  struct { Tx; n int }
	Field  struct { Tx Tx }
	Hidden struct { tx Tx }
	Txs    []Tx
	Open   func() Tx
	Opts   struct { OnTx func(Tx) }
	Unit   interface { Tx() Tx }
	Again  func(Again) Tx
)

type All[T Tx] interface {
	//ratelimit:rule name=all limit=1 per=1m
	Do() error

	Plain() Tx                               // out
	Alias() Same                             // out
	TwoResults() (Tx, error)                 // out
	Querier() Querier                        // out
	Store() Store                            // out
	Instance() Repo[int64]                   // out
	Other() Repo[string]                     // -
	Generic() Repo[map[string]bool]          // out
	DB() db.Tx                               // out
	DBAlias() DBTx                           // out
	Hook() Hook                              // out
	Funcs() Funcs                            // out
	Callback(do func(Tx) error) error        // out
	CallbackOf(do func(Hook, Funcs) error)   // out
	NamedFunc(do Again)                      // back warned
	Opener(do func(open func() Tx) error)    // out
	Closer(do func(end func(Tx)) error)      // back
	Map(do func(Tx) Tx)                      // out back
	Late(do func(Tx) (Tx, error))            // out back
	DBCallback(do func(db.Tx) error)         // out
	Stream(do func(iter.Seq[Tx]) error)      // out

	Save(tx Tx)                              // back
	SaveAlias(tx Same)                       // back
	SaveDB(tx db.Tx)                         // back
	SaveAll(tx ...Tx)                        // back
	SaveList(tx []Tx)                        // back
	SaveLone(l Lone)                         // -
	SaveHook(h Hook)                         // out
	SaveClient(c *Client)                    // -

	Client() *Client                         // warned
	Conn() *db.Conn                          // warned
	Slice() []Tx                             // warned
	SliceOfAlias() []Same                    // warned
	SliceOfDB() []db.Tx                      // warned
	MapOf() map[string]Tx                    // warned
	Chan() <-chan Tx                         // warned
	Array() [2]Tx                            // warned
	SendOnly() chan<- Tx                     // -
	BothWays() chan Tx                       // warned
	Sends(c chan<- Tx)                       // warned
	Exchanges(c chan Tx)                     // warned
	Receives(c <-chan Tx)                    // -
	Fills(tx *Tx)                            // warned
	FillsClient(c **Client)                  // warned
	Pointer() *Tx                            // warned
	PointerToFuncs() *Funcs                  // warned
	Func() func() Tx                         // warned
	Seq() iter.Seq[Tx]                       // warned
	Seq2() iter.Seq2[int, Querier]           // warned
	NamedSlice() Txs                         // warned
	NamedOpen() Open                         // warned
	NamedStruct() Named                      // warned
	PointerToNamed() *Named                  // warned
	WithField() Field                        // warned
	WithHidden() *Hidden                     // -
	NamedInterface() Wider                   // warned
	UnitOfWork() Unit                        // warned
	WrappedUnit() Work                       // out
	Literal() interface{ Tx }                // warned
	LiteralMethod() interface{ Tx() Tx }     // warned
	LiteralStruct() struct{ Tx }             // warned
	Page() db.Page[Tx]                       // warned
	Param() T                                // warned
	Unnameable(do db.Secretive) error        // warned
	Several() db.Txs                         // warned
	Elsewhere() db.Sender                    // warned
	ElsewhereIn() map[string]db.Sender       // warned
	ElsewhereTaken(s db.Sender)              // -
	Guarded() *db.Service                    // -
	Funcs2(do []func(Tx))                    // warned
	Options(o Opts)                          // warned
	Slices(do func([]Tx))                    // warned
	Takes() func(Tx)                         // -
	//ratelimit:plain
	Raw() Tx                                 // -
	//ratelimit:plain
	RawSave(tx Tx)                           // -
}
`

var handedOutLine = regexp.MustCompile(`^\s*(?:func \(c \*Client\) )?(\w+)\b.*// ((?:out|back|warned|noted|-)(?: back| warned)*)$`)

// TestHandedOut generates from the methods above. The generated file is type-checked.
func TestHandedOut(t *testing.T) {
	t.Parallel()
	root := newModule(t, "example.com/handedout")
	testmodule.Write(t, filepath.Join(root, "db/db.go"), []byte(handedOutDB))
	testmodule.Write(t, filepath.Join(root, "p/x.go"), []byte(handedOut))
	result, err := generator.Generate(t.Context(), generator.Config{Dir: filepath.Join(root, "p"), Patterns: []string{"."}})
	if err != nil {
		t.Fatal(err)
	}
	bodies := methodBodies(t, result.Files[0].Source)
	checked := 0
	for line := range strings.Lines(handedOut) {
		m := handedOutLine.FindStringSubmatch(strings.TrimRight(line, "\n"))
		if m == nil {
			continue
		}
		checked++
		var got []string
		body, known := bodies[m[1]]
		if !known && m[2] != "-" && m[2] != "noted" {
			t.Errorf("%s is not generated", m[1])
		}
		if strings.Contains(body, "handOut") {
			got = append(got, "out")
		}
		if strings.Contains(body, "takeBack") {
			got = append(got, "back")
		}
		for _, message := range result.Messages {
			if strings.HasPrefix(message.Text, m[1]+" hands out ") {
				got = append(got, "warned")
			}
			if strings.HasSuffix(message.Text, " has the field "+m[1]+" without the limits of its type") {
				got = append(got, "noted")
			}
		}
		if want := m[2]; want != strings.Join(got, " ") && !(want == "-" && got == nil) {
			t.Errorf("%s: got %v; want %s\n%s", m[1], got, want, body)
		}
	}
	if checked < 70 {
		t.Errorf("only %d methods were checked", checked)
	}
}

// methodBodies returns the texts of the methods and of the func fields in a generated file.
func methodBodies(t *testing.T, src []byte) map[string]string {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "", src, 0)
	if err != nil {
		t.Fatal(err)
	}
	bodies := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Recv != nil && bodies[n.Name.Name] == "" {
				bodies[n.Name.Name] = string(src[n.Pos()-1 : n.End()-1])
			}
		case *ast.AssignStmt:
			if field, ok := n.Lhs[0].(*ast.SelectorExpr); ok {
				bodies[field.Sel.Name] = string(src[n.Pos()-1 : n.End()-1])
			}
		}
		return true
	})
	return bodies
}
