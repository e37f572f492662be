package httplimit_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/httplimit"
)

// wrappers returns everything that hands another request to the handler that it wraps.
func wrappers() map[string]func(http.Handler) http.Handler {
	now, clients := start, httplimit.ClientIP()
	limit := httplimit.Middleware(newLimiter(&now), clients.Of, []ratelimit.Rule{{Name: "calls", Limit: 1000, Per: time.Minute}})
	report := func(next http.Handler) http.Handler { return httplimit.Report(next) }
	return map[string]func(http.Handler) http.Handler{
		"Middleware": limit, "Report": report, "ClientIP": clients.Handler,
		"nested": func(next http.Handler) http.Handler { return clients.Handler(report(limit(clients.Handler(next)))) },
	}
}

type outerKey struct{}

// What a router writes into its request is in the request of the handlers around the limits, as it is without limits. Their context stays.
func TestRequestOfARouter(t *testing.T) {
	router := http.NewServeMux()
	router.HandleFunc("GET /users/{id}/{rest...}", func(w http.ResponseWriter, r *http.Request) {
		r.SetPathValue("tenant", "acme")
		if r.PathValue("id") == "panics" {
			panic(http.ErrAbortHandler)
		}
	})
	for name, wrapped := range wrappers() {
		for _, test := range []struct{ method, path, pattern, id, rest, tenant string }{
			{"GET", "/users/7/a/b", "GET /users/{id}/{rest...}", "7", "a/b", "acme"},
			{"GET", "/users/panics/a", "GET /users/{id}/{rest...}", "panics", "a", "acme"},
			{"POST", "/users/7/a", "", "", "", ""}, // 405
			{"GET", "/nothing", "", "", "", ""},    // 404
		} {
			r := httptest.NewRequest(test.method, test.path, nil)
			r = r.WithContext(context.WithValue(r.Context(), outerKey{}, name))
			r.Pattern = "an outer router's"
			ctx := r.Context()
			panics(func() { wrapped(router).ServeHTTP(httptest.NewRecorder(), r) })
			if r.Pattern != test.pattern || r.PathValue("id") != test.id || r.PathValue("rest") != test.rest || r.PathValue("tenant") != test.tenant {
				t.Errorf("%s, %s %s: got %q, %q, %q", name, test.method, test.path, r.Pattern, r.PathValue("id"), r.PathValue("rest"))
			}
			if r.Context() != ctx {
				t.Errorf("%s, %s %s: the context of the outer request has changed", name, test.method, test.path)
			}
		}
	}
}

// A per-route wrapper inside a router leaves what the router found.
func TestRequestInsideARouter(t *testing.T) {
	for name, wrapped := range wrappers() {
		router := http.NewServeMux()
		router.Handle("/users/{id}", wrapped(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, r.Pattern, " ", r.PathValue("id"))
		})))
		r, w := httptest.NewRequest("GET", "/users/7", nil), httptest.NewRecorder()
		router.ServeHTTP(w, r)
		if got := w.Body.String(); got != "/users/{id} 7" || r.Pattern != "/users/{id}" || r.PathValue("id") != "7" {
			t.Errorf("%s: got %q inside, %q %q outside", name, got, r.Pattern, r.PathValue("id"))
		}
	}
}

// The files of a parsed form are removed by the server, which looks for them in the request that it made.
func TestFilesOfAFormAreRemoved(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("TMPDIR", folder)
	files := func() []string {
		found, _ := filepath.Glob(filepath.Join(folder, "*"))
		return found
	}
	for name, wrapped := range wrappers() {
		server := httptest.NewServer(wrapped(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := r.ParseMultipartForm(1); err != nil || len(files()) == 0 {
				t.Errorf("%s: no file: %v", name, err)
			}
		})))
		body := new(bytes.Buffer)
		form := multipart.NewWriter(body)
		part, _ := form.CreateFormFile("file", "x")
		_, _ = part.Write([]byte("contents"))
		form.Close()
		response, err := http.Post(server.URL, form.FormDataContentType(), body)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		server.Close() // waits for the end of the request
		if left := files(); len(left) > 0 {
			t.Errorf("%s: %q are left", name, left)
		}
	}
}

