// The input of a training loop: decoded, augmented batches in exact global order, resumed where the
// last run stopped.
//
//   train_loader DATASET [RANK WORLD_SIZE]
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "readers/loading/loader.h"

using namespace shardpack;

template <typename T>
T Get(absl::StatusOr<T> value) {  // an example simply exits on an error
  if (value.ok()) return *std::move(value);
  std::fprintf(stderr, "%s\n", value.status().ToString().c_str());
  std::exit(1);
}

int main(int argc, char** argv) {
  const Dataset dataset = Get(Dataset::Open(argc > 1 ? argv[1] : "shards"));
  const Rank rank = {.rank = argc > 3 ? static_cast<uint32_t>(std::atoi(argv[2])) : 0,
                     .world_size = argc > 3 ? static_cast<uint32_t>(std::atoi(argv[3])) : 1};
  const Order order = Get(
      Order::Make({.samples = dataset.size(), .seed = 7, .global_batch = 16, .tail = Tail::kPad}));

  LoaderOptions options = {.epochs = 2, .bad_samples = BadSamples::kSubstitute};
  options.decode.emplace();  // RandomResizedCrop(224) and a flip, to bytes in NHWC
  options.decode->crop.flip_probability = 0.5;

  std::optional<Cursor> resume;
  std::string saved;
  if (std::getline(std::ifstream("cursor.txt"), saved)) resume = Get(CursorFromText(saved));

  PageableMemory memory;
  Loader loader = Get(Loader::Open(dataset, order, rank, options, memory, resume));
  if (loader.cursor().epoch >= options.epochs)
    std::fputs("all epochs are done; without cursor.txt it begins anew\n", stderr);
  while (loader.cursor().epoch < options.epochs) {
    while (const std::optional<HostBatch> batch = Get(loader.Next())) {
      const PixelBatch& pixels = *batch->pixels();
      // Train(pixels.bytes, batch->labels()): pixels.bytes is [size][height][width][channels].
      std::printf("epoch %" PRIu64 " step %" PRIu64 ": %zu images of %u x %u\n", batch->epoch(),
                  batch->step(), batch->size(), pixels.width, pixels.height);
      std::ofstream("cursor.new") << CursorToText(loader.cursor()) << "\n";
      std::filesystem::rename("cursor.new", "cursor.txt");  // atomic
    }
  }
  std::fputs(loader.stats().Explain().c_str(), stderr);
}
