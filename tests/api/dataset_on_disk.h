// A small dataset of JPEGs for tests of the C interface, and what callers know about it.
//
//   const std::vector<TestSample> samples = WriteJpegs(folder, {.shards = 2, .masks = true});
//   DamageImage(*Dataset::Open(folder), 5);
//
// Errors: end the test.
#ifndef SHARDPACK_TESTS_API_DATASET_ON_DISK_H_
#define SHARDPACK_TESTS_API_DATASET_ON_DISK_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "formats/testing/datasets/test_dataset.h"
#include "readers/dataset/dataset.h"

namespace shardpack::testing {

struct JpegsOptions {
  size_t shards = 3, records_per_shard = 10;
  bool masks = false;  // every sample but each third one has a field "mask", a gray PNG
};

std::vector<TestSample> WriteJpegs(const std::string& folder, const JpegsOptions& options = {});

std::string EncodedMask(uint32_t width, uint32_t height, uint32_t seed);

// Changes one byte of a sample's image.
void DamageImage(const Dataset& dataset, uint64_t id);

struct DatasetOnDisk {
  std::string folder;
  std::vector<TestSample> samples;
  uint64_t damaged = 0;  // whose image is not what was packed
};

// Two shards with masks and one damaged image.
DatasetOnDisk WriteDamagedDataset(const std::string& folder);

}  // namespace shardpack::testing

#endif  // SHARDPACK_TESTS_API_DATASET_ON_DISK_H_
