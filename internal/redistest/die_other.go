//go:build !linux

package redistest

import "syscall"

// dieWithParent does nothing on this system: a test binary that crashes leaves its servers running.
func dieWithParent() *syscall.SysProcAttr { return nil }
