// Package provider knows nothing of Sender.
package provider

import "context"

type Client struct{}

func New() *Client { return &Client{} }

func (*Client) SendCode(ctx context.Context, phone string) error { return nil }
func (*Client) Close() error                                     { return nil }

func (c *Client) Ping(ctx context.Context) error { return c.SendCode(ctx, "0") }
func check(ctx context.Context) error            { return New().SendCode(ctx, "0") }
