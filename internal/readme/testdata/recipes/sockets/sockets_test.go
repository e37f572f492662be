package sockets

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/limittest"
)

// socket is a client that sends a number of messages.
type socket struct {
	left     int
	received []string
}

func (s *socket) Read(context.Context) (string, error) {
	if s.left == 0 {
		return "", io.EOF
	}
	s.left--
	return "hello", nil
}

func (s *socket) Write(_ context.Context, text string) error {
	s.received = append(s.received, text)
	return nil
}

func request(t *testing.T) *http.Request {
	return httptest.NewRequest("GET", "/", nil).WithContext(ratelimit.WithUserID(t.Context(), "ann"))
}

func TestMessages(t *testing.T) {
	limiter, _ := limittest.New(t)
	taken := 0
	receive := LimitReceive(func(context.Context, string) error {
		taken++
		return nil
	}, limiter)
	client := &socket{left: 22}
	if err := Serve(request(t).Context(), client, receive); err != io.EOF {
		t.Error(err)
	}
	if want := []string{"slow down: 200ms", "slow down: 200ms"}; taken != 20 || !slices.Equal(client.received, want) {
		t.Errorf("%d messages were taken, and the client was told %q", taken, client.received)
	}
}

func TestConnections(t *testing.T) {
	limiter, _ := limittest.New(t)
	opened, leave, left := make(chan bool), make(chan bool), make(chan bool)
	connect := LimitConnect(func(http.ResponseWriter, *http.Request) { opened <- true; <-leave }, limiter)
	ask := func(w http.ResponseWriter) { connect(w, request(t)); left <- true }
	for range 5 {
		go ask(httptest.NewRecorder())
		<-opened
	}
	w := httptest.NewRecorder()
	go ask(w)
	select {
	case <-opened:
		t.Fatal("six connections are open")
	case <-left:
	}
	if w.Code != http.StatusTooManyRequests {
		t.Errorf("got %d", w.Code)
	}
	leave <- true
	<-left
	go ask(httptest.NewRecorder())
	<-opened
	close(leave)
	for range 5 {
		<-left
	}
}
