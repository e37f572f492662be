package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/internal/redisinfo"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
)

// How long the tool waits for the first reply, and for each other one if that did not come.
const (
	patience      = 3 * time.Second
	shortPatience = time.Second
)

// minSecret is the least number of bytes in RATELIMIT_SECRET, as in ratelimit.WithSubjectHash.
const minSecret = 32

// connect connects to the server, to its cluster, or to the master that Sentinels know.
func (t *tool) connect(ctx context.Context) (err error) {
	t.url = cmp.Or(t.url, t.env("RATELIMIT_REDIS"), "redis://127.0.0.1:6379")
	t.prefix = cmp.Or(t.prefix, t.env("RATELIMIT_PREFIX"), ratelimit.DefaultPrefix)
	t.patience = patience
	if t.client, err = t.open(ctx); err != nil {
		return err
	}
	options := []ratelimit.Option{
		ratelimit.WithPrefix(t.prefix),
		ratelimit.WithLogger(slog.New(slog.DiscardHandler)), // the errors say the same
	}
	if secret := t.env("RATELIMIT_SECRET"); len(secret) >= minSecret {
		options = append(options, ratelimit.WithSubjectHash([]byte(secret)))
	} else if secret != "" {
		return misused(fmt.Sprintf("RATELIMIT_SECRET has %d bytes; expected at least %d", len(secret), minSecret))
	}
	if t.shown {
		options = append(options, ratelimit.WithShownKeys())
	}
	hidden := func() (ratelimit.Store, *ratelimit.Limiter) {
		store := redisstore.New(t.client, redisstore.WithTimeout(t.patience), redisstore.WithoutFunctions())
		store.Fleet(key.Escape(t.prefix)).Hide()
		return store, ratelimit.New(store, options...)
	}
	store, limiter := hidden()
	t.store, t.limiter, t.fleet = store, limiter, store.Fleet(key.Escape(t.prefix))
	_, t.counts = hidden()
	var listed []ratelimit.Rule
	for _, r := range t.listed {
		listed = append(listed, r.Rule)
	}
	return t.limiter.Check(listed...) // so that Ping checks the permissions that they need
}

// open returns a client for the URL.
func (t *tool) open(ctx context.Context) (redis.UniversalClient, error) {
	config, err := t.tlsConfig()
	if err != nil {
		return nil, err
	}
	if strings.Contains(t.url, "master_name=") {
		to, err := redis.ParseFailoverURL(t.url)
		if err != nil || strings.Contains(t.url, "#") {
			return nil, errURL
		}
		if to.TLSConfig, err = merged(to.TLSConfig, config); err != nil {
			return nil, err
		}
		to.MaxRetries, to.DialerRetries, to.ContextTimeoutEnabled = -1, 1, true
		return redis.NewFailoverClient(to), nil
	}
	to, err := redis.ParseURL(t.url)
	if err != nil || strings.Contains(t.url, "#") {
		return nil, errURL
	}
	if to.TLSConfig, err = merged(to.TLSConfig, config); err != nil {
		return nil, err
	}
	to.MaxRetries, to.DialerRetries, to.ContextTimeoutEnabled = -1, 1, true
	single := redis.NewClient(to)
	first, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err = single.Do(first, "cluster", "slots").Err() // a limiter's user is permitted to run this on a cluster
	if _, replied := errors.AsType[redis.Error](err); replied {
		return single, nil
	}
	_ = single.Close()
	if err != nil {
		t.patience = shortPatience
		to.DialTimeout, to.ReadTimeout, to.WriteTimeout = shortPatience, shortPatience, shortPatience
		return redis.NewClient(to), nil
	}
	return redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: []string{to.Addr}, DialerRetries: 1, Username: to.Username, Password: to.Password, TLSConfig: to.TLSConfig,
		ContextTimeoutEnabled: true,
	}), nil
}

// errURL does not say what is wrong, because any part of the URL may be a part of a password.
var errURL = misused("the URL of -redis or RATELIMIT_REDIS cannot be read: expected one such as redis://user:password@host:6379/0; " +
	"in a password, write %23 for #, %2F for /, %3F for ?, %40 for @ and %25 for %")

// tlsConfig returns what the flags say about TLS, or nil.
func (t *tool) tlsConfig() (*tls.Config, error) {
	if t.tlsCA == "" && t.tlsCert == "" && t.tlsKey == "" {
		return nil, nil
	}
	config := new(tls.Config)
	if t.tlsCA != "" {
		text, err := os.ReadFile(t.tlsCA)
		config.RootCAs = x509.NewCertPool()
		if err != nil || !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, misused(fmt.Sprintf("-tls-ca: %s: %v", t.tlsCA, cmp.Or(cause(err), errors.New("expected certificates in PEM form"))))
		}
	}
	if t.tlsCert != "" || t.tlsKey != "" {
		pair, err := tls.LoadX509KeyPair(t.tlsCert, t.tlsKey)
		if err != nil {
			return nil, misused(fmt.Sprintf("-tls-cert %s and -tls-key %s: %v", t.tlsCert, t.tlsKey, cause(err)))
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// merged returns what a URL and the flags say about TLS. That of a URL is nil unless its scheme is rediss.
func merged(url, flags *tls.Config) (*tls.Config, error) {
	switch {
	case flags == nil:
		return url, nil
	case url == nil:
		return nil, misused("-tls-ca, -tls-cert and -tls-key need a URL that begins with rediss")
	}
	url.RootCAs, url.Certificates = flags.RootCAs, flags.Certificates
	return url, nil
}

// cause returns an error of a file without the file's name.
func cause(err error) error {
	if wrong, ok := errors.AsType[*fs.PathError](err); ok {
		return wrong.Err
	}
	return err
}

// sentinel returns the error of a server that is a Sentinel, or nil. It also reports whether the server answers this user.
func (t *tool) sentinel(ctx context.Context) (wrong error, answers bool) {
	text, err := t.client.Info(ctx).Result()
	info := redisinfo.Fields(text)
	if err != nil || info["redis_mode"] != "sentinel" {
		return nil, err == nil || isDenied(err)
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(info["master0"], "name="), ",")
	return fmt.Errorf("the server is a Sentinel, which keeps no counts: add ?master_name=%s to the URL", cmp.Or(name, "NAME")), true
}
