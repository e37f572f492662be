package redistest

import "syscall"

// dieWithParent makes the server end with the test binary, even if no cleanup runs, as after a panic or a time-out of go test.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
