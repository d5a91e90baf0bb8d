// Decoded batches of a packed dataset for a training loop in C++17: one epoch, in exact order.
//
//   c++ -std=c++17 loader.cc $(pkg-config --cflags --libs shardpack) -o loader && ./loader DATASET
#include <cstdint>
#include <cstdio>
#include <shardpack.hpp>

using namespace shardpack_api;

int main(int argc, char** argv) try {
  const Dataset dataset(argc > 1 ? argv[1] : "shards");
  const auto order = OrderOptions().set_seed(7).set_global_batch(16).set_tail(Tail::kPad);
  // RandomResizedCrop(224) and a flip, to bytes in NHWC.
  const auto decode = Decode().set_width(224).set_height(224).set_flip_probability(0.5);
  Loader loader(dataset, order, LoaderOptions().set_decode(decode));

  std::uint64_t images = 0;
  for (const Batch& batch : loader.epoch()) {
    // Train(batch.pixels().data(), batch.labels()): [slots][height][width][channels].
    for (std::size_t slot = 0; slot < batch.slots(); ++slot) {
      images += batch.state(slot) != State::kPadding;
    }
  }
  std::printf("shardpack %s: %ju of %ju images\n", shardpack_version(), std::uintmax_t{images},
              std::uintmax_t{dataset.samples()});
} catch (const Error& error) {
  std::fprintf(stderr, "%s: %s\n", shardpack_code_name(static_cast<shardpack_code>(error.code())),
               error.what());
  return 1;
}
