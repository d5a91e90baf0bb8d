/* my_noise.c: noise of at most `amount` levels, the same for a sample in every run.
 *
 *   cc -O2 -shared -fPIC -o my_noise.so my_noise.c        (-I for the folder of shardpack_op.h)
 *   shardpack.load(..., augment=shardpack.Augment().plugin("my_noise.so", "amount=3"))
 */
#include <shardpack_op.h>
#include <stdio.h>
#include <stdlib.h>

static void* make(const char* parameters, char* error) {
  int* amount = malloc(sizeof *amount);
  if (amount == NULL || sscanf(parameters, "amount=%d", amount) != 1 || *amount < 0 ||
      *amount > 255) {
    snprintf(error, SHARDPACK_OP_ERROR_BYTES, "amount=0..255 is needed");
    free(amount);
    return NULL;
  }
  return amount;
}

static int32_t run(void* self, uint8_t* pixels, uint32_t width, uint32_t height, uint32_t channels,
                   uint64_t stride_bytes, const uint64_t* sample, uint64_t random, char* error) {
  const int amount = *(const int*)self;
  (void)sample;
  (void)error;
  for (uint32_t y = 0; y < height; ++y) {
    uint8_t* row = pixels + y * stride_bytes;
    for (uint32_t i = 0; i < width * channels; ++i) {
      random = random * 6364136223846793005u + 1442695040888963407u; /* Knuth's constants */
      const int level = row[i] + (int)((random >> 33) % (uint64_t)(2 * amount + 1)) - amount;
      row[i] = (uint8_t)(level < 0 ? 0 : level > 255 ? 255 : level);
    }
  }
  return 0;
}

const shardpack_op shardpack_op_v1 = {SHARDPACK_OP_ABI, "my_noise", make, run, free};
