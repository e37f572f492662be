// Package httprequest hands a request on with another context, and back.
package httprequest

import "net/http"

// Return sets all fields of outer to those of inner, a copy of outer with another context, after the handler of inner has ended. Only the
// context stays. So code outside of the handler finds what the handler has set, as if there were no copy: the Pattern and the path values of
// its router, and the parsed form, whose files the server removes in the end.
func Return(outer, inner *http.Request) {
	if outer != inner { // else a goroutine of the handler may still read it
		*outer = *inner.WithContext(outer.Context())
	}
}
