package ginlimit

import (
	"bufio"
	"io"
	"net"
	"net/http"

	"github.com/gin-gonic/gin"
)

// outerWriter is what a middleware writes to. In net/http a status is written at once, and in gin with the first byte.
type outerWriter struct {
	gin.ResponseWriter
	later bool // keep the status, so that handlers outside may replace it
}

func (w *outerWriter) WriteHeader(status int) {
	if status < http.StatusOK && status != http.StatusSwitchingProtocols { // does not end the header; gin would take it for the last one
		if inner, ok := w.ResponseWriter.(interface{ Unwrap() http.ResponseWriter }); ok {
			inner.Unwrap().WriteHeader(status)
		}
		return
	}
	w.ResponseWriter.WriteHeader(status)
	if !w.later {
		w.WriteHeaderNow()
	}
}

// Unwrap is for http.ResponseController.
func (w *outerWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// innerWriter is what the handlers inside a middleware write to: the writer that the middleware gives to its next, with what gin needs. Status and
// size are what these handlers have written, whatever the middleware makes of it.
type innerWriter struct {
	gin.ResponseWriter                     // the one outside, for CloseNotify and Pusher
	next               http.ResponseWriter // what the middleware gives
	outer              *outerWriter
	status             int
	size               int // of the body; -1 before the status is written
}

func newInnerWriter(next http.ResponseWriter, outer *outerWriter) *innerWriter {
	return &innerWriter{outer.ResponseWriter, next, outer, outer.Status(), outer.Size()}
}

func (w *innerWriter) Header() http.Header { return w.next.Header() }

func (w *innerWriter) Status() int { return w.status }

func (w *innerWriter) Size() int { return w.size }

func (w *innerWriter) Written() bool { return w.size >= 0 }

func (w *innerWriter) WriteHeader(status int) {
	if status > 0 && !w.Written() { // gin passes -1 for the status that it has
		w.status = status
	}
}

func (w *innerWriter) WriteHeaderNow() {
	if !w.Written() {
		w.size = 0
		w.next.WriteHeader(w.status)
	}
}

func (w *innerWriter) Write(b []byte) (int, error) {
	w.WriteHeaderNow()
	n, err := w.next.Write(b)
	w.size += n
	return n, err
}

func (w *innerWriter) WriteString(s string) (int, error) {
	w.WriteHeaderNow()
	n, err := io.WriteString(w.next, s)
	w.size += n
	return n, err
}

func (w *innerWriter) Flush() {
	w.WriteHeaderNow()
	_ = http.NewResponseController(w.next).Flush()
}

func (w *innerWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	w.size = max(w.size, 0)
	return http.NewResponseController(w.next).Hijack()
}

// Unwrap is for http.ResponseController, and for package httplimit.
func (w *innerWriter) Unwrap() http.ResponseWriter { return w.next }

// end tells the middleware of a status without a body. Gin writes it when all handlers have ended, and those outside may still write another.
func (w *innerWriter) end() {
	if w.Written() || w.status == http.StatusOK && w.outer.Status() == http.StatusOK {
		return
	}
	w.outer.later = true
	w.next.WriteHeader(w.status)
	w.outer.later = false
}
