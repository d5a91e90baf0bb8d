// DeviceLoader with JPEG engines that say that they have decoded an image, and have not: no batch
// has the pixels that were in its memory before. On the fake device with a fake nvJPEG.
#include <chrono>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "cuda/device/host_device.h"
#include "cuda/loading/device_loader.h"
#include "cuda/testing/fake_device.h"
#include "cuda/testing/fake_nvjpeg.h"
#include "cuda/testing/loader_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::string TestName() { return ::testing::UnitTest::GetInstance()->current_test_info()->name(); }

DeviceOptions Decoding(const LoaderFixture& data, const NvjpegFunctions* nvjpeg) {
  const LoaderOptions host = data.Options();
  return {.preprocess = DevicePreprocess{.output = {}},
          .decode = DeviceDecode{.crop = host.decode->crop,
                                 .augment_seed = host.augment_seed,
                                 .threads = 1,
                                 .nvjpeg = nvjpeg},
          .patience = milliseconds(20'000),
          .log = nullptr};
}

LoaderOptions Encoded(const LoaderFixture& data, uint64_t epochs) {
  LoaderOptions options = data.Options(epochs);
  options.decode.reset();
  options.image_infos = true;
  return options;
}

struct Outcome {
  std::vector<absl::Status> errors;
  std::vector<BatchInfo> infos;
  std::vector<std::string> pixels, labels;
  std::vector<BadSample> bad;
  DeviceLoaderStats stats;
};

Outcome RunEpochs(Device& device, const LoaderFixture& data, const DeviceOptions& options,
                  uint64_t epochs) {
  Outcome outcome;
  PinnedMemory memory(device, {.log = nullptr});
  auto loader = DeviceLoader::Open(data.Open(memory, Encoded(data, epochs)), options, device);
  EXPECT_TRUE(loader.ok()) << loader.status();
  for (uint64_t ends = 0; ends < epochs;) {
    auto batch = loader->Next();
    if (!batch.ok()) {
      outcome.errors.push_back(batch.status());
      break;
    }
    if (!batch->has_value()) {
      ++ends;
      continue;
    }
    EXPECT_TRUE((*batch)->WaitOn(nullptr).ok());
    const auto read = [&](const DeviceTensor& tensor) {
      std::string bytes(tensor.bytes(), '\0');
      EXPECT_TRUE(device.CopyToHost(bytes.data(), tensor.data, bytes.size(), nullptr).ok());
      return bytes;
    };
    outcome.infos.push_back((*batch)->info());
    outcome.pixels.push_back(read(*(*batch)->pixels()));
    outcome.labels.push_back(read(*(*batch)->labels()));
    EXPECT_TRUE((*batch)->Release(nullptr).ok());
  }
  outcome.stats = loader->stats();
  outcome.bad = loader->TakeBadSamples();
  return outcome;
}

void ExpectEqual(const Outcome& got, const Outcome& expected) {
  EXPECT_THAT(got.errors, IsEmpty());
  ASSERT_EQ(got.pixels.size(), expected.pixels.size());
  for (size_t i = 0; i < got.pixels.size(); ++i) {
    EXPECT_EQ(got.infos[i].ids, expected.infos[i].ids);
    EXPECT_EQ(got.infos[i].labels, expected.infos[i].labels);
    EXPECT_TRUE(got.labels[i] == expected.labels[i]) << "batch " << i;
    EXPECT_TRUE(got.pixels[i] == expected.pixels[i]) << "batch " << i;
  }
}

// Tells the images of these samples from others.
auto OneOf(const LoaderFixture& data, const std::set<uint64_t>& ids) {
  return [&data, ids](std::span<const std::byte> file) {
    for (const uint64_t id : ids) {
      const std::string& image = data.image(id);
      if (image.size() == file.size() &&
          std::memcmp(image.data(), file.data(), image.size()) == 0) {
        return true;
      }
    }
    return false;
  };
}

TEST(DeviceSkips, SkippedImagesAreDecodedElsewhere) {
  const LoaderFixture data(TestName(), {.samples = 40});
  const Outcome expected = RunEpochs(HostDevice::Get(), data, Decoding(data, nullptr), 3);
  for (uint64_t seed = 0; seed < 6; ++seed) {
    FakeDevice fake({.seed = seed, .max_delay_us = 300});
    FakeNvjpegOptions engines;
    engines.skips = OneOf(data, {3, 17, 18, 39});
    FakeNvjpeg nvjpeg(engines, &fake);
    DeviceOptions options = Decoding(data, &nvjpeg.functions());
    std::vector<std::string> lines;
    options.log = [&](const std::string& line) { lines.push_back(line); };
    const Outcome got = RunEpochs(fake, data, options, 3);
    ExpectEqual(got, expected);
    EXPECT_EQ(got.stats.decode.skipped, 4u) << "each once, and not offered again";
    EXPECT_EQ(got.stats.decode.hardware, 3 * 36u);
    EXPECT_EQ(got.stats.decode.hardware + got.stats.decode.hybrid + got.stats.decode.cpu, 120u);
    EXPECT_THAT(lines, ElementsAre(HasSubstr("said that they had decoded an image and had not")));
    EXPECT_THAT(fake.misuses(), IsEmpty());
    EXPECT_EQ(nvjpeg.misuses(), 0);
    EXPECT_EQ(fake.live_objects(), 0u) << fake.LiveObjects();
  }
}

TEST(DeviceSkips, EnginesThatSkipManyImagesAreGivenUp) {
  const LoaderFixture data(TestName(), {.samples = 96});
  std::set<uint64_t> all;
  for (uint64_t id = 8; id < 96; ++id) all.insert(id);
  const Outcome expected = RunEpochs(HostDevice::Get(), data, Decoding(data, nullptr), 1);
  FakeDevice fake;
  FakeNvjpegOptions engines;
  engines.skips = OneOf(data, all);
  FakeNvjpeg nvjpeg(engines, &fake);
  const Outcome got = RunEpochs(fake, data, Decoding(data, &nvjpeg.functions()), 1);
  ExpectEqual(got, expected);
  EXPECT_THAT(got.stats.decode_backends, HasSubstr("given up: they skipped 65 images"));
}

// One that nobody can decode is found out late, when another one stands in for it and for those
// that it stood in for itself.
TEST(DeviceSkips, SkippedImagesThatAreBadAreSubstituted) {
  const std::vector<size_t> cut = {2, 3, 7, 11, 14, 20};
  const LoaderFixture data(TestName(), {.samples = 24, .cut = cut, .cut_with_end = true});
  const LoaderFixture whole(TestName() + "Whole", {.samples = 24});
  for (uint64_t seed = 0; seed < 4; ++seed) {
    FakeDevice fake({.seed = seed, .max_delay_us = 200});
    FakeNvjpeg nvjpeg({}, &fake);
    DeviceOptions options = Decoding(data, &nvjpeg.functions());
    const Outcome failed = RunEpochs(fake, data, options, 1);
    ASSERT_THAT(failed.errors, SizeIs(1));
    EXPECT_EQ(failed.errors[0].code(), absl::StatusCode::kDataLoss) << failed.errors[0];
    EXPECT_THAT(std::string(failed.errors[0].message()), HasSubstr(" record "));
    options.bad_images = {.policy = BadSamples::kSubstitute, .most = 6};
    const Outcome got = RunEpochs(fake, data, options, 1);
    EXPECT_THAT(got.errors, IsEmpty());
    EXPECT_THAT(got.bad, SizeIs(6));
    const Outcome expected = RunEpochs(fake, whole, options, 1);
    ASSERT_EQ(got.infos.size(), expected.infos.size());
    const size_t image = got.pixels[0].size() / 8;
    std::set<uint64_t> wanted;
    for (size_t b = 0; b < got.infos.size(); ++b) {
      const BatchInfo& info = got.infos[b];
      for (size_t slot = 0; slot < 8; ++slot) {
        if (info.status[slot].state == SampleState::kSubstituted) {
          EXPECT_EQ(info.status[slot].wanted_id, expected.infos[b].ids[slot]);
          wanted.insert(info.status[slot].wanted_id);
        }
        size_t from = 0;
        while (from < 8 && expected.infos[b].ids[from] != info.ids[slot]) ++from;
        ASSERT_LT(from, 8u);
        EXPECT_EQ(info.labels[slot], expected.infos[b].labels[from]);
        EXPECT_EQ(got.labels[b].substr(slot * 8, 8), expected.labels[b].substr(from * 8, 8));
        EXPECT_TRUE(got.pixels[b].substr(slot * image, image) ==
                    expected.pixels[b].substr(from * image, image));
      }
    }
    EXPECT_EQ(wanted, std::set<uint64_t>(cut.begin(), cut.end()));
  }
}

// The last batch is not kept back until there is memory for the next one.
TEST(DeviceSkips, ABatchComesThoughTheConsumerHoldsAllOthers) {
  const LoaderFixture data(TestName(), {.samples = 40});
  FakeDevice fake;
  FakeNvjpeg nvjpeg({}, &fake);
  DeviceOptions options = Decoding(data, &nvjpeg.functions());
  options.prefetch_batches = 1;
  options.patience = milliseconds(3'000);
  PinnedMemory memory(fake, {.log = nullptr});
  auto loader = DeviceLoader::Open(data.Open(memory, Encoded(data, 1)), options, fake);
  ASSERT_TRUE(loader.ok()) << loader.status();
  std::vector<DeviceBatch> held;
  while (held.size() < loader->stats().buffers) {
    auto batch = loader->Next();
    ASSERT_TRUE(batch.ok() && batch->has_value()) << batch.status();
    held.push_back(**std::move(batch));
  }
  EXPECT_THAT(held, SizeIs(3));
}

}  // namespace
}  // namespace shardpack
