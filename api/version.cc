#include "api/shardpack.h"

const char* shardpack_version(void) { return SHARDPACK_VERSION; }

// Only what is known when this is compiled: nothing is made when the library is loaded.
#ifdef NDEBUG
#define SHARDPACK_DEBUG "false"
#else
#define SHARDPACK_DEBUG "true"
#endif
#ifdef SHARDPACK_WITH_CUDA
#define SHARDPACK_KERNELS "true"
#else
#define SHARDPACK_KERNELS "false"
#endif

const char* shardpack_build_json(void) {
  return "{\"version\":\"" SHARDPACK_VERSION "\",\"compiler\":\"" __VERSION__
         "\",\"debug\":" SHARDPACK_DEBUG ",\"cuda\":" SHARDPACK_KERNELS "}";
}
