// Reads every sample of a packed dataset of any format, and verifies each byte against its hash.
#include <cinttypes>
#include <cstdint>
#include <cstdio>

#include "readers/dataset/dataset.h"

int main(int argc, char** argv) {
  const absl::StatusOr<shardpack::Dataset> dataset =
      shardpack::Dataset::Open(argc > 1 ? argv[1] : "shards");
  if (!dataset.ok()) {
    std::fprintf(stderr, "%s\n", dataset.status().ToString().c_str());
    return 1;
  }
  uint64_t bytes = 0, labels = 0;
  for (uint64_t id = 0; id < dataset->size(); ++id) {
    const absl::StatusOr<shardpack::OwnedSample> sample = dataset->Read(id);
    if (!sample.ok()) {
      std::fprintf(stderr, "%s\n", sample.status().ToString().c_str());
      return 1;
    }
    bytes += sample->fields[0].bytes.size();  // a complete JPEG, PNG, ... file
    labels += static_cast<uint64_t>(sample->label);
  }
  std::printf("%" PRIu64 " images, %" PRIu64 " bytes, labels sum to %" PRIu64 "\n", dataset->size(),
              bytes, labels);
}
