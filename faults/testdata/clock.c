// A library that sets a program's clock ahead of the machine's by so many microseconds as stand in the file $CLOCK_FILE, which may change
// at any time. To be loaded by LD_PRELOAD. (libfaketime does not go together with the allocator of redis-server.)
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile long long *ahead;

__attribute__((constructor)) static void start(void) {
	int file = open(getenv("CLOCK_FILE"), O_RDONLY);
	void *memory = mmap(NULL, sizeof *ahead, PROT_READ, MAP_SHARED, file, 0);
	if (memory == MAP_FAILED) abort();
	close(file);
	ahead = memory;
}

int clock_gettime(clockid_t id, struct timespec *t) {
	int failed = syscall(SYS_clock_gettime, id, t);
	if (!failed && ahead && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) {
		long long now = t->tv_sec * 1000000LL + t->tv_nsec / 1000 + *ahead;
		t->tv_sec = now / 1000000;
		t->tv_nsec = now % 1000000 * 1000;
	}
	return failed;
}

int gettimeofday(struct timeval *restrict t, void *restrict zone) {
	struct timespec now;
	int failed = clock_gettime(CLOCK_REALTIME, &now);
	t->tv_sec = now.tv_sec;
	t->tv_usec = now.tv_nsec / 1000;
	return failed;
}

time_t time(time_t *t) {
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	if (t) *t = now.tv_sec;
	return now.tv_sec;
}
