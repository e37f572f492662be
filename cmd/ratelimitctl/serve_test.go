package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/redisinfo"
	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// startConsole runs "ratelimitctl serve" until the test ends, and returns what it prints.
func startConsole(t *testing.T, addr string, args ...string) string {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	in, out := io.Pipe()
	ended := make(chan int)
	go func() {
		ended <- run(ctx, append([]string{"serve"}, args...), env("redis://"+addr), strings.NewReader(""), out, out)
		_ = out.Close()
	}()
	line, err := bufio.NewReader(in).ReadString('\n')
	go func() { _, _ = io.Copy(io.Discard, in) }()
	t.Cleanup(func() {
		stop()
		if status := <-ended; status != done {
			t.Errorf("the tool ended with status %d", status)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// fetch sends a request with headers such as "Host: a".
func fetch(t *testing.T, client *http.Client, method, url, body string, headers ...string) (int, string) {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
		if name == "Host" {
			r.Host = value
		}
	}
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

var formFields = url.Values{"do": {"block"}, "page": {"subject"}, "key": {"ann"}, "rule": {"login 1h {user}"}, "for": {"1h"}, "reason": {"abuse"}}

// The page shows the rules of the prefix to this machine alone, and changes nothing without -write.
func TestServe(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	newFleet(t, server.Addr).known(map[string]string{"login": ruleText(login)})
	at, ok := strings.CutPrefix(startConsole(t, server.Addr, "-listen", "127.0.0.1:0", "-host", "limits.example"), "the console is at ")
	if !ok {
		t.Fatalf("the tool printed %q", at)
	}
	for host, want := range map[string]int{
		"localhost": 200, "localhost:8089": 200, "127.0.0.1:1": 200, "[::1]:8089": 200, "limits.example": 200, "LIMITS.example:443": 200,
		"evil.example": 421, "localhost.evil.example": 421, "192.168.1.7": 421,
	} {
		if code, page := fetch(t, http.DefaultClient, "GET", at+"rules", "", "Host: "+host); code != want || want == 200 && !strings.Contains(page, "login") {
			t.Errorf("host %s: %d, want %d", host, code, want)
		}
	}
	if code, _ := fetch(t, http.DefaultClient, "POST", at+"change", formFields.Encode(), "Sec-Fetch-Site: same-origin", "Content-Type: application/x-www-form-urlencoded"); code != 404 {
		t.Errorf("a change without -write: %d", code)
	}
}

// It reads all settings before it listens, so that the first pages take at most 20 commands.
func TestServeReadsSettingsFirst(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	f := newFleet(t, server.Addr)
	f.known(map[string]string{"login": ruleText(login)})
	var requests []ratelimit.Request
	for i := range 1500 { // reading them takes 30 commands
		requests = append(requests, ratelimit.Request{Rule: login, Key: fmt.Sprint("key", i)})
	}
	if err := f.Block(ratelimit.WithActor(t.Context(), "ada", "r"), time.Hour, requests...); err != nil {
		t.Fatal(err)
	}
	at := strings.TrimPrefix(startConsole(t, server.Addr, "-listen", "127.0.0.1:0"), "the console is at ")
	sent := func() (n int64) {
		fields := redisinfo.Fields(f.client.Info(t.Context(), "commandstats").Val())
		for name, field := range fields {
			if !strings.HasPrefix(name, "cmdstat_client") && name != "cmdstat_hello" && name != "cmdstat_info" {
				n += redisinfo.Number(redisinfo.List(field), "calls")
			}
		}
		return n
	}
	for _, path := range []string{"", "rules", "rule?name=login", "live", "changes"} {
		before, most := sent(), int64(20)
		if path == "" {
			most = 200 // it asks the server about itself, and what its user may run
		}
		if code, _ := fetch(t, http.DefaultClient, "GET", at+path, ""); code != 200 || sent()-before > most {
			t.Errorf("%s: %d, %d commands", path, code, sent()-before)
		}
	}
}

// With -write, changes are listed under the name in the proxy's header, or under that of the user who runs the tool.
func TestServeWrites(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	newFleet(t, server.Addr).known(map[string]string{"login": ruleText(login)})
	socket := filepath.Join(t.TempDir(), "s")
	startConsole(t, server.Addr, "-listen", "unix:"+socket, "-write", "-actor-header", "X-User")
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
	defer client.CloseIdleConnections()
	change := func(headers ...string) (int, string) {
		return fetch(t, client, "POST", "http://localhost/change", formFields.Encode(), append(headers, "Sec-Fetch-Site: same-origin", "Content-Type: application/x-www-form-urlencoded")...)
	}
	if code, text := change(); code != 403 || !strings.Contains(text, "X-User is missing") {
		t.Errorf("without the header: %d %s", code, text)
	}
	if code, text := change("X-User: ada"); code != 200 || !strings.Contains(text, "blocked by ada, abuse") {
		t.Errorf("with the header: %d %s", code, text)
	}
}

// A form that is in flight when the tool is interrupted is answered before the tool ends.
func TestServeEndsAfterAForm(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	newFleet(t, server.Addr).known(map[string]string{"login": ruleText(login)})
	ctx, stop := context.WithCancel(t.Context())
	in, out := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"serve", "-write", "-listen", "127.0.0.1:0"}, env("redis://"+server.Addr), strings.NewReader(""), out, out)
	}()
	line, err := bufio.NewReader(in).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	at := strings.TrimPrefix(strings.TrimSpace(line), "the console is at ")
	body, rest := io.Pipe() // of the form, which comes slowly
	r, err := http.NewRequest("POST", at+"change", body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	status := make(chan int, 1)
	go func() {
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			status <- 0 // it was cut off
			return
		}
		_ = response.Body.Close()
		status <- response.StatusCode
	}()
	form := formFields.Encode()
	_, _ = io.WriteString(rest, form[:10]) // the transport has it, so the connection is there
	time.Sleep(200 * time.Millisecond)
	stop()
	select {
	case <-ended:
		_ = rest.Close()
		t.Fatal("the tool ended while a form was in flight")
	case <-time.After(200 * time.Millisecond):
	}
	_, _ = io.WriteString(rest, form[10:])
	_ = rest.Close()
	if got := <-status; got != http.StatusOK {
		t.Errorf("the form was answered with %d", got)
	}
	if got := <-ended; got != done {
		t.Errorf("the tool ended with status %d", got)
	}
}

// An address that others reach is refused.
func TestServeElsewhere(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for _, listen := range []string{":8089", "0.0.0.0:8089", "192.168.1.7:80", "example.com:80", "8089"} {
		text, status := ctlWith(t, env("redis://"+server.Addr), "", "serve", "-listen", listen)
		if status != misuse || !strings.Contains(text, "expected a loopback address") {
			t.Errorf("%s: status %d, %s", listen, status, text)
		}
	}
	if text, status := ctlWith(t, env("redis://"+server.Addr), "", "serve", "-actor-header", "X"); status != misuse || !strings.Contains(text, "goes with -write") {
		t.Errorf("status %d, %s", status, text)
	}
}

// A console of a mistyped prefix says so when it starts. Its programs may also start later.
func TestConsoleOfAMistypedPrefix(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	newFleet(t, server.Addr).known(map[string]string{"login": ruleText(login)})
	const want = `no program uses prefix "nope"; on this server there is ratelimit: see -prefix`
	if line := startConsole(t, server.Addr, "-prefix", "nope", "-listen", "127.0.0.1:0"); line != want {
		t.Errorf("got %s, want %s", line, want)
	}
	if line := startConsole(t, server.Addr, "-listen", "127.0.0.1:0"); !strings.HasPrefix(line, "the console is at ") {
		t.Errorf("got %s", line)
	}
}