// A handler that answers panics, outside of a Report, answers with its fields.
func TestFieldsOfARecoveredPanic(t *testing.T) {
	now := start
	limit := httplimit.Middleware(newLimiter(&now), nil, []ratelimit.Rule{{Name: "calls", Limit: 2, Per: time.Minute}})
	inner := limit(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("x") }))
	w := get(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if panics(func() { inner.ServeHTTP(w, r) }) {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}), "203.0.113.9:80")
	want(t, w, 500, map[string]string{"RateLimit-Policy": `"calls";q=2;w=60`, "RateLimit": `"calls";r=1;t=60`})
}

// A connection that is taken over, and a handler that streams while others read its request, race with nobody.
func TestRequestOfALongHandler(t *testing.T) {
	for name, wrapped := range wrappers() {
		read := make(chan string)
		router := http.NewServeMux()
		router.HandleFunc("GET /take/{id}", func(w http.ResponseWriter, r *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			go func() { // goes on when the handler has ended
				fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", r.PathValue("id"), r.Pattern)
				conn.Close()
			}()
		})
		router.HandleFunc("GET /stream/{id}", func(w http.ResponseWriter, r *http.Request) {
			for range 3 {
				fmt.Fprint(w, r.PathValue("id"))
				_ = http.NewResponseController(w).Flush()
			}
		})
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			wrapped(router).ServeHTTP(w, r)
			read <- r.Pattern
		}))
		for path, want := range map[string][2]string{"/take/7": {"7GET /take/{id}", "GET /take/{id}"}, "/stream/7": {"777", "GET /stream/{id}"}} {
			response, err := http.Get(server.URL + path)
			if err != nil {
				t.Fatal(err)
			}
			pattern := <-read
			body, _ := io.ReadAll(response.Body)
			response.Body.Close()
			if string(body) != want[0] || pattern != want[1] {
				t.Errorf("%s %s: got %s, %s", name, path, body, pattern)
			}
		}
		server.Close()
	}
}

// Old code that looks for an http.CloseNotifier finds one, however the writer is wrapped.
func TestCloseNotify(t *testing.T) {
	type closeNotifier interface{ CloseNotify() <-chan bool }
	begun, gone := make(chan bool), make(chan bool)
	server := httptest.NewServer(wrappers()["nested"](http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		closed := w.(closeNotifier).CloseNotify()
		begun <- true
		gone <- <-closed
	})))
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	<-begun
	conn.Close()
	if !<-gone {
		t.Error("got false")
	}
	get(httplimit.Report(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if w.(closeNotifier).CloseNotify() != nil {
			t.Error("a recorder has no such channel")
		}
	})), "203.0.113.9:80")
}

// Behind a proxy on a Unix socket, the client is the address that the proxy adds.
func TestUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	plain, socket := httplimit.ClientIP(), httplimit.ClientIP(netip.MustParsePrefix("10.0.0.0/8")).Socket()
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%q ", r.RemoteAddr)
		for _, c := range []httplimit.Clients{plain, socket, plain.Hops(2)} {
			if got, err := c.Of(r); err != nil {
				fmt.Fprintf(w, "(%v) ", err)
			} else {
				fmt.Fprint(w, got, " ")
			}
		}
	})}}
	server.Start()
	defer server.Close()
	for _, from := range []string{"", path + "-client", "@an-abstract-name-of-a-test"} { // what the proxy's end of the socket is called
		const noSocket = "(the other end of the connection has no IP address. If it is your proxy on a Unix socket, trust it by httplimit.ClientIP().Socket())"
		for header, want := range map[string]string{
			"": noSocket + " (the header X-Forwarded-For has no address of the client; let the proxy set it) " +
				"(the header X-Forwarded-For has 0 addresses; expected 2, the number of hops) ",
			"192.0.2.66, 203.0.113.9, 10.0.0.1": noSocket + " 203.0.113.9 203.0.113.9 ",
		} {
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				dialer := new(net.Dialer)
				if from != "" {
					dialer.LocalAddr = &net.UnixAddr{Name: fmt.Sprint(from, len(header)), Net: "unix"}
				}
				return dialer.DialContext(ctx, "unix", path)
			}}}
			request, _ := http.NewRequestWithContext(t.Context(), "GET", "http://socket/", nil)
			if header != "" {
				request.Header.Set("X-Forwarded-For", header)
			}
			response, err := client.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(response.Body)
			response.Body.Close()
			remote, got, _ := strings.Cut(string(body), " ")
			if got != want {
				t.Errorf("from %s: got %s; expected %s", remote, got, want)
			}
		}
	}
}
