package redistest

import (
	"bytes"
	"net"
	"sync/atomic"
	"testing"
	"time"
)

// Proxy stands between clients and a server, and cuts connections after a number of bytes.
type Proxy struct {
	Addr              string       // host:port
	Requests, Replies atomic.Int64 // how many more bytes may pass in total before a cut, which sets it to -1; -1 is no bound
	informed          atomic.Bool  // a reply to INFO has passed
	t                 testing.TB
}

// StartProxy starts a proxy before the server at addr. The proxy ends when t and its subtests are over.
func StartProxy(t testing.TB, addr string) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	p := &Proxy{Addr: listener.Addr().String(), t: t}
	p.Requests.Store(-1)
	p.Replies.Store(-1)
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return // the test has ended
			}
			server, err := net.Dial("tcp", addr)
			if err != nil {
				_ = client.Close()
				continue
			}
			go p.pass(server, client, &p.Requests)
			go p.pass(client, server, &p.Replies)
		}
	}()
	return p
}

// pass copies until an end fails or no more bytes may pass.
func (p *Proxy) pass(to, from net.Conn, may *atomic.Int64) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if left := may.Load(); left >= 0 && int64(n) > left {
			_, _ = to.Write(buffer[:left])
			may.Store(-1)
			return
		} else if left >= 0 {
			may.Add(int64(-n))
		}
		if _, writeErr := to.Write(buffer[:n]); err != nil || writeErr != nil {
			return
		}
		if bytes.Contains(buffer[:n], []byte("maxmemory_policy:")) {
			p.informed.Store(true)
		}
	}
}

// WaitInfo waits until a reply to INFO has passed. A store asks for that in the background.
func (p *Proxy) WaitInfo() {
	p.t.Helper()
	for range 2000 {
		if p.informed.Load() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	p.t.Fatal("no client asked for INFO in ten seconds")
}
