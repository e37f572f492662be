package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/ratelimit-go/ratelimit/runtime/console"
)

const defaultListen = "127.0.0.1:8089"

// serve shows the console until it is interrupted.
func serve(ctx context.Context, s *session) error {
	var options []console.Option
	switch {
	case s.actorHeader != "" && !s.write:
		return misused("serve: -actor-header goes with -write")
	case s.write:
		options = append(options, console.WithWrites(s.sender))
	}
	if at := s.prefix.Follow(ctx); at.Err != nil {
		return at.Err
	}
	if wrong := s.isElsewhere(ctx); wrong != nil { // perhaps the programs start later
		fmt.Fprintln(s.stderr, wrong)
	}
	listener, url, err := s.openConsole()
	if err != nil {
		return err
	}
	defer listener.Close()
	server := &http.Server{Handler: s.onlyHosts(console.New(s.limiter, options...)), ReadHeaderTimeout: patience}
	shut := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(shut)
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_ = server.Shutdown(ctx)
	})
	defer stop()
	if err := s.print(map[string]string{"url": url}, []string{"the console is at " + url}); err != nil {
		return err
	}
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	<-shut // a form may be in flight
	return nil
}

// openConsole opens the address of -listen, which nobody on another machine reaches, and returns the console's URL.
func (in *input) openConsole() (net.Listener, string, error) {
	if in.listen == "" {
		in.listen = defaultListen
	}
	if path, ok := strings.CutPrefix(in.listen, "unix:"); ok {
		listener, err := net.Listen("unix", path)
		return listener, in.listen, err
	}
	host, _, err := net.SplitHostPort(in.listen)
	if err != nil || !isLoopback(host) {
		return nil, "", misused(fmt.Sprintf("serve: -listen: found %q; expected a loopback address such as %s, or unix:PATH; to others a proxy gives access", in.listen,
			defaultListen))
	}
	listener, err := net.Listen("tcp", in.listen)
	if err != nil {
		return nil, "", err
	}
	return listener, "http://" + listener.Addr().String() + "/", nil
}

// isLoopback reports whether only this machine reaches a host.
func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// sender returns who sent a request that changes something: the name in the header of a proxy, or the user who runs the tool.
func (in *input) sender(r *http.Request) (string, error) {
	if in.actorHeader == "" {
		actor, err := in.actor()
		return actor.By, err
	}
	if name := r.Header.Get(in.actorHeader); name != "" {
		return name, nil
	}
	return "", fmt.Errorf("the header %s is missing: the proxy must set it", in.actorHeader)
}

// onlyHosts refuses requests for other hosts: a page elsewhere may have a name that leads here.
func (in *input) onlyHosts(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		host = strings.Trim(host, "[]")
		if !isLoopback(host) && (in.host == "" || !strings.EqualFold(host, in.host)) {
			http.Error(w, "this host is not served here; start ratelimitctl serve with -host to name another one", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}
