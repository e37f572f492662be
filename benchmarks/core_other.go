//go:build !linux

package main

// onOneCore runs do. It cannot choose a core on this system.
func onOneCore(_ int, do func() error) error { return do() }
