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
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/internal/operate"
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
func (s *session) connect(ctx context.Context) (err error) {
	s.url = cmp.Or(s.url, s.env("RATELIMIT_REDIS"), "redis://127.0.0.1:6379")
	s.options.prefix = cmp.Or(s.options.prefix, s.env("RATELIMIT_PREFIX"), ratelimit.DefaultPrefix)
	var waits time.Duration
	if s.client, waits, err = s.open(ctx); err != nil {
		return err
	}
	options := []ratelimit.Option{
		ratelimit.WithPrefix(s.options.prefix),
		ratelimit.WithLogger(slog.New(slog.DiscardHandler)), // the errors say the same
	}
	if secret := s.env("RATELIMIT_SECRET"); len(secret) >= minSecret {
		options = append(options, ratelimit.WithSubjectHash([]byte(secret)))
	} else if secret != "" {
		return misused(fmt.Sprintf("RATELIMIT_SECRET has %d bytes; expected at least %d", len(secret), minSecret))
	}
	if s.shown {
		options = append(options, ratelimit.WithShownKeys())
	}
	store := redisstore.New(s.client, redisstore.WithTimeout(waits), redisstore.WithoutFunctions())
	store.Fleet(key.Escape(s.options.prefix)).Hide()
	limiter := ratelimit.New(store, options...)
	s.store, s.limiter, s.prefix = store, limiter, operate.New(limiter, 2*waits, s.listed...) // the store says more about what does not answer
	var listed []ratelimit.Rule
	for _, r := range s.listed {
		listed = append(listed, r.Rule)
	}
	return limiter.Check(listed...) // so that Ping checks the permissions that they need
}

// open returns a client for the URL, and how long to wait for a reply.
func (in *input) open(ctx context.Context) (redis.UniversalClient, time.Duration, error) {
	config, err := in.tlsConfig()
	if err != nil {
		return nil, 0, err
	}
	if strings.Contains(in.url, "master_name=") {
		to, err := redis.ParseFailoverURL(in.url)
		if err != nil || strings.Contains(in.url, "#") {
			return nil, 0, errURL
		}
		if to.TLSConfig, err = merged(to.TLSConfig, config); err != nil {
			return nil, 0, err
		}
		to.MaxRetries, to.DialerRetries, to.ContextTimeoutEnabled = -1, 1, true
		return redis.NewFailoverClient(to), patience, nil
	}
	to, err := redis.ParseURL(in.url)
	if err != nil || strings.Contains(in.url, "#") {
		return nil, 0, errURL
	}
	if to.TLSConfig, err = merged(to.TLSConfig, config); err != nil {
		return nil, 0, err
	}
	to.MaxRetries, to.DialerRetries, to.ContextTimeoutEnabled = -1, 1, true
	single := redis.NewClient(to)
	first, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err = single.Do(first, "cluster", "slots").Err() // a limiter's user is permitted to run this on a cluster
	if _, replied := errors.AsType[redis.Error](err); replied {
		return single, patience, nil
	}
	_ = single.Close()
	if err != nil {
		to.DialTimeout, to.ReadTimeout, to.WriteTimeout = shortPatience, shortPatience, shortPatience
		return redis.NewClient(to), shortPatience, nil
	}
	return redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: []string{to.Addr}, DialerRetries: 1, Username: to.Username, Password: to.Password, TLSConfig: to.TLSConfig,
		ContextTimeoutEnabled: true,
	}), patience, nil
}

// errURL does not say what is wrong, because any part of the URL may be a part of a password.
var errURL = misused("the URL of -redis or RATELIMIT_REDIS cannot be read: expected one such as redis://user:password@host:6379/0; " +
	"in a password, write %23 for #, %2F for /, %3F for ?, %40 for @ and %25 for %")

// tlsConfig returns what the flags say about TLS, or nil.
func (in *input) tlsConfig() (*tls.Config, error) {
	if in.tlsCA == "" && in.tlsCert == "" && in.tlsKey == "" {
		return nil, nil
	}
	config := new(tls.Config)
	if in.tlsCA != "" {
		text, err := os.ReadFile(in.tlsCA)
		config.RootCAs = x509.NewCertPool()
		if err != nil || !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, misused(fmt.Sprintf("-tls-ca: %s: %v", in.tlsCA, cmp.Or(cause(err), errors.New("expected certificates in PEM form"))))
		}
	}
	if in.tlsCert != "" || in.tlsKey != "" {
		pair, err := tls.LoadX509KeyPair(in.tlsCert, in.tlsKey)
		if err != nil {
			return nil, misused(fmt.Sprintf("-tls-cert %s and -tls-key %s: %v", in.tlsCert, in.tlsKey, cause(err)))
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

// tellLoss says if the store lost its settings, unless the command has printed that.
func (s *session) tellLoss() {
	if text := s.loss.InWords(); text != "" && !s.told {
		fmt.Fprintln(s.stderr, text)
	}
}

// checkPrefix returns an error that names the prefixes on the server if programs use none by this name.
func (s *session) checkPrefix(ctx context.Context) error {
	exists, err := s.store.Fleet(s.prefix.Name()).Exists(ctx)
	switch {
	case err != nil:
		if wrong := s.sentinel(ctx); wrong != nil {
			return wrong
		}
		return err
	case exists || s.force:
		return nil
	}
	all, err := s.prefix.Prefixes(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("no program uses prefix %q; the others on this server are unknown: %w", s.options.prefix, err)
	case len(all) == 0:
		return errors.New("no prefix on this server")
	}
	return s.mistyped(all)
}

// isElsewhere returns the error of a prefix that no program uses if programs on the server use others, or nil.
func (s *session) isElsewhere(ctx context.Context) error {
	if exists, err := s.store.Fleet(s.prefix.Name()).Exists(ctx); err != nil || exists {
		return nil
	}
	if all, _ := s.prefix.Prefixes(ctx); len(all) > 0 && !slices.Contains(all, s.prefix.Name()) {
		return s.mistyped(all)
	}
	return nil
}

// mistyped returns the error of a prefix that no program uses, on a server with others.
func (s *session) mistyped(all []string) error {
	return fmt.Errorf("no program uses prefix %q; on this server there is %s: see -prefix", s.options.prefix, shown(strings.Join(all, ", ")))
}

// sentinel returns the error of a server that is a Sentinel, or nil.
func (s *session) sentinel(ctx context.Context) error {
	text, _ := s.client.Info(ctx).Result()
	info := redisinfo.Fields(text)
	if info["redis_mode"] != "sentinel" {
		return nil
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(info["master0"], "name="), ",")
	return fmt.Errorf("the server is a Sentinel, which keeps no counts: add ?master_name=%s to the URL", cmp.Or(name, "NAME"))
}
