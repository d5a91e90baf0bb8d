// Preloaded by interrupt_test.py: while the file $HANG_WHEN is there, a read that may wait says so
// to the pipe $HANG_REACHED, once, and goes on when somebody opens the pipe $HANG_UNTIL for
// writing.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

typedef ssize_t (*Preadv2)(int, const struct iovec*, int, off_t, int);

ssize_t preadv2(int fd, const struct iovec* parts, int count, off_t offset, int flags) {
  static atomic_flag told = ATOMIC_FLAG_INIT;
  const Preadv2 real = (Preadv2)dlsym(RTLD_NEXT, "preadv2");
  const char* const when = getenv("HANG_WHEN");
  if (when == NULL || access(when, F_OK) != 0) return real(fd, parts, count, offset, flags);
  if ((flags & RWF_NOWAIT) != 0) {
    errno = EAGAIN;
    return -1;
  }
  if (!atomic_flag_test_and_set(&told)) close(open(getenv("HANG_REACHED"), O_WRONLY));
  close(open(getenv("HANG_UNTIL"), O_RDONLY));
  return real(fd, parts, count, offset, flags);
}
