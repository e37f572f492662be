// Package twilio implements sms.Sender without importing it.
package twilio

import (
	"context"
	"io"
	"net/http"
	"time"
)

// Client has fields that are funcs and interfaces, but none of them can hold the wrapper.
type Client struct {
	http  *http.Client
	conn  io.Closer
	now   func() time.Time
	sign  func(phone string) (string, error)
	debug bool
}

func New(token string) *Client { return &Client{} }

func Open(token string) (*Client, error) { return &Client{}, nil }

func (c *Client) SendCode(ctx context.Context, phone string) error { return nil }
func (c *Client) Close() error                                     { return c.conn.Close() }
