package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
)

//go:generate go run github.com/ratelimit-go/ratelimit/cmd/ratelimit

// Request is a question of a user, who belongs to a team of an organisation.
type Request struct {
	Org, Team, User string
	Prompt          string
	MaxOutput       int
}

// InputTokens is an estimate: a token has about four bytes.
func (r *Request) InputTokens() int { return len(r.Prompt)/4 + 1 }

// Model streams answers. All rules of a call are decided in one step.
type Model interface {
	// Ask begins an answer. The caller reads the stream and closes it.
	//
	//ratelimit:rule name=org-input key="{req.Org}" limit=100000 per=1m cost="req.InputTokens()"
	//ratelimit:rule name=org-output key="{req.Org}" limit=20000 per=1m cost="req.MaxOutput"
	//ratelimit:rule name=team-output key="{req.Org}/{req.Team}" limit=11000 per=1m cost="req.MaxOutput"
	//ratelimit:rule name=user-requests key="{req.User}" limit=10 per=1m
	//ratelimit:rule name=user-output key="{req.User}" limit=12000 per=1m cost="req.MaxOutput"
	Ask(ctx context.Context, req *Request) (io.ReadCloser, error)
}

// client is a Model at the far side of HTTP.
type client struct{ url string }

func (c client) Ask(ctx context.Context, req *Request) (io.ReadCloser, error) {
	form := url.Values{"prompt": {req.Prompt}, "max": {strconv.Itoa(req.MaxOutput)}}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+"?"+form.Encode(), nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	return response.Body, nil
}

// usage reads a stream to its end, and returns the usage, which is its last line.
func usage(stream io.ReadCloser) (input, output int64, err error) {
	defer stream.Close()
	last := ""
	lines := bufio.NewScanner(stream)
	for lines.Scan() {
		last = lines.Text()
	}
	if err := lines.Err(); err != nil {
		return 0, 0, err
	}
	if _, err := fmt.Sscanf(last, "usage %d %d", &input, &output); err != nil {
		return 0, 0, fmt.Errorf("the last line is %q; expected the usage: %w", last, err)
	}
	return input, output, nil
}
