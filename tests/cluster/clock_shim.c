// Loaded into `pack` by LD_PRELOAD, it sets the wall clock off by SHARDPACK_CLOCK_OFF seconds.
// Clocks that only measure are left alone, as they are by a real clock that is wrong.
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long Off(void) {
  const char* off = getenv("SHARDPACK_CLOCK_OFF");
  return off == NULL ? 0 : atol(off);
}

int clock_gettime(clockid_t clock, struct timespec* time) {
  const int result = (int)syscall(SYS_clock_gettime, clock, time);
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
    time->tv_sec += Off();
  return result;
}

int gettimeofday(struct timeval* restrict time, void* restrict zone) {
  const int result = (int)syscall(SYS_gettimeofday, time, zone);
  if (result == 0) time->tv_sec += Off();
  return result;
}

time_t time(time_t* into) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (into != NULL) *into = now.tv_sec;
  return now.tv_sec;
}
