// Loaded into `pack` by LD_PRELOAD, it counts the calls that name or use a file below a folder, and
// lets one of them fail, or ends the process at it.
//
//   LD_PRELOAD=libfault_shim.so SHARDPACK_FAULT_ROOT=/tmp/x SHARDPACK_FAULT_LOG=calls pack ...      records all calls
//   ... SHARDPACK_FAULT_AT=17 SHARDPACK_FAULT_DO=5 pack ...        the 17th fails with error number 5 (EIO)
//   ... SHARDPACK_FAULT_DO=kill-before|kill-after pack ...         the process is killed before or after it
//   ... SHARDPACK_FAULT_DO=lost pack ...                           it is done, and answers EIO nevertheless;
//                                                                  lost=17: that error number
//   ... SHARDPACK_FAULT_ONLY=link SHARDPACK_FAULT_AT=2 ...         counts only calls whose name begins so: other
//                                                                  threads' calls do not shift the number
//   ... SHARDPACK_FAULT_EACH=open SHARDPACK_FAULT_DO=5 pack ...    every call of that name fails so
//   ... SHARDPACK_FAULT_HIDES=journal- pack ...                    no listing shows names with that in them, as where a
//                                                                  network file system shows new files late
//   ... SHARDPACK_FAULT_SAYS=3 SHARDPACK_FAULT_WAITS=4 pack ...    every write says so by a byte to descriptor 3, and
//                                                                  waits for one from descriptor 4, or for its end
//
// One line a call in the log: number, name, path. With SHARDPACK_FAULT_AT the log holds the call
// that was hit alone. Thread-safety: any thread; the numbers are those of one order in which the
// calls came.
#define _GNU_SOURCE
#undef _FORTIFY_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum Action { kNothing, kFail, kKillAfter, kLost };

static const char* root;
static size_t root_length;
static int log_file = -1;
static long hit_number;    // 0 = record
static const char* each;   // the name of calls that all fail
static const char* only;   // what the names of counted calls begin with
static const char* hides;  // what is in the names that listings do not show
static int hit_error;
static int kill_before, kill_after, lost;
static long calls;
static int says = -1, waits = -1;  // pipes

// Not through the C library, whose functions are ours here.
static long Raw(long number, long a, long b, long c, long d) {
  register long r10 __asm__("r10") = d;
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10)
                   : "rcx", "r11", "memory");
  return result;
}

