// Package console shows operators in a browser what a fleet of processes limits now, which limits are in force, what one subject has used, and
// who changed what.
//
// [New] returns an http.Handler for an admin mux, behind a login of your own:
//
//	mux.Handle("/limits/", http.StripPrefix("/limits", console.New(limiter)))
//
// The console only reads, unless [WithWrites] says who writes. It works without script and without cookies, and loads nothing from elsewhere.
// The command "ratelimitctl serve" shows the same pages without a program.
//
// The package knows nothing of its own: it shows what package internal/operate says. It is not for authentication, and not
// for monitoring: metrics and alerts are in contrib/promlimit.
package console
