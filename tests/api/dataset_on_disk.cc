#include "tests/api/dataset_on_disk.h"

#include "formats/testing/datasets/toy_format.h"
#include "formats/testing/fault_injection.h"
#include "images/codecs/decode_testing.h"
#include "images/codecs/encode.h"

namespace shardpack::testing {

std::vector<TestSample> WriteJpegs(const std::string& folder, const JpegsOptions& jpegs) {
  TestDatasetOptions options{.shards = jpegs.shards, .records_per_shard = jpegs.records_per_shard};
  options.samples = MakeTestSamples(options);
  for (uint32_t i = 0; i < options.samples.size(); ++i) {
    const uint32_t width = 40 + i % 32, height = 90 - i % 32;
    const Image jpeg = EncodeJpeg(MakePattern(width, height, 3, i), {.sampling = {2, 2}});
    options.samples[i].image.assign(jpeg.begin(), jpeg.end());
    options.samples[i].info = {.width = width, .height = height, .format = ImageFormat::kJpeg};
    if (jpegs.masks && i % 3 != 0)
      options.samples[i].more_fields.emplace_back("mask", EncodedMask(width, height, i));
  }
  WriteTestDataset(folder, ToyFormat(), options);
  return options.samples;
}

std::string EncodedMask(uint32_t width, uint32_t height, uint32_t seed) {
  const TestPixels pixels = MakePattern(width, height, 1, seed);
  ImageEncoder encoder;
  return std::string(AsText(*encoder.Encode(pixels.view(), {.format = ImageFormat::kPng})));
}

void DamageImage(const Dataset& dataset, uint64_t id) {
  const SampleLocation at = dataset.Locate(id);
  const Extent extent = dataset.index(at.shard)->field(at.record, 0);
  const std::string path = dataset.shards()[at.shard].data_path;
  std::string bytes = ReadTestFile(path);
  bytes[extent.offset + extent.length / 2] ^= 0x10;
  WriteTestFile(path, bytes);
}

DatasetOnDisk WriteDamagedDataset(const std::string& folder) {
  const DatasetOnDisk disk = {
      .folder = folder, .samples = WriteJpegs(folder, {.shards = 2, .masks = true}), .damaged = 5};
  DamageImage(*Dataset::Open(folder), disk.damaged);
  return disk;
}

}  // namespace shardpack::testing
