// Counts the images of each class of a dataset: a program of another project, on the C++20
// libraries.
#include <cinttypes>
#include <cstdio>
#include <map>

#include "readers/dataset/dataset.h"

int main(int argc, char** argv) {
  const auto dataset = shardpack::Dataset::Open(argc > 1 ? argv[1] : "shards");
  if (!dataset.ok()) {
    std::fprintf(stderr, "%s\n", dataset.status().ToString().c_str());
    return 1;
  }
  std::map<int64_t, uint64_t> images;
  for (uint32_t shard = 0; shard < dataset->shards().size(); ++shard) {
    const auto index = dataset->BorrowIndex(shard);
    if (!index.ok()) {
      std::fprintf(stderr, "%s\n", index.status().ToString().c_str());
      return 1;
    }
    for (uint64_t record = 0; record < (*index)->records(); ++record) {
      ++images[(*index)->label(record)];
    }
  }
  for (const auto& [label, count] : images) {
    std::printf("%s %" PRIu64 "\n",
                label < 0 ? "none" : dataset->classes()[static_cast<size_t>(label)].c_str(), count);
  }
}
