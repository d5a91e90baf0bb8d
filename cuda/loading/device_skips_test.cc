// DeviceLoader with JPEG engines that say that they have decoded an image, and have not: no batch
// has the pixels that were in its memory before. On the fake device with a fake nvJPEG.
#include <chrono>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "cuda/device/host_device.h"
#include "cuda/loading/device_loader.h"
#include "cuda/testing/decode_outcome.h"
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
    EXPECT_THAT(got.errors, IsEmpty());
    ExpectEqual(got.batches, expected.batches);
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
  EXPECT_THAT(got.errors, IsEmpty());
  ExpectEqual(got.batches, expected.batches);
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
    ASSERT_EQ(got.batches.size(), expected.batches.size());
    const size_t image = got.batches[0].pixels.size() / 8;
    std::set<uint64_t> wanted;
    for (size_t b = 0; b < got.batches.size(); ++b) {
      const BatchInfo& info = got.batches[b].info;
      for (size_t slot = 0; slot < 8; ++slot) {
        if (info.status[slot].state == SampleState::kSubstituted) {
          EXPECT_EQ(info.status[slot].wanted_id, expected.batches[b].info.ids[slot]);
          wanted.insert(info.status[slot].wanted_id);
        }
        size_t from = 0;
        while (from < 8 && expected.batches[b].info.ids[from] != info.ids[slot]) ++from;
        ASSERT_LT(from, 8u);
        EXPECT_EQ(info.labels[slot], expected.batches[b].info.labels[from]);
        EXPECT_EQ(got.batches[b].labels[slot], expected.batches[b].labels[from]);
        EXPECT_TRUE(got.batches[b].pixels.substr(slot * image, image) ==
                    expected.batches[b].pixels.substr(from * image, image));
      }
    }
    EXPECT_EQ(wanted, std::set<uint64_t>(cut.begin(), cut.end()));
  }
}

// An image that stood in for another one turns out to be bad when no other is left: not even those
// that it stands in for.
TEST(DeviceSkips, TheLastImageOfABatchMayBeBadToo) {
  const LoaderFixture data(TestName(),
                           {.samples = 6, .batch = 3, .cut = {0, 1, 2, 3}, .ended = {4}});
  bool met = false;
  for (uint64_t epoch = 0; epoch < 20 && !met; ++epoch) {
    std::vector<uint64_t> first(3);
    data.order().Ids(epoch, 0, 0, first);
    const std::set<uint64_t> ids(first.begin(), first.end());
    met = !ids.contains(5) && ids.contains(4);
    if (!met) continue;
    FakeDevice fake({.max_delay_us = 200});
    FakeNvjpeg nvjpeg({}, &fake);
    DeviceOptions options = Decoding(data, &nvjpeg.functions());
    options.bad_images = {.policy = BadSamples::kSubstitute, .most = 100};
    PinnedMemory memory(fake, {.log = nullptr});
    auto loader =
        DeviceLoader::Open(data.Open(memory, Encoded(data, epoch + 1),
                                     MakeCursor(data.dataset().identity(), data.order(), epoch, 0)),
                           options, fake);
    ASSERT_TRUE(loader.ok()) << loader.status();
    const auto batch = loader->Next();
    ASSERT_FALSE(batch.ok()) << ::testing::PrintToString((*batch)->info().ids);
    EXPECT_TRUE(absl::IsDataLoss(batch.status())) << batch.status();
    EXPECT_THAT(std::string(batch.status().message()),
                HasSubstr("no image of a batch can be used"));
  }
  EXPECT_TRUE(met);
}

// The last batch is not kept back until there is memory for the next one.
TEST(DeviceSkips, ABatchComesThoughTheConsumerHoldsAllOthers) {
  const LoaderFixture data(TestName(), {.samples = 40});
  FakeDevice fake;
  FakeNvjpeg nvjpeg({}, &fake);
  DeviceOptions options = Decoding(data, &nvjpeg.functions());
  options.prefetch_batches = 1;
  options.patience = milliseconds(3'000);
  OpenDecoding loader(fake, data, options, Encoded(data));
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
