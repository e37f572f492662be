package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// The requests and the streams of the chat API.
type (
	chat struct {
		User      string    `json:"user"`
		Messages  []message `json:"messages"`
		MaxTokens int       `json:"max_tokens"`
		Stream    bool      `json:"stream"`
		Options   options   `json:"stream_options"`
	}
	message struct {
		Role    string `json:"role,omitempty"`
		Content string `json:"content"`
	}
	options struct {
		IncludeUsage bool `json:"include_usage"`
	}
	chunk struct {
		Choices []choice `json:"choices"`
		Usage   *Usage   `json:"usage,omitempty"` // in the last chunk
	}
	choice struct {
		Delta message `json:"delta"`
	}
)

// Usage is what an answer has cost.
type Usage struct {
	Input  int64 `json:"prompt_tokens"`
	Output int64 `json:"completion_tokens"`
}

// client is a Model at the far side of HTTP.
type client struct{ url string }

func (c client) Ask(ctx context.Context, req *Request) (*Answer, error) {
	body, err := json.Marshal(chat{req.User, []message{{"user", req.Prompt}}, req.MaxOutput, true, options{true}})
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		response.Body.Close()
		return nil, fmt.Errorf("the model answers %s", response.Status)
	}
	return &Answer{ReadCloser: response.Body, lines: bufio.NewScanner(response.Body)}, nil
}

// Answer is a stream of words.
type Answer struct {
	io.ReadCloser
	Usage Usage // known when Next has returned io.EOF
	lines *bufio.Scanner
}

// Next returns the next words. After the last ones it closes the stream and returns io.EOF.
func (a *Answer) Next() (words string, err error) {
	for a.lines.Scan() {
		data, ok := strings.CutPrefix(a.lines.Text(), "data: ")
		if !ok {
			continue
		}
		if data == "[DONE]" {
			a.Close()
			return "", io.EOF
		}
		var c chunk
		if err := json.Unmarshal([]byte(data), &c); err != nil {
			return "", err
		}
		if c.Usage != nil {
			a.Usage = *c.Usage
		}
		for _, choice := range c.Choices {
			words += choice.Delta.Content
		}
		return words, nil
	}
	if err := a.lines.Err(); err != nil {
		return "", err
	}
	return "", io.ErrUnexpectedEOF
}
