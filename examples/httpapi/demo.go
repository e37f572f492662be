package main

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
)

// demo makes requests to a server and prints the responses.
func demo(out io.Writer, url string) error {
	const search, reserve = "/books?title=go", "/reservations?isbn=9780134190440"
	for _, part := range []struct {
		title, method, path string
		users               []string
	}{
		{"Five searches at once, and then one a second.", "GET", search, []string{"ann", "ann", "ann", "ann", "ann", "ann", "bob"}},
		{"A title may be reserved twice a day.", "POST", reserve, []string{"bob", "ann", "bob"}},
		{"A handler of its own: two exports an hour.", "GET", "/export", []string{"", "", ""}},
		{"Who has not logged in.", "GET", search, []string{""}},
	} {
		fmt.Fprintln(out, part.title)
		for _, user := range part.users {
			if err := send(out, part.method, url, part.path, user); err != nil {
				return err
			}
		}
	}
	return nil
}

// send sends a request and prints the response: the headers about limits, and the reason of a refusal.
func send(out io.Writer, method, url, path, user string) error {
	request, err := http.NewRequest(method, url+path, http.NoBody)
	if err != nil {
		return err
	}
	if user != "" {
		request.Header.Set("Authorization", "Bearer "+user)
	}
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	fmt.Fprintf(out, "  %-4s %s as %s: %s\n", method, path, cmp.Or(user, "nobody"), reply.Status)
	for _, name := range []string{"RateLimit", "Retry-After"} {
		if value := reply.Header.Get(name); value != "" {
			fmt.Fprintf(out, "       %s: %s\n", name, value)
		}
	}
	if reply.StatusCode < 400 {
		return nil
	}
	body, err := io.ReadAll(reply.Body)
	fmt.Fprintf(out, "       %s\n", body)
	return err
}
