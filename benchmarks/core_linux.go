package main

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// onOneCore runs do while this process and the server share one processor.
func onOneCore(server int, do func() error) error {
	var all, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return fmt.Errorf("find processors: %w", err)
	}
	for cpu := range len(all) * 64 {
		if all.IsSet(cpu) {
			one.Zero()
			one.Set(cpu) // the last processor, because the system itself mostly uses the first
		}
	}
	defer func() {
		_ = moveTo(&all, os.Getpid(), server)
	}()
	if err := moveTo(&one, os.Getpid(), server); err != nil {
		return err
	}
	return do()
}

// moveTo makes all threads of processes run on the given processors, including threads that are created later.
func moveTo(cpus *unix.CPUSet, processes ...int) error {
	for _, pid := range processes {
		threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
		if err != nil {
			return fmt.Errorf("find threads: %w", err)
		}
		for _, thread := range threads {
			tid, err := strconv.Atoi(thread.Name())
			if err != nil {
				return err
			}
			if err := unix.SchedSetaffinity(tid, cpus); err != nil && err != unix.ESRCH { // the thread may have ended
				return fmt.Errorf("move a thread to one processor: %w", err)
			}
		}
	}
	return nil
}
