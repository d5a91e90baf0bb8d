// TestDataset: publishes small test datasets with a format's own writer and scanner, without a
// converter.
//
//   TestDatasetOptions options{.shards = 3, .records_per_shard = 10};
//   Manifest manifest = WriteTestDataset(folder, ToyFormat(), options);
//   Reseal(folder, manifest);   // after a test changed files
//
// Thread-safety: one caller per folder.
// Errors: abort with a message, since a test without its data is meaningless.
// Units: bytes.
#ifndef SHARDPACK_FORMATS_TESTING_DATASETS_TEST_DATASET_H_
#define SHARDPACK_FORMATS_TESTING_DATASETS_TEST_DATASET_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "formats/core/format.h"
#include "formats/core/image_info.h"
#include "formats/core/manifest.h"

namespace shardpack::testing {

struct TestSample {
  std::string key = {}, source_path = {}, image = {};
  int64_t label = 0;
  // As recorded in the index.
  ImageInfo info = {.width = 8, .height = 8, .format = ImageFormat::kJpeg};
  std::vector<std::pair<std::string, std::string>> more_fields = {};  // names and bytes
};

struct TestDatasetOptions {
  size_t shards = 2, records_per_shard = 5;
  size_t min_image_bytes = 40, max_image_bytes = 4000;
  uint64_t seed = 1;         // of the pixels; keys and sizes do not depend on it
  bool skipped_file = true;  // a skipped.jsonl with one row
  // Replace the generated ones, spread over the shards in order.
  std::vector<TestSample> samples = {};
};

// The generated samples: the first bytes of a JPEG followed by random bytes.
std::vector<TestSample> MakeTestSamples(const TestDatasetOptions& options);

// Writes one shard file with the format's default layout.
void WriteTestShard(const std::string& path, const Format& format,
                    const std::vector<TestSample>& samples);

// The bytes of the index of a shard file. `samples` provides what the shard itself does not store.
std::string IndexTestShard(const std::string& path, const Format& format,
                           const std::vector<TestSample>& samples);

Manifest WriteTestDataset(const std::string& folder, const Format& format,
                          const TestDatasetOptions& options);

// Updates the sizes and hashes in `manifest` to match the current files, and writes manifest.json.
void Reseal(const std::string& folder, Manifest& manifest);
// A manifest's text, or an index's bytes, with the hash of what is in it now.
std::string ResealedManifest(std::string json);
std::string ResealedIndex(std::string bytes);

void WriteTestFile(const std::string& path, std::string_view bytes);  // replaces
std::string ReadTestFile(const std::string& path);
// A new folder in the test's temporary folder.
std::string MakeTestFolder(std::string_view name);

}  // namespace shardpack::testing

#endif  // SHARDPACK_FORMATS_TESTING_DATASETS_TEST_DATASET_H_