__attribute__((constructor)) static void Start(void) {
  root = getenv("SHARDPACK_FAULT_ROOT");
  root_length = root == NULL ? 0 : strlen(root);
  const char* const at = getenv("SHARDPACK_FAULT_AT");
  const char* const what = getenv("SHARDPACK_FAULT_DO");
  hit_number = at == NULL ? 0 : atol(at);
  each = getenv("SHARDPACK_FAULT_EACH");
  only = getenv("SHARDPACK_FAULT_ONLY");
  hides = getenv("SHARDPACK_FAULT_HIDES");
  if (what != NULL) {
    kill_before = strcmp(what, "kill-before") == 0;
    kill_after = strcmp(what, "kill-after") == 0;
    lost = strncmp(what, "lost", 4) == 0;
    hit_error = atoi(lost && what[4] == '=' ? what + 5 : what);
    if (lost && hit_error == 0) hit_error = EIO;
  }
  if (getenv("SHARDPACK_FAULT_SAYS") != NULL) says = atoi(getenv("SHARDPACK_FAULT_SAYS"));
  if (getenv("SHARDPACK_FAULT_WAITS") != NULL) waits = atoi(getenv("SHARDPACK_FAULT_WAITS"));
  const char* const log = getenv("SHARDPACK_FAULT_LOG");
  if (log == NULL) return;
  const long opened =
      Raw(SYS_openat, AT_FDCWD, (long)log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (opened < 0) return;
  log_file =
      (int)Raw(SYS_fcntl, opened, F_DUPFD_CLOEXEC, 900, 0);  // out of the way of the program's own
  if (log_file >= 0) Raw(SYS_close, opened, 0, 0, 0);
  if (log_file < 0) log_file = (int)opened;
}

// The path behind a descriptor; 0 when there is none.
static size_t PathOf(int descriptor, char* into, size_t room) {
  char link[64];
  snprintf(link, sizeof(link), "/proc/self/fd/%d", descriptor);
  const long length = Raw(SYS_readlinkat, AT_FDCWD, (long)link, (long)into, (long)room - 1);
  if (length <= 0) return 0;
  into[length] = '\0';
  return (size_t)length;
}

// A slow disk.
static void Wait(const char* call) {
  if (strstr(call, "write") == NULL && strcmp(call, "fdatasync") != 0) return;
  char byte = '.';
  Raw(SYS_write, says, (long)&byte, 1, 0);
  while (Raw(SYS_read, waits, (long)&byte, 1, 0) == -EINTR) {
  }
}

static enum Action Count(const char* call, const char* path) {
  if (root_length == 0 || strncmp(path, root, root_length) != 0) return kNothing;
  if (waits >= 0) Wait(call);
  if (each != NULL) return strcmp(call, each) == 0 ? kFail : kNothing;
  if (only != NULL && strncmp(call, only, strlen(only)) != 0) return kNothing;
  const long number = __atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST);
  if (hit_number != 0 && number != hit_number) return kNothing;
  if (log_file >= 0) {
    char line[4300];
    const int length = snprintf(line, sizeof(line), "%ld %s %s\n", number, call, path);
    Raw(SYS_write, log_file, (long)line,
        length < (int)sizeof(line) ? length : (int)sizeof(line) - 1, 0);
  }
  if (hit_number == 0) return kNothing;
  if (kill_before) Raw(SYS_kill, Raw(SYS_getpid, 0, 0, 0, 0), SIGKILL, 0, 0);
  return kill_after ? kKillAfter : lost ? kLost : kFail;
}

static enum Action CountFile(const char* call, int descriptor) {
  char path[4200];
  const int saved = errno;
  if (descriptor == log_file || PathOf(descriptor, path, sizeof(path)) == 0) return kNothing;
  errno = saved;
  return Count(call, path);
}

static enum Action CountPath(const char* call, int folder, const char* name) {
  char path[8400];
  if (name == NULL || name[0] == '\0')
    return folder == AT_FDCWD ? kNothing : CountFile(call, folder);
  if (name[0] == '/') return Count(call, name);
  size_t length = 0;
  if (folder == AT_FDCWD) {
    const long got = Raw(SYS_getcwd, (long)path, 4200, 0, 0);
    length = got > 0 ? (size_t)got - 1 : 0;
  } else {
    length = PathOf(folder, path, 4200);
  }
  snprintf(path + length, sizeof(path) - length, "/%s", name);
  return Count(call, path);
}

#define REAL(name)               \
  static __typeof__(&name) real; \
  if (real == NULL) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

// What a call answers whose turn it is; `bad` is what it answers for a failure.
#define ANSWER(type, bad, count, call)                                                 \
  const enum Action action = (count);                                                  \
  if (action == kFail) {                                                               \
    errno = hit_error;                                                                 \
    return bad;                                                                        \
  }                                                                                    \
  type result = (call);                                                                \
  if (action == kKillAfter) Raw(SYS_kill, Raw(SYS_getpid, 0, 0, 0, 0), SIGKILL, 0, 0); \
  if (action == kLost) {                                                               \
    errno = hit_error;                                                                 \
    return bad;                                                                        \
  }                                                                                    \
  return result

