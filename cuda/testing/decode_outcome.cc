#include "cuda/testing/decode_outcome.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <utility>

#include "formats/io/status_macros.h"

namespace shardpack {

using std::chrono::milliseconds;

std::string TestName() { return ::testing::UnitTest::GetInstance()->current_test_info()->name(); }

absl::StatusOr<DeviceLoader> OpenDecoding::Open(Device& device, const LoaderFixture& data,
                                                const DeviceOptions& options,
                                                const LoaderOptions& encoded) {
  ASSIGN_OR_RETURN(Loader host, data.TryOpen(memory_, encoded));
  return DeviceLoader::Open(std::move(host), options, device);
}

DeviceOptions Decoding(const LoaderFixture& data, const NvjpegFunctions* nvjpeg, int threads) {
  const LoaderOptions host = data.Options();
  DeviceOptions options{.preprocess = DevicePreprocess{.output = {}},
                        .decode = DeviceDecode{.crop = host.decode->crop,
                                               .augment_seed = host.augment_seed,
                                               .threads = threads,
                                               .nvjpeg = nvjpeg},
                        .patience = milliseconds(20'000),
                        .log = nullptr};
  return options;
}

LoaderOptions Encoded(const LoaderFixture& data, uint64_t epochs) {
  LoaderOptions options = data.Options(epochs);
  options.decode.reset();
  options.image_infos = true;
  return options;
}

Outcome RunEpochs(Device& device, const LoaderFixture& data, const DeviceOptions& options,
                  uint64_t epochs, BadSamples unread) {
  Outcome outcome;
  const auto note = [&](const absl::Status& status) {
    if (!status.ok()) outcome.errors.push_back(status);
    return status.ok();
  };
  LoaderOptions encoded = Encoded(data, epochs);
  encoded.bad_samples = unread;
  OpenDecoding loader(device, data, options, encoded);
  if (!note(loader.status())) return outcome;
  for (uint64_t ends = 0; ends < epochs;) {
    auto batch = loader->Next();
    if (!note(batch.status())) break;
    if (!batch->has_value()) {
      ++ends;
      continue;
    }
    if (!note((*batch)->WaitOn(nullptr))) continue;
    Delivered got{.info = (*batch)->info(), .labels = {}, .pixels = {}};
    const DeviceTensor& pixels = *(*batch)->pixels();
    got.pixels.resize(pixels.bytes());
    got.labels.resize((*batch)->size());
    // Memory that is not page-locked: the copies wait.
    bool read = note(device.CopyToHost(got.pixels.data(), pixels.data, pixels.bytes(), nullptr));
    read = note(device.CopyToHost(got.labels.data(), (*batch)->labels()->data,
                                  got.labels.size() * sizeof(int64_t), nullptr)) &&
           read;
    if (read) outcome.batches.push_back(std::move(got));
    note((*batch)->Release(nullptr));
  }
  outcome.stats = loader->stats();
  outcome.bad = loader->TakeBadSamples();
  return outcome;
}

void ExpectClose(const std::vector<Delivered>& got, const std::vector<HostCopy>& expected) {
  size_t n = 0;
  for (const HostCopy& host : expected) {
    if (host.ids.empty()) continue;
    ASSERT_LT(n, got.size());
    EXPECT_EQ(got[n].info.ids, host.ids);
    EXPECT_EQ(got[n].info.labels, host.labels);
    EXPECT_EQ(got[n].labels, host.labels);
    EXPECT_LE(LargestDifference(got[n].pixels, host.pixels), 1) << "batch " << n;
    ++n;
  }
  EXPECT_EQ(n, got.size());
}

void ExpectEqual(const std::vector<Delivered>& got, const std::vector<Delivered>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].info.ids, expected[i].info.ids);
    EXPECT_EQ(got[i].labels, expected[i].labels);
    EXPECT_TRUE(got[i].pixels == expected[i].pixels) << "batch " << i;
  }
}

}  // namespace shardpack
