// A plug-in, and some that are wrong in one way each, for own_operation_test.
#include <cstdint>
#include <cstring>
#include <stdexcept>

#include "augment/shardpack_op.h"

namespace {

[[maybe_unused]] int32_t Run(void*, uint8_t*, uint32_t, uint32_t, uint32_t, uint64_t,
                             const uint64_t*, uint64_t, char*) {
  return 0;
}

[[maybe_unused]] void* Make(const char*, char*) { throw std::runtime_error("never"); }

// Sets the first byte to the random number's last one.
[[maybe_unused]] void* MakeGood(const char* parameters, char* error) {
  if (std::strcmp(parameters, "loud") == 0) std::strcpy(error, "not so loud");
  return nullptr;
}

[[maybe_unused]] int32_t RunGood(void*, uint8_t* pixels, uint32_t, uint32_t, uint32_t, uint64_t,
                                 const uint64_t*, uint64_t random, char*) {
  pixels[0] = static_cast<uint8_t>(random);
  return 0;
}

}  // namespace

#if defined(PLUGIN_GOOD)
const shardpack_op shardpack_op_v1 = {SHARDPACK_OP_ABI, "good", MakeGood, RunGood, nullptr};
#elif defined(PLUGIN_ABI)
const shardpack_op shardpack_op_v1 = {7, "bad", nullptr, Run, nullptr};
#elif defined(PLUGIN_NAME)
const shardpack_op shardpack_op_v1 = {SHARDPACK_OP_ABI, "b d", nullptr, Run, nullptr};
#elif defined(PLUGIN_RUN)
const shardpack_op shardpack_op_v1 = {SHARDPACK_OP_ABI, "bad", nullptr, nullptr, nullptr};
#elif defined(PLUGIN_MAKE)
const shardpack_op shardpack_op_v1 = {SHARDPACK_OP_ABI, "bad", Make, Run, nullptr};
#endif
