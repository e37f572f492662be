package redistest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// Do sends one command, words separated by spaces ("CONFIG SET maxmemory 1mb"), and returns the reply as text.
// The elements of an array are separated by newlines.
func (s *Server) Do(command string) string {
	s.t.Helper()
	reply, err := ask(s.Addr, command)
	if err != nil {
		s.t.Fatalf("%s: %v", command, err)
	}
	return reply
}

// ask sends a command on a new connection, in the inline form of the protocol, which needs no encoding.
func ask(addr, command string) (string, error) {
	conn, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(conn, command+"\r\n"); err != nil {
		return "", err
	}
	return readReply(bufio.NewReader(conn))
}

func readReply(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	kind, rest := line[0], strings.TrimRight(line[1:], "\r\n")
	switch kind {
	case '+', ':':
		return rest, nil
	case '-':
		return "", errors.New(rest)
	}
	n, err := strconv.Atoi(rest)
	if err != nil || kind != '$' && kind != '*' {
		return "", fmt.Errorf("unexpected reply %q", line)
	}
	if kind == '*' {
		return readArray(r, n)
	}
	return readBulk(r, n)
}

func readBulk(r *bufio.Reader, n int) (string, error) {
	if n < 0 {
		return "", nil
	}
	text := make([]byte, n+len("\r\n"))
	if _, err := io.ReadFull(r, text); err != nil {
		return "", err
	}
	return string(text[:n]), nil
}

func readArray(r *bufio.Reader, n int) (string, error) {
	var elements []string
	for range n {
		e, err := readReply(r)
		if err != nil {
			return "", err
		}
		elements = append(elements, e)
	}
	return strings.Join(elements, "\n"), nil
}
