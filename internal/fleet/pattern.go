package fleet

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"unicode/utf8"

	"github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/internal/printable"
)

// A setting by pattern is for rules by a glob, such as shop.*, or for keys by a pattern: a network such as 203.0.113.0/24, or a text with a * at its
// end, such as ann*. Of the overrides for a key the most exact one wins, field by field: that of the key, of the longest network, of the longest
// text, of all keys; of each, that of the rule by its name, and then of the longest glob. Any block or pause refuses, until the last of them ends.

// MaxPatterns bounds the settings by pattern that are in force.
const MaxPatterns = 1000

// maxPrefix bounds the text of a pattern in the form of keys, in bytes. A longer key is cut behind it: see key.Escape.
const maxPrefix = 90

// IsGlob reports whether the rule of a setting stands for all rules whose names begin like it. A rule's own name has no *.
func IsGlob(rule string) bool { return strings.HasSuffix(rule, "*") }

// CheckGlob returns what is wrong with the * in the rule of a setting, or nil.
func CheckGlob(rule string) error {
	if strings.Contains(strings.TrimSuffix(rule, "*"), "*") {
		return fmt.Errorf("found %s; expected one * at the end, such as shop.*, or no *", printable.Text(rule, 128))
	}
	return nil
}

// Covers reports whether the rule of a setting is a name, or a glob that the name matches.
func Covers(rule, name string) bool {
	begin, isGlob := strings.CutSuffix(rule, "*")
	return rule == name || isGlob && strings.HasPrefix(name, begin)
}

// ParseMatch returns a pattern of keys as Setting.Key has it. The text of a pattern is in the form of keys there: 5%* is 5%25*.
func ParseMatch(pattern string) (string, error) {
	const want = "a network such as 203.0.113.0/24, or a text with a * at its end such as ann*"
	shown := printable.Text(pattern, 128)
	begin, isText := strings.CutSuffix(pattern, "*")
	network, err := netip.ParsePrefix(pattern)
	switch {
	case err == nil:
		return networkText(network, shown)
	case pattern == "":
		return "", errors.New("found nothing; expected " + want)
	case pattern == "*":
		return "", errors.New("found * alone, which is every key; expected a text before it, such as ann*")
	case !isText:
		if address, err := netip.ParseAddr(pattern); err == nil {
			return "", fmt.Errorf("found the address %s; write %s/%d, or write it as the key", shown, address.Unmap().WithZone(""), address.Unmap().BitLen())
		}
		return "", fmt.Errorf("found %s; expected %s", shown, want)
	case strings.Contains(begin, "*"):
		return "", fmt.Errorf("found %s; expected one * at the end, such as ann*", shown)
	case !utf8.ValidString(begin):
		return "", fmt.Errorf("found %s, which is no UTF-8", shown)
	}
	text := key.Escape(begin)
	if len(text) > maxPrefix {
		return "", fmt.Errorf("found %d bytes before the *; expected at most %d", len(text), maxPrefix)
	}
	return text + "*", nil
}

// networkText returns the text of a network. shown is what was written.
func networkText(n netip.Prefix, shown string) (string, error) {
	meant := unmapped(n)
	switch {
	case !meant.IsValid():
		return "", fmt.Errorf("found %s; expected a network of IPv4 or of IPv6 addresses", shown)
	case meant.Masked() != meant:
		alone := netip.PrefixFrom(meant.Addr(), meant.Addr().BitLen())
		return "", fmt.Errorf("found %s, which is no network; write %s for the network, or %s for the address alone", shown, meant.Masked(), alone)
	case meant != n:
		return "", fmt.Errorf("found %s; write %s", shown, meant)
	}
	return n.String(), nil
}

// unmapped returns the network of the IPv4 addresses that an IPv6 network maps, or the network itself. The result is not valid if the network has
// other addresses, too.
func unmapped(n netip.Prefix) netip.Prefix {
	if !n.Addr().Is4In6() {
		return n
	}
	return netip.PrefixFrom(n.Addr().Unmap(), n.Bits()-96)
}

// IsMatch reports whether a text may be the Key of a setting with Match.
func IsMatch(text string) bool {
	pattern := text
	if begin, isText := strings.CutSuffix(text, "*"); isText {
		raw, ok := key.Unescape(begin)
		if !ok {
			return false
		}
		pattern = raw + "*"
	}
	again, err := ParseMatch(pattern)
	return err == nil && again == text
}

// byPattern reports whether the setting is one by pattern.
func (s *Setting) byPattern() bool { return s.Match || IsGlob(s.Rule) }
