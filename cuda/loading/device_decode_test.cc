// DeviceLoader with images decoded for the device: the pixels are those of the Loader's own
// decoding, whatever decodes each image. On the fake device with a fake nvJPEG.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "cuda/device/host_device.h"
#include "cuda/jpeg/jpeg_decoder.h"
#include "cuda/loading/device_loader.h"
#include "cuda/testing/decode_outcome.h"
#include "cuda/testing/fake_device.h"
#include "cuda/testing/fake_nvjpeg.h"
#include "cuda/testing/loader_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "images/augment/crop.h"

namespace shardpack {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

// Memory is filled, for images that the engines skip to be found out, only while they may get some.
TEST(DeviceDecode, AnotherWayThanTheEnginesFillsNoMemory) {
  const LoaderFixture data(TestName(), {.samples = 160});
  FakeDevice fake({.max_delay_us = 0});
  FakeNvjpeg nvjpeg({.engine_us = 5000}, &fake);
  DeviceOptions options = Decoding(data, &nvjpeg.functions());
  options.decode->choose = true;
  const Outcome got = RunEpochs(fake, data, options, 2);
  EXPECT_THAT(got.errors, IsEmpty());
  ASSERT_THAT(got.stats.decode.choice, Not(HasSubstr("hardware:")));
  ASSERT_THAT(got.batches, SizeIs(40));
  EXPECT_LT(fake.calls("Fill"), 20u);
  ExpectClose(got.batches, data.Expected(data.Options(2)));
}

TEST(DeviceDecode, IsWhatTheLoaderDecodes) {
  const LoaderFixture data(TestName(), {.samples = 84, .batch = 12, .kinds = true});
  LoaderOptions host = data.Options(2);
  const std::vector<HostCopy> expected = data.Expected(host);
  for (const int engines : {2, 0}) {
    for (const int threads : {1, 3}) {
      FakeDevice fake({.seed = 4, .max_delay_us = 300});
      FakeNvjpeg nvjpeg({.engines = engines}, &fake);
      const Outcome got = RunEpochs(fake, data, Decoding(data, &nvjpeg.functions(), threads), 2);
      EXPECT_THAT(got.errors, IsEmpty());
      ExpectClose(got.batches, expected);
      const JpegDecoderStats& stats = got.stats.decode;
      EXPECT_EQ(stats.hardware + stats.hybrid + stats.cpu, 168u);
      // CMYK images are the CPU's, progressive ones never the engines'; turned ones are like
      // others.
      EXPECT_EQ(stats.cpu, 28u);
      const uint64_t hybrid = engines == 0 ? 140 : 28;
      EXPECT_GE(stats.hybrid, hybrid);
      if (threads == 1) {  // else they share
        EXPECT_EQ(stats.hybrid, hybrid);
      }
      EXPECT_EQ(stats.failed + stats.refused, 0u);
      EXPECT_EQ(got.stats.decode_backends, engines == 0
                                               ? "hardware: nvjpegCreateExV2: not on this GPU; "
                                                 "hybrid: yes"
                                               : "hardware: 2 engines; hybrid: yes");
      EXPECT_EQ(nvjpeg.misuses(), 0);
      EXPECT_EQ(nvjpeg.live(), 0);
      EXPECT_THAT(fake.misuses(), IsEmpty());
      EXPECT_EQ(fake.live_objects(), 0u) << fake.LiveObjects();
    }
  }
}

// Each way decodes as many of the first batches; what is chosen is said once.
TEST(DeviceDecode, TheFastestWayIsChosenAndSaid) {
  const LoaderFixture data(TestName(), {.samples = 40});
  const std::vector<Delivered> expected =
      RunEpochs(HostDevice::Get(), data, Decoding(data, nullptr), 4).batches;
  FakeDevice fake;
  FakeNvjpeg nvjpeg({}, &fake);
  DeviceOptions options = Decoding(data, &nvjpeg.functions());
  options.decode->choose = true;
  std::vector<std::string> lines;
  options.log = [&](const std::string& line) { lines.push_back(line); };
  const Outcome got = RunEpochs(fake, data, options, 4);
  EXPECT_THAT(got.errors, IsEmpty());
  ExpectEqual(got.batches, expected);
  EXPECT_GE(std::min({got.stats.decode.hardware, got.stats.decode.hybrid, got.stats.decode.cpu}),
            24u);
  EXPECT_THAT(got.stats.decode.choice, HasSubstr(" us an image, after 15 batches; "));
  EXPECT_THAT(lines, ::testing::ElementsAre("images are decoded by " + got.stats.decode.choice));
  EXPECT_EQ(got.stats.fallbacks, 0u);
  EXPECT_THAT(fake.misuses(), IsEmpty());
}

// The engines decode them as they lie in the file, and the preprocessing turns them.
TEST(DeviceDecode, ImagesThatExifTurnsAreForTheGpuToo) {
  const LoaderFixture data(TestName(), {.samples = 24, .turned = true});
  for (const CropKind kind : {CropKind::kRandomResized, CropKind::kCenter, CropKind::kResize}) {
    LoaderOptions host = data.Options();
    host.decode->crop.kind = kind;
    host.decode->crop.shortest_side = 22;
    FakeDevice fake;
    FakeNvjpeg nvjpeg({}, &fake);
    DeviceOptions options = Decoding(data, &nvjpeg.functions());
    options.decode->crop = host.decode->crop;
    const Outcome got = RunEpochs(fake, data, options);
    ExpectClose(got.batches, data.Expected(host));
    EXPECT_EQ(got.stats.decode.hardware, 24u);
  }
}

TEST(DeviceDecode, EveryCropAndFormatOnEveryTable) {
  const LoaderFixture data(TestName(), {.samples = 24, .kinds = true});
  for (const CropKind kind : {CropKind::kRandomResized, CropKind::kCenter, CropKind::kResize}) {
    LoaderOptions host = data.Options();
    host.decode->crop.kind = kind;
    host.decode->crop.shortest_side = 22;
    FakeDevice fake;
    FakeNvjpeg nvjpeg({}, &fake);
    DeviceOptions options = Decoding(data, &nvjpeg.functions());
    options.decode->crop = host.decode->crop;
    ExpectClose(RunEpochs(fake, data, options).batches, data.Expected(host));
    options.preprocess->output = {.type = PixelType::kF32,
                                  .layout = PixelLayout::kNchw,
                                  .mean = {0.4f, 0.5f, 0.6f},
                                  .std = {0.2f, 0.25f, 0.3f}};
    const std::vector<Delivered> on_device = RunEpochs(fake, data, options).batches;
    ASSERT_THAT(on_device, SizeIs(3));
    options.decode->nvjpeg = nullptr;
    ExpectEqual(RunEpochs(HostDevice::Get(), data, options).batches, on_device);
    // A device that has no kernel.
    fake.FailEntry("Preprocess", kDeviceNoKernelImage);
    const Outcome without = RunEpochs(fake, data, options);
    EXPECT_THAT(without.stats.why_fallback, HasSubstr("preprocessing by the CPU"));
    ExpectEqual(without.batches, on_device);
  }
}

// Bytes that are copied to the device when the CPU decodes everything.
uint64_t CopiedByCpu(const LoaderFixture& data, DeviceOptions options, Outcome* got) {
  options.decode->nvjpeg = nullptr;
  FakeDevice fake({.seed = 2, .max_delay_us = 100});
  *got = RunEpochs(fake, data, options);
  EXPECT_THAT(got->errors, IsEmpty());
  EXPECT_THAT(fake.misuses(), IsEmpty());
  return fake.copied_bytes();
}

// The CPU decodes and copies what the crop takes and no more; the pixels are those of whole images,
// which nvJPEG gives.
TEST(DeviceDecode, TheCpuDecodesWhatTheCropTakes) {
  const LoaderFixture kinds(TestName(), {.samples = 48, .kinds = true, .min_side = 90});
  const LoaderFixture turned(TestName() + "Turned", {.samples = 48, .turned = true});
  for (const LoaderFixture* data : {&kinds, &turned}) {
    for (const uint8_t channels : {uint8_t{1}, uint8_t{3}}) {
      for (const PixelLayout layout : {PixelLayout::kNhwc, PixelLayout::kNchw}) {
        std::vector<uint64_t> copied;
        for (const CropKind kind :
             {CropKind::kResize, CropKind::kRandomResized, CropKind::kCenter}) {
          FakeDevice fake;
          FakeNvjpeg nvjpeg({}, &fake);
          DeviceOptions options = Decoding(*data, &nvjpeg.functions(), 2);
          options.decode->crop.kind = kind;
          options.decode->crop.shortest_side = 22;
          options.decode->channels = channels;
          options.preprocess->output = {.type = PixelType::kF32, .layout = layout};
          const Outcome whole = RunEpochs(fake, *data, options);
          EXPECT_THAT(whole.errors, IsEmpty());
          EXPECT_GE(whole.stats.decode.hardware + whole.stats.decode.hybrid, 40u);
          Outcome got;
          copied.push_back(CopiedByCpu(*data, options, &got));
          ExpectEqual(got.batches, whole.batches);
          options.decode->nvjpeg = nullptr;
          ExpectEqual(RunEpochs(HostDevice::Get(), *data, options).batches, whole.batches);
        }
        uint64_t saved = 0;
        const CropOptions crop = data->Options().decode->crop;
        for (uint64_t id = 0; id < 48; ++id) {
          const auto* const file = reinterpret_cast<const std::byte*>(data->image(id).data());
          const auto info = CheckImage({file, data->image(id).size()}, {}, 1'000'000);
          ASSERT_TRUE(info.ok()) << info.status();
          const auto [width, height] = SizeOf(*info, true);
          const PixelBox box = ChooseCrop(crop, width, height, {9, 0, id}).box;
          const double part = (box.right - box.left) * (box.bottom - box.top);
          saved += (uint64_t{width} * height - static_cast<uint64_t>(part)) * channels;
        }
        EXPECT_EQ(copied[0] - copied[1], saved);
        EXPECT_EQ(copied[0], copied[2]) << "the filter needs what is around the crop";
      }
    }
  }
}

// In one batch the engines decode whole images and threads of the CPU parts of others, among them
// some that the engines skip.
TEST(DeviceDecode, EnginesAndTheCpuShareABatch) {
  const LoaderFixture data(TestName(), {.samples = 96, .batch = 32, .min_side = 90});
  const Outcome expected = RunEpochs(HostDevice::Get(), data, Decoding(data, nullptr), 3);
  FakeDevice fake({.seed = 5, .max_delay_us = 100});
  FakeNvjpegOptions engines{.engines = 1, .engine_us = 1000};
  engines.skips = [&](std::span<const std::byte> file) { return file.size() % 7 == 0; };
  FakeNvjpeg nvjpeg(engines, &fake);
  DeviceOptions options = Decoding(data, &nvjpeg.functions(), /*threads=*/3);
  options.decode->use_hybrid = false;
  const Outcome got = RunEpochs(fake, data, options, 3);
  EXPECT_THAT(got.errors, IsEmpty());
  ExpectEqual(got.batches, expected.batches);
  EXPECT_GT(got.stats.decode.hardware, 0u);
  EXPECT_GT(got.stats.decode.skipped, 0u);
  EXPECT_GT(got.stats.decode.cpu, got.stats.decode.skipped);
  EXPECT_EQ(nvjpeg.misuses(), 0);
  EXPECT_THAT(fake.misuses(), IsEmpty());
}

// Damage after the crop is not seen, by a Loader either.
TEST(DeviceDecode, DamageAfterTheCropIsNotSeen) {
  std::vector<size_t> cut;
  for (size_t id = 0; id < 48; id += 2) cut.push_back(id);
  const LoaderFixture data(TestName(), {.samples = 48, .min_side = 200, .cut = cut});
  DeviceOptions options = Decoding(data, nullptr);
  options.decode->crop.max_scale = 0.1;
  options.bad_images = {.policy = BadSamples::kSubstitute, .most = 48};
  Outcome got;
  (void)CopiedByCpu(data, options, &got);
  std::set<uint64_t> bad, expected;
  for (const BadSample& one : got.bad) bad.insert(one.id);
  PageableMemory memory;
  LoaderOptions host = data.Options();
  host.decode->crop.max_scale = 0.1;
  host.bad_samples = BadSamples::kSubstitute;
  Loader loader = data.Open(memory, host);
  for (auto batch = loader.Next(); batch.ok() && batch->has_value(); batch = loader.Next()) {
  }
  for (const BadSample& one : loader.TakeBadSamples()) expected.insert(one.id);
  EXPECT_EQ(bad, expected);
  EXPECT_THAT(bad, SizeIs(AllOf(::testing::Gt(0u), ::testing::Lt(24u))));
}

TEST(DeviceDecode, BadImages) {
  const LoaderFixture data(TestName(),
                           {.samples = 24, .kinds = true, .cut = {2, 3, 7, 11, 14, 20}});
  const LoaderFixture whole(TestName() + "Whole", {.samples = 24, .kinds = true});
  FakeDevice fake;
  FakeNvjpeg nvjpeg({}, &fake);
  DeviceOptions options = Decoding(data, &nvjpeg.functions());
  const Outcome failed = RunEpochs(fake, data, options);
  ASSERT_THAT(failed.errors, SizeIs(1));
  EXPECT_EQ(failed.errors[0].code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(failed.errors[0].message()),
              AllOf(HasSubstr(" record "), HasSubstr(" key ")));

  options.bad_images = {.policy = BadSamples::kSubstitute, .most = 6};
  const Outcome got = RunEpochs(fake, data, options);
  EXPECT_THAT(got.errors, IsEmpty());
  EXPECT_THAT(got.bad, SizeIs(6));
  EXPECT_EQ(got.stats.decode.failed, 6u);
  const std::vector<Delivered> expected = RunEpochs(fake, whole, options).batches;
  ASSERT_EQ(got.batches.size(), expected.size());
  const size_t image = got.batches[0].pixels.size() / 8;
  std::set<uint64_t> wanted;
  for (size_t b = 0; b < got.batches.size(); ++b) {
    const BatchInfo& info = got.batches[b].info;
    for (size_t slot = 0; slot < 8; ++slot) {
      size_t from = slot;
      if (info.status[slot].state == SampleState::kSubstituted) {
        EXPECT_EQ(info.status[slot].wanted_id, expected[b].info.ids[slot]);
        EXPECT_THAT(info.status[slot].why, HasSubstr(" record "));
        wanted.insert(info.status[slot].wanted_id);
        do {
          from = (from + 1) % 8;
        } while (info.status[from].state == SampleState::kSubstituted);
      }
      EXPECT_EQ(info.ids[slot], expected[b].info.ids[from]);
      EXPECT_EQ(got.batches[b].labels[slot], expected[b].labels[from]);
      EXPECT_EQ(got.batches[b].pixels.substr(slot * image, image),
                expected[b].pixels.substr(from * image, image));
    }
  }
  EXPECT_EQ(wanted, (std::set<uint64_t>{2, 3, 7, 11, 14, 20}));

  options.bad_images.most = 5;
  const Outcome too_many = RunEpochs(fake, data, options);
  ASSERT_THAT(too_many.errors, SizeIs(1));
  EXPECT_THAT(std::string(too_many.errors[0].message()), HasSubstr("more than 5 bad images"));

  const LoaderFixture none(TestName() + "None", {.samples = 2, .batch = 2, .cut = {0, 1}});
  options = Decoding(none, &nvjpeg.functions());
  options.bad_images.policy = BadSamples::kSubstitute;
  const Outcome no_good = RunEpochs(fake, none, options);
  ASSERT_THAT(no_good.errors, SizeIs(1));
  EXPECT_THAT(std::string(no_good.errors[0].message()),
              HasSubstr("no image of a batch can be used"));
}

// A substitute that cannot be decoded is substituted again, for the one that was wanted first.
TEST(DeviceDecode, SubstitutesOfSubstitutes) {
  std::vector<size_t> flipped, cut;
  for (size_t i = 0; i < 24; ++i) {
    if (i % 4 == 0) flipped.push_back(i);
    if (i % 4 == 1) cut.push_back(i);
  }
  const LoaderFixture data(TestName(), {.samples = 24, .cut = cut, .flipped = flipped});
  DeviceOptions options = Decoding(data, nullptr);
  options.bad_images.policy = BadSamples::kSubstitute;
  const Outcome got = RunEpochs(HostDevice::Get(), data, options, 1, BadSamples::kSubstitute);
  EXPECT_THAT(got.errors, IsEmpty());
  std::multiset<uint64_t> wanted;
  for (const Delivered& batch : got.batches) {
    for (size_t slot = 0; slot < batch.info.ids.size(); ++slot) {
      EXPECT_GE(batch.info.ids[slot] % 4, 2u);
      const SampleStatus& status = batch.info.status[slot];
      wanted.insert(status.state == SampleState::kSubstituted ? status.wanted_id
                                                              : batch.info.ids[slot]);
    }
  }
  EXPECT_THAT(wanted, SizeIs(24));
  for (uint64_t id = 0; id < 24; ++id) EXPECT_EQ(wanted.count(id), 1u) << id;
}

// Each with what is known of the image that stands in.
TEST(DeviceDecode, SubstitutesOfTheLoader) {
  const LoaderFixture data(TestName(), {.samples = 24, .kinds = true, .flipped = {1, 8, 9, 17}});
  FakeDevice fake;
  FakeNvjpeg nvjpeg({}, &fake);
  LoaderOptions host = data.Options();
  host.bad_samples = BadSamples::kSubstitute;
  const std::vector<HostCopy> expected = data.Expected(host);
  const Outcome got =
      RunEpochs(fake, data, Decoding(data, &nvjpeg.functions()), 1, BadSamples::kSubstitute);
  EXPECT_THAT(got.errors, IsEmpty());
  EXPECT_THAT(got.bad, SizeIs(4));
  ExpectClose(got.batches, expected);
}

// Memory for decoded images grows while the device still reads what it held.
TEST(DeviceDecode, ImagesOfVerySizes) {
  const LoaderFixture data(TestName(), {.samples = 120, .batch = 1, .spread = 400});
  const std::vector<Delivered> expected =
      RunEpochs(HostDevice::Get(), data, Decoding(data, nullptr)).batches;
  for (uint64_t seed = 0; seed < 4; ++seed) {
    FakeDevice fake({.seed = seed, .max_delay_us = 2000});
    FakeNvjpeg nvjpeg({.engines = seed % 2 == 0 ? 2 : 0}, &fake);
    const Outcome got = RunEpochs(fake, data, Decoding(data, &nvjpeg.functions()));
    EXPECT_THAT(got.errors, IsEmpty());
    ExpectEqual(got.batches, expected);
    EXPECT_GT(fake.calls("Allocate"), 4u + 2u) << "it grew, and again";
  }
}

// Four batches are released behind work of the consumer that ends only when the engines have begun
// two more: the first of these cannot be preprocessed before, as its memory is one of the four.
TEST(DeviceDecode, TheNextBatchIsDecodedWhileOneWaitsToBePreprocessed) {
  const LoaderFixture data(TestName(), {.samples = 40});
  std::atomic<uint64_t> begun{0}, wanted{UINT64_MAX};
  std::atomic<bool> in_time{false};
  FakeDevice fake({.max_delay_us = 100});
  FakeNvjpeg nvjpeg({.engine_work = [&] { ++begun; }}, &fake);
  OpenDecoding loader(fake, data, Decoding(data, &nvjpeg.functions()), Encoded(data, 0));
  ASSERT_TRUE(loader.ok()) << loader.status();
  const Stream stream = *fake.CreateStream();
  uint64_t given = 0;
  const auto take = [&](uint64_t batches) {
    for (const uint64_t end = given + batches; given < end;) {
      auto batch = loader->Next();
      ASSERT_TRUE(batch.ok()) << batch.status();
      if (!batch->has_value()) continue;
      ++given;
      ASSERT_TRUE((*batch)->WaitOn(stream).ok());
      ASSERT_TRUE((*batch)->Release(stream).ok());
    }
  };
  take(8);
  fake.Enqueue(stream, [&] {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!in_time.load() && std::chrono::steady_clock::now() < end) {
      in_time.store(begun.load() >= wanted.load());
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  ASSERT_EQ(loader->stats().buffers, 4u);
  take(4);
  wanted.store(given + 2);
  ASSERT_TRUE(fake.Synchronize(stream).ok());
  EXPECT_TRUE(in_time.load());
  loader.Close();
  EXPECT_TRUE(fake.DestroyStream(stream).ok());
  EXPECT_THAT(fake.misuses(), IsEmpty());
}

TEST(DeviceDecode, ASteadyRunAllocatesNothing) {
  const LoaderFixture data(TestName(), {.samples = 40});
  FakeDevice fake({.max_delay_us = 100});
  FakeNvjpeg nvjpeg({}, &fake);
  OpenDecoding loader(fake, data, Decoding(data, &nvjpeg.functions()), Encoded(data, 0));
  ASSERT_TRUE(loader.ok()) << loader.status();
  uint64_t allocations = 0, syncs = 0;
  for (int i = 0; i < 240; ++i) {
    if (i == 40) allocations = fake.allocations(), syncs = fake.host_syncs();
    auto batch = loader->Next();
    ASSERT_TRUE(batch.ok()) << batch.status();
    if (!batch->has_value()) continue;
    ASSERT_TRUE((*batch)->WaitOn(nullptr).ok());
    ASSERT_TRUE((*batch)->Release(nullptr).ok());
  }
  EXPECT_EQ(fake.allocations(), allocations);
  EXPECT_EQ(fake.host_syncs(), syncs);
  EXPECT_GE(loader->stats().decode.hardware, 1500u);
}

// Eight ranks of a node do not each start as many threads as it has cores.
TEST(DeviceDecodeTest, RanksShareTheCores) {
  const LoaderFixture data(TestName(), {.jpegs = true});
  FakeDevice fake;
  ::setenv("LOCAL_WORLD_SIZE", "1000", 1);
  OpenDecoding loader(fake, data, Decoding(data, nullptr, /*threads=*/0), Encoded(data));
  ASSERT_TRUE(loader.ok()) << loader.status();
  while ((*loader->Next()).has_value()) {
  }
  const DeviceLoaderStats stats = loader->stats();
  ::unsetenv("LOCAL_WORLD_SIZE");
  EXPECT_EQ(stats.ranks, 1000);
  EXPECT_EQ(stats.decode_threads, 1);
  // What the environment becomes later changes nothing.
  EXPECT_EQ(loader->stats().decode_threads, 1);
  EXPECT_EQ(loader->stats().ranks, 1000);
}

}  // namespace
}  // namespace shardpack
