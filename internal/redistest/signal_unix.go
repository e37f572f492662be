//go:build unix

package redistest

import "syscall"

const stop, resume = syscall.SIGSTOP, syscall.SIGCONT
