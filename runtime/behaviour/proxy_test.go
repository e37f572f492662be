package behaviour_test

import (
	"bytes"
	"io"
	"net"
	"sync/atomic"
	"testing"
)

// A proxy stands between a client and a server, and can lose the reply to a script call.
type proxy struct {
	addr  string
	armed atomic.Bool  // lose the next script's reply
	lost  atomic.Int64 // replies lost
}

func startProxy(t *testing.T, server string) *proxy {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	p := &proxy{addr: listener.Addr().String()}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return // the test is over
			}
			go p.serve(client, server)
		}
	}()
	return p
}

// serve passes bytes on until either side closes.
func (p *proxy) serve(client net.Conn, addr string) {
	defer client.Close()
	server, err := net.Dial("tcp", addr)
	if err != nil {
		return
	}
	defer server.Close()
	var lose atomic.Bool
	go func() {
		defer server.Close()
		p.forward(server, client, func(request []byte) bool {
			if bytes.Contains(bytes.ToUpper(request), []byte("EVAL")) && p.armed.CompareAndSwap(true, false) {
				lose.Store(true)
			}
			return true
		})
	}()
	p.forward(client, server, func([]byte) bool {
		if lose.Load() {
			p.lost.Add(1)
		}
		return !lose.Load()
	})
}

// forward copies until an end fails or a chunk is not to pass.
func (p *proxy) forward(to io.Writer, from io.Reader, pass func([]byte) bool) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 && !pass(buffer[:n]) {
			return
		}
		if _, writeErr := to.Write(buffer[:n]); err != nil || writeErr != nil {
			return
		}
	}
}