#define BY_FILE(type, name, bad, parameters, arguments)      \
  type name parameters {                                     \
    REAL(name);                                              \
    ANSWER(type, bad, CountFile(#name, fd), real arguments); \
  }
#define BY_PATH(type, name, bad, folder, path, parameters, arguments)  \
  type name parameters {                                               \
    REAL(name);                                                        \
    ANSWER(type, bad, CountPath(#name, folder, path), real arguments); \
  }

// ---- opening
#define MODE_OF(flags)                                              \
  mode_t mode = 0;                                                  \
  if (((flags)&O_CREAT) != 0 || ((flags)&O_TMPFILE) == O_TMPFILE) { \
    va_list list;                                                   \
    va_start(list, flags);                                          \
    mode = va_arg(list, mode_t);                                    \
    va_end(list);                                                   \
  }
#define OPEN_NAME(flags) (((flags)&O_CREAT) != 0 ? "create" : "open")
#define OPEN(name)                                                                         \
  int name(const char* path, int flags, ...) {                                             \
    REAL(name);                                                                            \
    MODE_OF(flags)                                                                         \
    ANSWER(int, -1, CountPath(OPEN_NAME(flags), AT_FDCWD, path), real(path, flags, mode)); \
  }
#define OPENAT(name)                                                                             \
  int name(int folder, const char* path, int flags, ...) {                                       \
    REAL(name);                                                                                  \
    MODE_OF(flags)                                                                               \
    ANSWER(int, -1, CountPath(OPEN_NAME(flags), folder, path), real(folder, path, flags, mode)); \
  }
OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)
int __open_2(const char* path, int flags) { return open(path, flags); }
int __open64_2(const char* path, int flags) { return open64(path, flags); }
int __openat_2(int folder, const char* path, int flags) { return openat(folder, path, flags); }
int __openat64_2(int folder, const char* path, int flags) { return openat64(folder, path, flags); }
#define FOPEN(name)                                                                    \
  FILE* name(const char* path, const char* mode) {                                     \
    REAL(name);                                                                        \
    ANSWER(FILE*, NULL, CountPath(mode[0] == 'r' ? "open" : "create", AT_FDCWD, path), \
           real(path, mode));                                                          \
  }
FOPEN(fopen)
FOPEN(fopen64)
DIR* opendir(const char* path) {
  REAL(opendir);
  ANSWER(DIR*, NULL, CountPath("open", AT_FDCWD, path), real(path));
}

// ---- reading
BY_FILE(ssize_t, read, -1, (int fd, void* into, size_t bytes), (fd, into, bytes))
BY_FILE(ssize_t, pread, -1, (int fd, void* into, size_t bytes, off_t at), (fd, into, bytes, at))
BY_FILE(ssize_t, pread64, -1, (int fd, void* into, size_t bytes, off64_t at), (fd, into, bytes, at))
BY_FILE(ssize_t, readv, -1, (int fd, const struct iovec* parts, int count), (fd, parts, count))
BY_FILE(ssize_t, preadv, -1, (int fd, const struct iovec* parts, int count, off_t at),
        (fd, parts, count, at))
BY_FILE(ssize_t, preadv64, -1, (int fd, const struct iovec* parts, int count, off64_t at),
        (fd, parts, count, at))
BY_FILE(ssize_t, preadv2, -1, (int fd, const struct iovec* parts, int count, off_t at, int flags),
        (fd, parts, count, at, flags))
BY_FILE(ssize_t, preadv64v2, -1,
        (int fd, const struct iovec* parts, int count, off64_t at, int flags),
        (fd, parts, count, at, flags))
ssize_t __read_chk(int fd, void* into, size_t bytes, size_t room) {
  return read(fd, into, bytes <= room ? bytes : room);
}
ssize_t __pread_chk(int fd, void* into, size_t bytes, off_t at, size_t room) {
  return pread(fd, into, bytes <= room ? bytes : room, at);
}
ssize_t __pread64_chk(int fd, void* into, size_t bytes, off64_t at, size_t room) {
  return pread64(fd, into, bytes <= room ? bytes : room, at);
}
static int IsHidden(DIR* folder, const char* name) {
  char path[4200];
  return hides != NULL && strstr(name, hides) != NULL &&
         PathOf(dirfd(folder), path, sizeof(path)) != 0 && strncmp(path, root, root_length) == 0;
}
#define READDIR(name, entry)                                                                      \
  static struct entry* Shown_##name(struct entry* (*next)(DIR*), DIR* folder) {                   \
    struct entry* found = next(folder);                                                           \
    while (found != NULL && IsHidden(folder, found->d_name)) found = next(folder);                \
    return found;                                                                                 \
  }                                                                                               \
  struct entry* name(DIR* folder) {                                                               \
    REAL(name);                                                                                   \
    ANSWER(struct entry*, NULL, CountFile("readdir", dirfd(folder)), Shown_##name(real, folder)); \
  }
READDIR(readdir, dirent)
READDIR(readdir64, dirent64)
#define MAP(name, offset)                                                              \
  void* name(void* at, size_t bytes, int protection, int flags, int fd, offset from) { \
    static __typeof__(&name) real;                                                     \
    if (real == NULL) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name);               \
    ANSWER(void*, MAP_FAILED, fd < 0 ? kNothing : CountFile("mmap", fd),               \
           real(at, bytes, protection, flags, fd, from));                              \
  }
MAP(mmap, off_t)
MAP(mmap64, off64_t)
long syscall(long number, ...) {
  REAL(syscall);
  va_list list;
  va_start(list, number);
  long a[6];
  for (int i = 0; i < 6; ++i) a[i] = va_arg(list, long);
  va_end(list);
  ANSWER(long, -1, number == SYS_getdents64 ? CountFile("getdents", (int)a[0]) : kNothing,
         real(number, a[0], a[1], a[2], a[3], a[4], a[5]));
}

// ---- writing
BY_FILE(ssize_t, write, -1, (int fd, const void* from, size_t bytes), (fd, from, bytes))
BY_FILE(ssize_t, pwrite, -1, (int fd, const void* from, size_t bytes, off_t at),
        (fd, from, bytes, at))
BY_FILE(ssize_t, pwrite64, -1, (int fd, const void* from, size_t bytes, off64_t at),
        (fd, from, bytes, at))
BY_FILE(ssize_t, writev, -1, (int fd, const struct iovec* parts, int count), (fd, parts, count))
BY_FILE(ssize_t, pwritev, -1, (int fd, const struct iovec* parts, int count, off_t at),
        (fd, parts, count, at))
BY_FILE(ssize_t, pwritev64, -1, (int fd, const struct iovec* parts, int count, off64_t at),
        (fd, parts, count, at))
BY_FILE(ssize_t, copy_file_range, -1,
        (int from, off64_t* from_at, int fd, off64_t* at, size_t bytes, unsigned flags),
        (from, from_at, fd, at, bytes, flags))
BY_FILE(int, ftruncate, -1, (int fd, off_t bytes), (fd, bytes))
BY_FILE(int, ftruncate64, -1, (int fd, off64_t bytes), (fd, bytes))
BY_FILE(int, fallocate, -1, (int fd, int mode, off_t at, off_t bytes), (fd, mode, at, bytes))
BY_FILE(int, fallocate64, -1, (int fd, int mode, off64_t at, off64_t bytes), (fd, mode, at, bytes))
// These answer the error's number.
BY_FILE(int, posix_fallocate, hit_error, (int fd, off_t at, off_t bytes), (fd, at, bytes))
BY_FILE(int, posix_fallocate64, hit_error, (int fd, off64_t at, off64_t bytes), (fd, at, bytes))
// Counted, but not done: a process that is killed loses nothing that it has written, and a thousand
// runs need not wait for the disk.
int fsync(int fd) { ANSWER(int, -1, CountFile("fsync", fd), 0); }
int fdatasync(int fd) { ANSWER(int, -1, CountFile("fdatasync", fd), 0); }
int close(int fd) {
  REAL(close);
  const enum Action action = CountFile("close", fd);
  const int result = real(fd);  // the descriptor is gone whatever close() answers
  if (action == kKillAfter) Raw(SYS_kill, Raw(SYS_getpid, 0, 0, 0, 0), SIGKILL, 0, 0);
  if (action != kFail && action != kLost) return result;
  errno = hit_error;
  return -1;
}

// ---- names
BY_PATH(int, rename, -1, AT_FDCWD, to, (const char* from, const char* to), (from, to))
BY_PATH(int, renameat, -1, in, to, (int at, const char* from, int in, const char* to),
        (at, from, in, to))
BY_PATH(int, renameat2, -1, in, to,
        (int at, const char* from, int in, const char* to, unsigned flags),
        (at, from, in, to, flags))
BY_PATH(int, link, -1, AT_FDCWD, to, (const char* from, const char* to), (from, to))
BY_PATH(int, linkat, -1, in, to, (int at, const char* from, int in, const char* to, int flags),
        (at, from, in, to, flags))
BY_PATH(int, symlink, -1, AT_FDCWD, path, (const char* target, const char* path), (target, path))
BY_PATH(int, unlink, -1, AT_FDCWD, path, (const char* path), (path))
BY_PATH(int, unlinkat, -1, folder, path, (int folder, const char* path, int flags),
        (folder, path, flags))
BY_PATH(int, remove, -1, AT_FDCWD, path, (const char* path), (path))
BY_PATH(int, rmdir, -1, AT_FDCWD, path, (const char* path), (path))
BY_PATH(int, mkdir, -1, AT_FDCWD, path, (const char* path, mode_t mode), (path, mode))
BY_PATH(int, mkdirat, -1, folder, path, (int folder, const char* path, mode_t mode),
        (folder, path, mode))
BY_PATH(int, chmod, -1, AT_FDCWD, path, (const char* path, mode_t mode), (path, mode))
BY_FILE(int, fchmod, -1, (int fd, mode_t mode), (fd, mode))
BY_FILE(int, futimens, -1, (int fd, const struct timespec times[2]), (fd, times))
BY_PATH(int, utimensat, -1, folder, path,
        (int folder, const char* path, const struct timespec times[2], int flags),
        (folder, path, times, flags))

// ---- looking
BY_PATH(int, stat, -1, AT_FDCWD, path, (const char* path, struct stat* out), (path, out))
BY_PATH(int, stat64, -1, AT_FDCWD, path, (const char* path, struct stat64* out), (path, out))
BY_PATH(int, lstat, -1, AT_FDCWD, path, (const char* path, struct stat* out), (path, out))
BY_PATH(int, lstat64, -1, AT_FDCWD, path, (const char* path, struct stat64* out), (path, out))
BY_FILE(int, fstat, -1, (int fd, struct stat* out), (fd, out))
BY_FILE(int, fstat64, -1, (int fd, struct stat64* out), (fd, out))
BY_PATH(int, fstatat, -1, folder, path, (int folder, const char* path, struct stat* out, int flags),
        (folder, path, out, flags))
BY_PATH(int, fstatat64, -1, folder, path,
        (int folder, const char* path, struct stat64* out, int flags), (folder, path, out, flags))
BY_PATH(int, statx, -1, folder, path,
        (int folder, const char* path, int flags, unsigned mask, struct statx* out),
        (folder, path, flags, mask, out))
BY_PATH(int, statvfs, -1, AT_FDCWD, path, (const char* path, struct statvfs* out), (path, out))
BY_PATH(int, statvfs64, -1, AT_FDCWD, path, (const char* path, struct statvfs64* out), (path, out))
BY_PATH(int, access, -1, AT_FDCWD, path, (const char* path, int mode), (path, mode))
BY_PATH(ssize_t, readlink, -1, AT_FDCWD, path, (const char* path, char* into, size_t room),
        (path, into, room))
BY_PATH(ssize_t, readlinkat, -1, folder, path,
        (int folder, const char* path, char* into, size_t room), (folder, path, into, room))
