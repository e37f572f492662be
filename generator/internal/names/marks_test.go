package names

import "testing"

// TestMarks expects names in place of marks, chosen in the order of the marks, and any other text as it is.
func TestMarks(t *testing.T) {
	m, s := NewMarks(), NewScope("key")
	phone, key, other := m.New("phone"), m.Take(s, "key", "subject"), m.Take(s, "key")
	text := phone + " := " + key + "(" + other + ", ʻ9ʻtext, ʻokina)"
	if got, want := Wished(text), "phone := key(key, text, ʻokina)"; got != want || Width(text) != len(want) {
		t.Errorf("%s of %d bytes, expected %s", got, Width(text), want)
	}
	m.Later(func() { m.Set(phone, "phoneArg") })
	m.Choose()
	if got, want := m.In(text), "phoneArg := subject(key2, ʻ9ʻtext, ʻokina)"; got != want {
		t.Errorf("%s, expected %s", got, want)
	}
	if hint := m.New(phone + "Ptr"); Wished(hint) != "phonePtr" {
		t.Errorf("the mark for a name like that of another is %s", hint)
	}
}
