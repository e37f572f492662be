package main

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/ratelimit-go/ratelimit/runtime/httplimit"
)

// newHandler serves the shop over HTTP.
func newHandler(s Shop, u users, clients httplimit.Clients) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /products", func(w http.ResponseWriter, r *http.Request) {
		products, err := s.Search(r.Context(), r.FormValue("text"))
		answer(w, r, products, err)
	})
	mux.HandleFunc("POST /orders", u.require(func(w http.ResponseWriter, r *http.Request) {
		cents, err := s.Order(r.Context(), r.FormValue("product"))
		answer(w, r, map[string]int64{"cents": cents}, err)
	}))
	return clients.Handler(httplimit.Report(mux))
}

// answer writes the result or the error of a call.
func answer(w http.ResponseWriter, r *http.Request, result any, err error) {
	switch {
	case err == nil:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(result) // fails only if the client is gone
	case errors.Is(err, errUnknownProduct):
		http.Error(w, err.Error(), http.StatusNotFound)
	case errors.Is(err, errBusy):
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	case !httplimit.Error(w, r, err):
		http.Error(w, "internal error", http.StatusInternalServerError)
	}
}
