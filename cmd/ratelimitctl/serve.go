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
func (t *tool) serve(ctx context.Context, _ []string) error {
	var options []console.Option
	switch {
	case t.actorHeader != "" && !t.write:
		return misused("serve: -actor-header goes with -write")
	case t.write:
		options = append(options, console.WithWrites(t.sender))
	}
	if err := t.fleet.Follow(ctx); err != nil {
		return err
	}
	listener, url, err := t.openConsole()
	if err != nil {
		return err
	}
	defer listener.Close()
	server := &http.Server{Handler: t.onlyHosts(console.New(t.limiter, options...)), ReadHeaderTimeout: patience}
	stop := context.AfterFunc(ctx, func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_ = server.Shutdown(ctx)
	})
	defer stop()
	if err := t.print(map[string]string{"url": url}, []string{"the console is at " + url}); err != nil {
		return err
	}
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// openConsole opens the address of -listen, which nobody on another machine reaches, and returns the console's URL.
func (t *tool) openConsole() (net.Listener, string, error) {
	if t.listen == "" {
		t.listen = defaultListen
	}
	if path, ok := strings.CutPrefix(t.listen, "unix:"); ok {
		listener, err := net.Listen("unix", path)
		return listener, t.listen, err
	}
	host, _, err := net.SplitHostPort(t.listen)
	if err != nil || !isLoopback(host) {
		return nil, "", misused(fmt.Sprintf("serve: -listen: found %q; expected a loopback address such as %s, or unix:PATH; to others a proxy gives access", t.listen,
			defaultListen))
	}
	listener, err := net.Listen("tcp", t.listen)
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
func (t *tool) sender(r *http.Request) (string, error) {
	if t.actorHeader == "" {
		actor, err := t.actor()
		return actor.By, err
	}
	if name := r.Header.Get(t.actorHeader); name != "" {
		return name, nil
	}
	return "", fmt.Errorf("the header %s is missing: the proxy must set it", t.actorHeader)
}

// onlyHosts refuses requests for other hosts: a page elsewhere may have a name that leads here.
func (t *tool) onlyHosts(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		host = strings.Trim(host, "[]")
		if !isLoopback(host) && (t.host == "" || !strings.EqualFold(host, t.host)) {
			http.Error(w, "this host is not served here; start ratelimitctl serve with -host to name another one", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}
