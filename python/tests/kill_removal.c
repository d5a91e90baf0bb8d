// Preloaded by finish_test.py: the process is killed as it is about to do its $KILL_AT-th step that
// removes or renames something in a folder of parts.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void step(const char* path) {
  static atomic_int steps;
  const char* const at = getenv("KILL_AT");
  if (at != NULL && strstr(path, ".parts") != NULL && atomic_fetch_add(&steps, 1) + 1 == atoi(at))
    kill(getpid(), SIGKILL);
}

int unlink(const char* path) {
  step(path);
  return ((int (*)(const char*))dlsym(RTLD_NEXT, "unlink"))(path);
}

int rename(const char* from, const char* to) {
  step(from);
  return ((int (*)(const char*, const char*))dlsym(RTLD_NEXT, "rename"))(from, to);
}

int rmdir(const char* path) {
  step(path);
  return ((int (*)(const char*))dlsym(RTLD_NEXT, "rmdir"))(path);
}
