//go:build !linux

package main

// onOneCore runs do. This system cannot be asked for more.
func onOneCore(_ int, do func() error) error { return do() }
