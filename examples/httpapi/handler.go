package main

import (
	"encoding/json"
	"errors"
	"log"
	"net/http"
	"strings"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/httplimit"
)

// newHandler serves library and export. Both are limited already, so the handlers know nothing of limits.
func newHandler(library Library, export http.Handler, users map[string]string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /hours", func(w http.ResponseWriter, r *http.Request) {
		writeJSON(w, map[string]string{"hours": library.Hours()})
	})
	mux.Handle("GET /export", export)
	mux.HandleFunc("GET /books", func(w http.ResponseWriter, r *http.Request) {
		books, err := library.Search(r.Context(), r.FormValue("title"))
		if err != nil {
			writeError(w, r, err)
			return
		}
		writeJSON(w, books)
	})
	mux.HandleFunc("POST /reservations", func(w http.ResponseWriter, r *http.Request) {
		if err := library.Reserve(r.Context(), r.FormValue("isbn")); err != nil {
			writeError(w, r, err)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
	return httplimit.ClientIP().Handler(withUser(users, httplimit.Report(mux)))
}

func writeJSON(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body) // fails only if the client is gone
}

// writeError answers a failed request. If a key needs the user and there is none, the client has to log in.
func writeError(w http.ResponseWriter, r *http.Request, err error) {
	if key, ok := errors.AsType[*ratelimit.KeyError](err); ok && strings.Contains(key.Expr, "userID") {
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "log in first", http.StatusUnauthorized)
		return
	}
	if errors.Is(err, errUnknownBook) {
		http.Error(w, "there is no such book", http.StatusNotFound)
		return
	}
	if !errors.Is(err, ratelimit.ErrTooManyRequests) {
		log.Printf("%s %s: %v", r.Method, r.URL.Path, err)
	}
	httplimit.Answer(w, r, err)
}
