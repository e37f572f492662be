package names

import "testing"

func TestPrefixed(t *testing.T) {
	for typ, want := range map[string]string{
		"Sender": "LimitedSender", "sender": "limitedSender", "élan": "limitedÉlan", "Élan": "LimitedÉlan", "_x": "limited_x",
	} {
		if got := Prefixed("limited", typ); got != want {
			t.Errorf("%s gives %s, want %s", typ, got, want)
		}
	}
}
