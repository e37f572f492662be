//go:build !linux

package redistest

import "syscall"

// dieWithParent has no counterpart here: a test binary that crashes leaves its servers behind.
func dieWithParent() *syscall.SysProcAttr { return nil }
