/* shardpack_op.h: an operation of your own on decoded pixels, which loaders call like theirs.
 *
 *   static int32_t run(void* self, uint8_t* pixels, uint32_t width, uint32_t height,
 *                      uint32_t channels, uint64_t stride_bytes, const uint64_t* sample,
 *                      uint64_t random, char* error) { ... return 0; }
 *   const shardpack_op shardpack_op_v1 = {SHARDPACK_OP_ABI, "my_noise", make, run, release};
 *
 * Compiled with `cc -shared -fPIC -o my_noise.so my_noise.c` and named in a plan: in Python
 * Augment().plugin("./my_noise.so", "amount=3"), in C shardpack_own_operation.plugin, in C++
 * OpenPlugin (augment/own_operation.h). examples/plugin/my_noise.c is one.
 *
 * Lifetime: what `make` returns is released when the last loader that uses it is gone; the library
 * is never unloaded.
 * Thread-safety: `run` is called from any number of threads at once, with the same `self`.
 * Errors: a text of at most SHARDPACK_OP_ERROR_BYTES with its zero byte. A sample of which `run`
 * fails is a bad sample with that text.
 * Units: pixels; bytes.
 */
#ifndef SHARDPACK_OP_H_
#define SHARDPACK_OP_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SHARDPACK_OP_ABI 1
#define SHARDPACK_OP_ERROR_BYTES 256

/* Changes 8-bit pixels in place: rows of width x channels bytes (1: gray, 3: red, green, blue),
 * stride_bytes apart. It must not move them where labels or objects are decoded: these do not
 * follow. `sample`: seed, epoch, id and view, four numbers; `random` depends on them and on the
 * step alone. 0: done. */
typedef int32_t (*shardpack_op_run)(void* self, uint8_t* pixels, uint32_t width, uint32_t height,
                                    uint32_t channels, uint64_t stride_bytes,
                                    const uint64_t* sample, uint64_t random, char* error);

typedef struct shardpack_op {
  uint64_t abi;     /* SHARDPACK_OP_ABI */
  const char* name; /* a word of letters, digits and _ */
  /* Reads the parameters. NULL with a text in `error`: they are refused. NULL without: there is
   * nothing to keep. May be NULL itself. */
  void* (*make)(const char* parameters, char* error);
  shardpack_op_run run;
  void (*release)(void* self); /* may be NULL */
} shardpack_op;

/* What the library exports. */
#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
extern const shardpack_op shardpack_op_v1;

#ifdef __cplusplus
}
#endif

#endif /* SHARDPACK_OP_H_ */
