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

func TestArticle(t *testing.T) {
	for name, want := range map[string]string{"Order": "an", "SMS": "an", "URL": "a", "Sender": "a", "S": "an", "T": "a", "uint": "a", "Update": "an", "Unit": "a", "UUID": "a", "int": "an", "[]byte": "a", "": "a"} {
		if got := Article(name); got != want {
			t.Errorf("%s %s, want %s", got, name, want)
		}
	}
}
