package sms

import "context"

type Sender interface {
	//ratelimit:rule key="{phone}" limit=1 per=1m
	SendCode(ctx context.Context, phone string) error
	Close() error
}

// Gateway implements Sender.
type Gateway struct{ other *Gateway } // want Gateway:"bare Sender"

func (g *Gateway) SendCode(ctx context.Context, phone string) error {
	return g.other.SendCode(ctx, phone)
}

func (g *Gateway) Close() error { return nil }

func (g *Gateway) twice(ctx context.Context) error {
	if err := g.SendCode(ctx, "1"); err != nil {
		return err
	}
	return g.SendCode(ctx, "2")
}

type local struct{} // want local:"bare Sender"

func (*local) SendCode(ctx context.Context, phone string) error { return nil }
func (*local) Close() error                                     { return nil }

// NewLocal is for those that wrap it. Who does not, though nobody else can name the type, is told.
func NewLocal() *local { return &local{} }

// NewGateway says what it returns, and calls on that are watched.
func NewGateway() *Gateway { return &Gateway{} }

func NewSender() *Gateway { return &Gateway{} } // want `NewSender returns a \*Gateway without the limits of Sender; return what NewLimitedSender returns`

func New(ok bool) (*Gateway, error) { // want `New returns a \*Gateway without the limits of Sender`
	return nil, nil
}

func Plain(ok bool) (Sender, error) {
	f := func() Sender { return &Gateway{} }
	if ok {
		return &Gateway{}, nil // want `this Sender has no limits; return what NewLimitedSender returns`
	}
	return f(), nil
}

func plain() *Gateway { return nil }

var (
	// Default is a variable, to which a program may assign another one.
	Default Sender = &Gateway{}

	standard Sender = plain()
)

func Standard() (s Sender) {
	s = &Gateway{}
	if s == nil {
		return Default
	}
	return standard // want `this Sender has no limits; return what NewLimitedSender returns`
}

// Bulk delegates; it is one implementation in terms of another.
type Bulk struct{ Gateway *Gateway } // want Bulk:"bare Sender"

func (b Bulk) SendCode(ctx context.Context, phone string) error {
	return b.Gateway.SendCode(ctx, phone)
}

func (b Bulk) Close() error { return nil }

// Retrying is a decorator: what it calls may be limited.
type Retrying struct{ next Sender }

func (r Retrying) SendCode(ctx context.Context, phone string) error {
	return r.next.SendCode(ctx, phone)
}

func (r Retrying) Close() error { return r.next.Close() }

// Failover is another one, which may be limited as a whole.
type Failover struct {
	next   Sender
	backup *Gateway
}

func (f Failover) SendCode(ctx context.Context, phone string) error {
	if err := f.next.SendCode(ctx, phone); err == nil {
		return nil
	}
	return f.backup.SendCode(ctx, phone)
}

func (f Failover) Close() error { return nil }

type fanOut struct{ all []Sender }

func (f fanOut) SendCode(ctx context.Context, phone string) error {
	return f.all[0].SendCode(ctx, phone)
}

func (f fanOut) Close() error { return nil }

// SenderFunc makes a Sender of a func.
type SenderFunc func(ctx context.Context, phone string) error

func (f SenderFunc) SendCode(ctx context.Context, phone string) error { return f(ctx, phone) }
func (SenderFunc) Close() error                                       { return nil }

// half is no Sender.
type half struct{}

func (half) SendCode(ctx context.Context, phone string) error { return nil }

type Login struct {
	gateway *Gateway
	sender  Sender
}

func (l Login) Send(ctx context.Context, r Retrying, f fanOut, h half, limited *LimitedSender) {
	l.gateway.SendCode(ctx, "1") // want `the limits of Sender do not reach this SendCode on \*Gateway; use what NewLimitedSender returns`
	l.gateway.Close()
	l.sender.SendCode(ctx, "1")
	limited.SendCode(ctx, "1")
	r.SendCode(ctx, "1")
	f.SendCode(ctx, "1")
	h.SendCode(ctx, "1")
	l.gateway.twice(ctx)
	send := l.gateway.SendCode // want `do not reach this SendCode`
	send(ctx, "1")
	(*Gateway).SendCode(nil, ctx, "1") // want `do not reach this SendCode on \*Gateway`
	(*Gateway).Close(nil)
}
