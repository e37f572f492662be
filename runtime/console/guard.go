package console

import (
	"context"
	"net/http"
	"path"
	"strings"
)

// policy lets pages load only what the console itself serves.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// guarded sets the headers of all responses, and refuses POST requests that another origin sent.
func guarded(next http.Handler) http.Handler {
	next = http.NewCrossOriginProtection().Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("Referrer-Policy", "same-origin") // with no-referrer, forms over plain http have no Origin
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		if r.URL.Path == "" { // mounted at /limits, and asked for /limits: relative links need the slash
			mount, _, _ := strings.Cut(r.RequestURI, "?") // what follows may be "/https:elsewhere", which leads there
			h.Set("Location", path.Base(mount)+"/")
			w.WriteHeader(http.StatusMovedPermanently)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		next.ServeHTTP(w, r)
	})
}

const maxForm = 256 << 10 // bytes of a form

// bounded ends the context of a page in time for people who wait for it.
func bounded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), patience)
		defer cancel()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// fromHere passes requests of browsers on: each says where it comes from. http.CrossOriginProtection has checked that this is here.
func fromHere(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Sec-Fetch-Site") == "" && r.Header.Get("Origin") == "" {
			http.Error(w, "a change needs the header Sec-Fetch-Site or Origin, which browsers send", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}
