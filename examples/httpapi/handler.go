package main

import (
	"encoding/json"
	"net/http"
)

// newHandler serves library, which is the limited one: handlers need not know of limits.
func newHandler(library Library, users map[string]string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /hours", func(w http.ResponseWriter, r *http.Request) {
		writeJSON(w, map[string]string{"hours": library.Hours()})
	})
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
	return withClientIP(withUser(users, mux))
}

func writeJSON(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body) // fails only if the client has gone
}
