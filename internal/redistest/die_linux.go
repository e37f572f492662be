package redistest

import "syscall"

// dieWithParent ends the server with the test binary, also where no cleanup runs (a panic, go test's time-out).
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
