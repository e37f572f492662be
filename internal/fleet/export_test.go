package fleet

// Beat beats now.
func (f *Fleet) Beat() bool { return f.beat() }

// Known returns the texts of all settings that this process knows and that are not cleared, by their names.
func (f *Fleet) Known() map[string]string {
	f.turn <- struct{}{}
	defer func() { <-f.turn }()
	all := map[string]string{}
	for name, s := range f.changed.settings {
		if !s.Cleared {
			all[name], _ = s.text()
		}
	}
	return all
}
