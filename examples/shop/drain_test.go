package main

import (
	"bufio"
	"net/http"
	"net/http/httptrace"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestMain runs the shop itself if a test has started this binary for that.
func TestMain(m *testing.M) {
	if os.Getenv("SHOP_MAIN") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// order sends an order, which waits for the carrier, and returns when the shop has begun to handle it. The channel has its status, or 0.
func order(t *testing.T, url, user string) <-chan int {
	t.Helper()
	begun, status := make(chan struct{}), make(chan int, 1)
	begin := sync.OnceFunc(func() { close(begun) })
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got100Continue: begin}) // the handler reads the body
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/orders", strings.NewReader("product=lamp"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{"Authorization": {"Bearer " + user}, "Content-Type": {"application/x-www-form-urlencoded"}, "Expect": {"100-continue"}}
	go func() {
		defer begin()
		client := http.Client{Transport: &http.Transport{ExpectContinueTimeout: time.Minute}}
		reply, err := client.Do(r)
		if err != nil {
			t.Error(err)
			status <- 0
			return
		}
		reply.Body.Close()
		status <- reply.StatusCode
	}()
	<-begun
	return status
}

// A shop that is told to end finishes the orders that wait for the carrier, and exits with status 0.
func TestDrain(t *testing.T) {
	shop := exec.CommandContext(t.Context(), os.Args[0], "-http", "127.0.0.1:0", "-grpc", "127.0.0.1:0")
	shop.Env = append(os.Environ(), "SHOP_MAIN=1", "REDIS_URL=")
	stderr, err := shop.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := shop.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(stderr)
	line, err := lines.ReadString('\n') // such as "2026/11/23 09:00:00 HTTP on 127.0.0.1:8080, gRPC on 127.0.0.1:9090"
	_, address, ok := strings.Cut(line, "HTTP on ")
	if err != nil || !ok {
		t.Fatalf("the shop has logged %q, %v", line, err)
	}
	address, _, _ = strings.Cut(address, ",")
	var orders []<-chan int
	for _, user := range []string{"ann", "ann", "bob", "bob"} { // the carrier takes five a second
		orders = append(orders, order(t, "http://"+address, user))
	}
	if err := shop.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for i, status := range orders {
		if got := <-status; got != http.StatusOK {
			t.Errorf("order %d has status %d", i, got)
		}
	}
	if err := shop.Wait(); err != nil {
		t.Errorf("the shop has ended with %v", err)
	}
}
