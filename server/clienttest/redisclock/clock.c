/* Loaded into a Redis before its C library, this gives it the wall clock that a test
   writes into a file: microseconds since 1970, eight bytes. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

static volatile int64_t *clock_us(void) {
	static volatile int64_t *at;
	if (!at) {
		int fd = open(getenv("WEIRTEST_CLOCK"), O_RDONLY);
		at = mmap(0, 8, PROT_READ, MAP_SHARED, fd, 0);
	}
	return at;
}

int gettimeofday(struct timeval *tv, void *tz) {
	int64_t us = *clock_us();
	tv->tv_sec = us / 1000000;
	tv->tv_usec = us % 1000000;
	return 0;
}

time_t time(time_t *t) {
	time_t s = *clock_us() / 1000000;
	if (t) *t = s;
	return s;
}

int clock_gettime(clockid_t id, struct timespec *ts) {
	static int (*real)(clockid_t, struct timespec *);
	if (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE) {
		int64_t us = *clock_us();
		ts->tv_sec = us / 1000000;
		ts->tv_nsec = us % 1000000 * 1000;
		return 0;
	}
	if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
	return real(id, ts);
}
