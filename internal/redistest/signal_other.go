//go:build !unix

package redistest

import "syscall"

// A process cannot be frozen on this system: sending these signals is an error.
const stop, resume = syscall.Signal(19), syscall.Signal(18)
