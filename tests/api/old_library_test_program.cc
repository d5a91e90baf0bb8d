// Options that nobody set are zero beyond what they had in the first release, so that a library of
// that release takes them from a program of this header. Calls are looked at on their way to the
// library.
#include <cstddef>
#include <cstdio>
#include <cstdlib>

#include "shardpack.h"

namespace {

int looked_at = 0;

template <typename Options>
void ExpectZerosFrom(std::size_t first_size, const Options* options) {
  static_assert(sizeof(Options) > 88);
  const unsigned char* const bytes = reinterpret_cast<const unsigned char*>(options);
  for (std::size_t n = first_size; n < sizeof(Options); ++n) {
    if (bytes[n] == 0) continue;
    std::fprintf(stderr, "byte %zu of %zu is %u\n", n, sizeof(Options), bytes[n]);
    std::exit(1);
  }
  ++looked_at;
}

shardpack_code LookedAtOpen(shardpack_dataset* dataset, shardpack_order* order,
                            const shardpack_loader_options* options, shardpack_loader** into,
                            shardpack_error** error) {
  ExpectZerosFrom(112, options);
  return shardpack_loader_open(dataset, order, options, into, error);
}

shardpack_code LookedAtToDevice(shardpack_loader* loader, shardpack_device* device,
                                const shardpack_device_options* options, shardpack_loader** into,
                                shardpack_error** error) {
  ExpectZerosFrom(88, options);
  return shardpack_loader_to_device(loader, device, options, into, error);
}

}  // namespace

#define shardpack_loader_open LookedAtOpen
#define shardpack_loader_to_device LookedAtToDevice
#include "shardpack.hpp"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  namespace sp = shardpack_api;
  const sp::Dataset data(argv[1]);
  const sp::Device cpu("cpu");
  sp::Loader host(data, {}, sp::LoaderOptions().set_device(cpu));
  sp::Loader loader = host.to_device(cpu);
  if (!loader.next().has_value()) return 3;
  return looked_at == 2 ? 0 : 4;
}
