// Augmentation within the launch that preprocesses: the bytes of ProgramRunner, by the host build
// of the kernel; and in a DeviceLoader, where what a device cannot do is the CPU's, and said.
#include "cuda/loading/device_augment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "augment/plan.h"
#include "augment/program.h"
#include "cuda/device/host_device.h"
#include "cuda/testing/decode_outcome.h"
#include "cuda/testing/fake_device.h"
#include "cuda/testing/fake_nvjpeg.h"
#include "cuda/testing/preprocess_testing.h"

namespace shardpack {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

AugmentPlan PlanOf(const std::string& text) {
  absl::StatusOr<AugmentPlan> plan = AugmentPlan::Parse(text);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return *std::move(plan);
}

// All that is done in one launch, with room for no more; what takes rounds, between such; and what
// people use.
constexpr char kPixels[] =
    "brightness(.3..1.8) saturation(0..2.5, p=.8) posterize(1..8, p=.5) hue(-.5..0.5) "
    "solarize(0..255, p=.5) invert(p=.5) grayscale(p=.2) erase(p=.7, value=random)";
constexpr char kRounds[] =
    "contrast(.2..2, p=.7) hue(.1) equalize(p=.5) sharpness(0..2, p=.6) invert(p=.5) "
    "autocontrast(p=.5) rotate(-180..180, bilinear=1, fill=9, p=.7) flip_vertical(p=.5) "
    "perspective(p=.6) affine(degrees=-20..20, scale=.7..1.3, p=.7) erase(p=.5)";
constexpr char kUsual[] = "color_jitter(.4, .4, .4, .1) rand_augment(n=2, m=9) erase(p=.25)";

// The rounds of a batch whose first launch has run, by the kernels' code on the host.
void RunRounds(const DevicePrograms& made, size_t slots, size_t rounds, const RoundLaunch& form,
               std::vector<uint8_t> levels, void* out) {
  // Memory holds what was there before.
  std::vector<RoundStatistics> statistics(slots);
  std::vector<RoundTables> tables(slots);
  for (size_t round = 0; round < rounds; ++round) {
    std::vector<uint8_t> next(levels.size(), 0xEE);
    RoundLaunch launch = form;
    launch.tails = made.tails().data() + round * slots;
    launch.programs = made.programs().data() + (round + 1) * slots;
    launch.pixel_tables = made.tables().data();
    launch.from = levels.data();
    launch.statistics = statistics.data();
    launch.tables = tables.data();
    const bool last = round + 1 == rounds;
    if (!last) launch.output.reset();
    launch.out = last ? out : next.data();
    AugmentRoundOnHost(launch);
    levels = std::move(next);
  }
}

// What a plan draws, by the kernel's code, must be what ProgramRunner makes of the same resized
// pixels, byte for byte.
void ExpectAsRunner(const TestBatch& batch, const AugmentPlan& plan, uint32_t width,
                    uint32_t height, uint64_t epoch, const OutputFormat& format) {
  const size_t image_bytes = size_t{width} * height * batch.channels;
  std::vector<uint8_t> levels = OnHost(batch, width, height, ResizeFilter::kBilinear, {});
  const size_t slots = batch.samples.size(), rounds = RoundsOf(plan);
  DevicePrograms made(rounds, slots, width, height);
  made.Clear();
  ProgramRunner runner;
  const PixelOutput output(format, batch.channels);
  const size_t out_bytes = output.Bytes(width, height);
  std::vector<uint8_t> expected(out_bytes * batch.samples.size()), got(expected.size());
  std::string texts;
  for (size_t i = 0; i < batch.samples.size(); ++i) {
    if (batch.samples[i].pixels == nullptr) {
      made.SetPadding(i);
      continue;
    }
    SampleProgram program;
    plan.Draw({.seed = 5, .epoch = epoch, .id = i}, width, height, program);
    texts += program.ToText() + "; ";
    const absl::Status set = made.Set(i, program);
    ASSERT_TRUE(set.ok()) << set;
    uint8_t* const pixels = levels.data() + i * image_bytes;
    const size_t row_bytes = size_t{width} * batch.channels;
    const absl::Status done =
        runner.Apply(program, {pixels, width, height, batch.channels, row_bytes});
    ASSERT_TRUE(done.ok()) << done;
    for (uint32_t y = 0; y < height; ++y) {
      output.PutRow(pixels + y * row_bytes, y, width, height, expected.data() + i * out_bytes);
    }
  }
  PreprocessLaunch launch =
      LaunchOf(batch, width, height, ResizeFilter::kBilinear, format, got.data());
  launch.programs = made.programs().data();
  launch.pixel_tables = made.tables().data();
  if (rounds > 0) {
    std::vector<uint8_t> first(levels.size());
    launch.output = PixelOutput({}, batch.channels);
    launch.out = first.data();
    ASSERT_TRUE(PreprocessOnHost(launch).ok());
    RunRounds(made, slots, rounds,
              {.count = static_cast<uint32_t>(slots),
               .channels = batch.channels,
               .width = width,
               .height = height,
               .output = output},
              std::move(first), got.data());
    ASSERT_TRUE(got == expected) << width << "x" << height << " " << texts;
    return;
  }
  ASSERT_TRUE(PreprocessOnHost(launch).ok());
  ASSERT_TRUE(got == expected) << width << "x" << height << " " << texts;
  std::fill(got.begin(), got.end(), uint8_t{0});
  ASSERT_TRUE(PreprocessByThreads(launch, 2).ok());
  ASSERT_TRUE(got == expected);
}

TEST(DeviceAugment, TheBytesOfProgramRunner) {
  std::vector<AugmentPlan> plans;
  for (const char* const text : {kPixels, kRounds, kUsual, "trivial_augment_wide",
                                 "auto_augment(imagenet) erase", "auto_augment(svhn)"}) {
    plans.push_back(PlanOf(text));
    EXPECT_EQ(WhyNotOnDevice(plans.back()), "") << text;
  }
  const OutputFormat halves = {.type = PixelType::kF16,
                               .layout = PixelLayout::kNchw,
                               .mean = {0.4f, 0.5f, 0.6f},
                               .std = {0.2f, 0.3f, 0.4f}};
  for (const uint32_t channels : {1u, 3u}) {
    TestBatch batch = MakeTestBatch({.count = 12, .channels = channels, .seed = channels});
    batch.samples[4].pixels = nullptr;  // padding stays zeros
    for (uint64_t epoch = 0; epoch < (kIsSlow ? 1 : 6); ++epoch) {
      for (const auto [width, height] : {std::array{7u, 3u}, {32u, 32u}, {33u, 65u}, {64u, 40u}}) {
        for (const AugmentPlan& plan : plans) {
          ExpectAsRunner(batch, plan, width, height, epoch, {});
          ExpectAsRunner(batch, plan, width, height, epoch, halves);
          if (::testing::Test::HasFailure()) return;
        }
      }
    }
  }
}

// Where the filter is too wide for the tables of the kernel.
TEST(DeviceAugment, OfPixelsThatAreMadeOneByOne) {
  TestBatch batch;
  AddImage(MakePattern(2000, 300, 3), {0, 0, 2000, 300}, true, 1, 0, batch);
  for (uint64_t epoch = 0; epoch < (kIsSlow ? 1 : 8); ++epoch)
    ExpectAsRunner(batch, PlanOf(kPixels), 3, 2, epoch, {});
}

SampleProgram ProgramOf(const std::string& text) {
  const absl::StatusOr<SampleProgram> program = SampleProgram::Parse(text);
  EXPECT_TRUE(program.ok()) << program.status();
  return *program;
}

TEST(DeviceAugment, NeighbouringTablesAreOne) {
  DevicePrograms programs(0, 2, 8, 8);
  programs.Clear();
  ASSERT_TRUE(programs.Set(0, ProgramOf("invert")).ok());
  ASSERT_TRUE(
      programs
          .Set(1, ProgramOf("brightness(1.2) invert gamma(0.8) hue(0.1) posterize(4) solarize(9)"))
          .ok());
  EXPECT_EQ(programs.tables().size(), 3u) << "those in use, of all slots";
  const PixelProgram& made = programs.programs()[1];
  EXPECT_EQ(made.count, 3u);
  EXPECT_EQ(made.steps[0].kind, PixelStepKind::kTable);
  EXPECT_EQ(made.steps[0].table, 1u);
  EXPECT_EQ(made.steps[1].kind, PixelStepKind::kHue);
  EXPECT_EQ(made.steps[2].kind, PixelStepKind::kTable);
  EXPECT_EQ(made.steps[2].table, 2u);
}

// What no plan of these rounds draws; nothing of it is left out without an error.
TEST(DeviceAugment, WhatDoesNotFitIsAnError) {
  DevicePrograms programs(1, 1, 8, 8);
  for (const char* const text :
       {"rotate(9) rotate(9)", "elastic(1, 1, 1)", "chain(0.5) blend(0.5)",
        "hue(.1) hue(.1) hue(.1) hue(.1) hue(.1) hue(.1) hue(.1) hue(.1) hue(.1)",
        "hue(.1) hue(.1) hue(.1) hue(.1) hue(.1) hue(.1) hue(.1) hue(.1) invert"}) {
    programs.Clear();
    const absl::Status set = programs.Set(0, ProgramOf(text));
    EXPECT_TRUE(absl::IsInternal(set)) << text << ": " << set;
    EXPECT_THAT(std::string(set.message()), HasSubstr("does not fit")) << text;
  }
  programs.Clear();
  EXPECT_TRUE(programs.Set(0, ProgramOf("identity invert rotate(9) invert")).ok());
}

TEST(DeviceAugment, WhatTheHostHasToDoIsNamed) {
  const auto why = [](const char* plan) { return WhyNotOnDevice(PlanOf(plan)); };
  EXPECT_EQ(why("elastic perspective invert own(mine)"), "elastic, own");
  EXPECT_EQ(why("gaussian_blur(5, 1) median(3) clahe(2)"), "gaussian_blur, median, clahe");
  EXPECT_EQ(why("invert aug_mix"), "aug_mix");
  EXPECT_EQ(why("aug_mix(width=1, depth=1) elastic"), "elastic, aug_mix");
  constexpr char kTooMany[] = "more than 8 operations on single pixels in a row";
  EXPECT_EQ(why("invert hue(.1) invert hue(.1) invert hue(.1) invert hue(.1) hue(.1)"), kTooMany);
  EXPECT_EQ(why("rand_augment(n=9)"), kTooMany);
  EXPECT_EQ(why("rand_augment(n=8) hue(.1)"), kTooMany);
  EXPECT_EQ(why("rand_augment(n=8) rotate(5, p=.9) hue(.1)"), kTooMany)
      << "not always between them";
  EXPECT_EQ(why("rand_augment(n=8) rotate(5, epochs=1..9) hue(.1)"), kTooMany);
  EXPECT_EQ(why("rotate(1) rotate(1) rotate(1) rotate(1) rotate(1) rotate(1) rotate(1) rotate(1) "
                "rotate(1)"),
            "more than 8 operations on whole images");
}

// Neighbouring tables are one, and each tail that every sample gets begins anew.
constexpr const char* kFitting[] = {
    "brightness(2) posterize(4) solarize(100) invert gamma(.5..2) invert invert invert invert",
    "invert hue(.1) invert hue(.1) invert hue(.1) invert invert",
    "hue(.1) hue(.1) hue(.1) hue(.1) hue(.1) rotate(9) hue(.1) hue(.1) hue(.1) hue(.1) hue(.1)",
    "color_jitter(.4, .4, .4, .1) rand_augment(n=2) auto_augment(cifar10)",
    "rand_augment(n=8)",
};

TEST(DeviceAugment, WhatFitsIsNotTheHosts) {
  TestBatch batch = MakeTestBatch({.count = 12, .seed = 3});
  for (const char* const text : kFitting) {
    EXPECT_EQ(WhyNotOnDevice(PlanOf(text)), "") << text;
    ExpectAsRunner(batch, PlanOf(text), 12, 9, 1, {});
  }
}

TEST(DeviceAugment, RoundsFollowFromThePlan) {
  EXPECT_EQ(RoundsOf(PlanOf(kPixels)), 0u);
  EXPECT_EQ(RoundsOf(PlanOf(kRounds)), 8u);
  EXPECT_EQ(RoundsOf(PlanOf(kUsual)), 3u);
  EXPECT_TRUE(NeedsStatistics(PlanOf(kUsual)));
  EXPECT_FALSE(NeedsStatistics(PlanOf("rotate(-9..9) sharpness(2)")));
}

DeviceOptions Augmenting(const LoaderFixture& data, const NvjpegFunctions* nvjpeg,
                         const std::string& plan) {
  DeviceOptions options = Decoding(data, nvjpeg);
  options.decode->augment = PlanOf(plan);
  options.preprocess->output = {.type = PixelType::kF32, .layout = PixelLayout::kNchw};
  return options;
}

// With padding, images that are bad, and a substitute, which is augmented as itself.
TEST(DeviceAugment, ADevicesBatchesAreTheCpus) {
  const LoaderFixture data(TestName(), {.samples = 42, .kinds = true, .cut = {3, 17}});
  const auto run = [&](Device& device, const NvjpegFunctions* nvjpeg, const char* plan) {
    DeviceOptions options = Augmenting(data, nvjpeg, plan);
    options.bad_images.policy = BadSamples::kSubstitute;
    Outcome outcome = RunEpochs(device, data, options, 2);
    EXPECT_THAT(outcome.errors, IsEmpty());
    return outcome;
  };
  for (const char* const plan : {kPixels, kRounds, kUsual}) {
    // A device without the kernel: ProgramRunner does it.
    FakeDevice bare;
    bare.FailEntry("Preprocess", kDeviceNoKernelImage);
    const Outcome by_cpu = run(bare, nullptr, plan);
    FakeDevice fake({.max_delay_us = 100});
    FakeNvjpeg nvjpeg({}, &fake);
    const Outcome by_device = run(fake, &nvjpeg.functions(), plan);
    ExpectEqual(by_device.batches, by_cpu.batches);
    EXPECT_EQ(by_device.stats.fallbacks, 0u) << by_device.stats.why_fallback;
    EXPECT_GT(by_device.stats.decode.hardware, 0u);
    ExpectEqual(run(HostDevice::Get(), nullptr, plan).batches, by_cpu.batches);
    const Outcome plain = run(fake, &nvjpeg.functions(), "augment/1");
    EXPECT_FALSE(plain.batches[0].pixels == by_cpu.batches[0].pixels);
    EXPECT_THAT(fake.misuses(), IsEmpty());
    EXPECT_EQ(fake.live_objects(), 0u) << fake.LiveObjects();
  }
}

// An image that the engines skipped goes through all rounds when it has been decoded again.
TEST(DeviceAugment, ImagesThatEnginesSkipAreAugmentedToo) {
  const LoaderFixture data(TestName(), {.samples = 40});
  for (const char* const plan : {kPixels, kUsual}) {
    const Outcome expected = RunEpochs(HostDevice::Get(), data, Augmenting(data, nullptr, plan), 2);
    for (uint64_t seed = 0; seed < 4; ++seed) {
      FakeDevice fake({.seed = seed, .max_delay_us = 300});
      FakeNvjpegOptions engines;
      engines.skips = [&](std::span<const std::byte> file) {
        for (const uint64_t id : {3, 17, 18, 39}) {
          const std::string& image = data.image(id);
          if (image.size() == file.size() &&
              std::memcmp(image.data(), file.data(), image.size()) == 0) {
            return true;
          }
        }
        return false;
      };
      FakeNvjpeg nvjpeg(engines, &fake);
      const Outcome got = RunEpochs(fake, data, Augmenting(data, &nvjpeg.functions(), plan), 2);
      EXPECT_THAT(got.errors, IsEmpty());
      ExpectEqual(got.batches, expected.batches);
      EXPECT_EQ(got.stats.decode.skipped, 4u);
      EXPECT_THAT(fake.misuses(), IsEmpty());
      EXPECT_EQ(fake.live_objects(), 0u) << fake.LiveObjects();
    }
  }
}

// The same operations with the same parameters as those that a Loader does.
TEST(DeviceAugment, AsALoaderAugments) {
  const LoaderFixture data(TestName(), {.samples = 24});
  LoaderOptions host = data.Options();
  host.augment = PlanOf("invert(p=.5) erase(value=7)");
  FakeDevice fake;
  FakeNvjpeg nvjpeg({}, &fake);
  DeviceOptions options = Augmenting(data, &nvjpeg.functions(), "invert(p=.5) erase(value=7)");
  options.preprocess->output = {};
  ExpectClose(RunEpochs(fake, data, options).batches, data.Expected(host));
}

// A run goes on with the plan that it began with, wherever its images are decoded, or says that it
// cannot.
TEST(DeviceAugment, CursorsHaveThePlan) {
  const LoaderFixture data(TestName(), {.samples = 24});
  FakeDevice fake;
  PinnedMemory memory(fake, {.log = nullptr});
  const auto open = [&](const char* plan, std::optional<Cursor> cursor, bool other = false) {
    LoaderOptions encoded = Encoded(data, 2);
    encoded.other_augment = other;
    return DeviceLoader::Open(data.Open(memory, encoded, cursor), Augmenting(data, nullptr, plan),
                              fake);
  };
  const auto next = [&](absl::StatusOr<DeviceLoader>& loader) {
    auto batch = loader->Next();
    EXPECT_TRUE(batch.ok() && batch->has_value() && (*batch)->Synchronize().ok());
    const DeviceTensor& pixels = *(*batch)->pixels();
    std::string got(pixels.bytes(), 0);
    EXPECT_TRUE(fake.CopyToHost(got.data(), pixels.data, got.size(), nullptr).ok());
    return got;
  };
  auto unbroken = open(kUsual, std::nullopt);
  ASSERT_TRUE(unbroken.ok()) << unbroken.status();
  LoaderOptions by_host = data.Options();
  by_host.augment = PlanOf(kUsual);
  EXPECT_EQ(unbroken->cursor(), data.Open(memory, by_host).cursor()) << "as if the Loader did it";
  next(unbroken);
  const Cursor cursor = unbroken->cursor();
  EXPECT_EQ(cursor.version, 2u);
  EXPECT_THAT(unbroken->stats().host.augmentation, HasSubstr("rand_augment"));

  auto resumed = open(kUsual, cursor);
  ASSERT_TRUE(resumed.ok()) << resumed.status();
  EXPECT_EQ(resumed->cursor(), cursor);
  EXPECT_TRUE(next(resumed) == next(unbroken));
  for (const char* const plan : {"augment/1", "invert"}) {
    const absl::Status refused = open(plan, cursor).status();
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr("another augmentation"));
    auto other = open(plan, cursor, true);
    ASSERT_TRUE(other.ok()) << other.status();
    EXPECT_EQ(other->cursor().step, 1u);
    EXPECT_NE(other->cursor().augment, cursor.augment);
  }
  const Cursor plain = open("augment/1", std::nullopt)->cursor();
  EXPECT_EQ(plain.version, 1u);
  EXPECT_FALSE(open("invert", plain).ok());
  EXPECT_TRUE(open("augment/1", plain).ok());
}

// Of a user: fails for these samples.
DeviceOptions Failing(const LoaderFixture& data, const NvjpegFunctions* nvjpeg,
                      const std::vector<uint64_t>& ids) {
  DeviceOptions options = Augmenting(data, nvjpeg, "own(mine) invert");
  const auto run = [ids](const EditablePixels&, const SampleIdentity& sample, uint64_t) {
    return std::count(ids.begin(), ids.end(), sample.id) > 0 ? absl::DataLossError("no luck")
                                                             : absl::OkStatus();
  };
  EXPECT_TRUE(options.decode->augment.Add({.name = "mine", .run = run}).ok());
  return options;
}

// The CPU does it, and the sample at which it fails is named.
TEST(DeviceAugment, AnOperationOfAUserThatFailsNamesItsSample) {
  const LoaderFixture data(TestName(), {.samples = 24});
  FakeDevice fake;
  FakeNvjpeg nvjpeg({}, &fake);
  const Outcome got = RunEpochs(fake, data, Failing(data, &nvjpeg.functions(), {13}));
  ASSERT_EQ(got.errors.size(), 1u);
  EXPECT_TRUE(absl::IsDataLoss(got.errors[0])) << got.errors[0];
  EXPECT_THAT(std::string(got.errors[0].message()),
              ::testing::AllOf(HasSubstr(" record "), HasSubstr("own(mine): no luck")));
}

// As in a Loader it is a bad sample, and another one of the batch stands in for it: with its labels
// and its pixels, also where that one stands in for an image that cannot be decoded.
TEST(DeviceAugment, ASampleWhoseOperationFailsIsSubstituted) {
  const LoaderFixture data(TestName(), {.samples = 44, .cut = {20}});
  const Outcome good = RunEpochs(HostDevice::Get(), data, [&] {
    DeviceOptions options = Failing(data, nullptr, {});
    options.bad_images.policy = BadSamples::kSubstitute;
    return options;
  }());
  ASSERT_THAT(good.errors, IsEmpty());
  std::vector<uint64_t> order;
  std::map<uint64_t, std::pair<int64_t, std::string>> made;  // what becomes of each sample
  for (const Delivered& batch : good.batches) {
    for (size_t slot = 0; slot < batch.labels.size(); ++slot) {
      const size_t bytes = batch.pixels.size() / batch.labels.size();
      order.push_back(batch.info.status[slot].state == SampleState::kSubstituted
                          ? batch.info.status[slot].wanted_id
                          : batch.info.ids[slot]);
      made[batch.info.ids[slot]] = {batch.labels[slot], batch.pixels.substr(slot * bytes, bytes)};
    }
  }
  // The sample that stands in for the image that is cut, and one of another batch.
  const auto cut = static_cast<size_t>(std::find(order.begin(), order.end(), 20) - order.begin());
  const uint64_t next = order[cut / 8 * 8 + (cut + 1) % 8], other = order[(cut + 8) % 40];
  FakeDevice fake({.max_delay_us = 100});
  FakeNvjpeg nvjpeg({}, &fake);
  DeviceOptions options = Failing(data, &nvjpeg.functions(), {next, other});
  options.bad_images.policy = BadSamples::kSubstitute;
  const Outcome got = RunEpochs(fake, data, options);
  EXPECT_THAT(got.errors, IsEmpty());
  ASSERT_EQ(got.batches.size(), good.batches.size());
  std::vector<uint64_t> bad;
  for (const Delivered& batch : got.batches) {
    for (size_t slot = 0; slot < batch.labels.size(); ++slot) {
      const uint64_t id = batch.info.ids[slot], wanted = order[batch.info.step * 8 + slot];
      const size_t bytes = batch.pixels.size() / batch.labels.size();
      EXPECT_EQ(batch.labels[slot], made[id].first);
      EXPECT_EQ(batch.info.labels[slot], made[id].first);
      EXPECT_TRUE(batch.pixels.substr(slot * bytes, bytes) == made[id].second) << id;
      if (id == wanted) continue;
      bad.push_back(wanted);
      EXPECT_EQ(batch.info.status[slot].state, SampleState::kSubstituted);
      EXPECT_EQ(batch.info.status[slot].wanted_id, wanted);
    }
  }
  EXPECT_THAT(bad, ::testing::UnorderedElementsAre(20, next, other));
  EXPECT_THAT(got.bad, ::testing::Contains(::testing::Field(&BadSample::id, other)));
  EXPECT_THAT(fake.misuses(), IsEmpty());

  options.bad_images.most = 2;
  const Outcome few = RunEpochs(fake, data, options);
  ASSERT_EQ(few.errors.size(), 1u);
  EXPECT_THAT(std::string(few.errors[0].message()), HasSubstr("more than 2 bad images"));
}

// Nobody takes the batches of a Loader that goes on from an augmented run, unless he augments.
TEST(DeviceAugment, ALoaderOfEncodedImagesKeepsTheCursorOfAnAugmentedRun) {
  const LoaderFixture data(TestName(), {.samples = 24});
  PageableMemory memory;
  LoaderOptions by_host = data.Options(2);
  by_host.augment = PlanOf(kUsual);
  const Cursor cursor = data.Open(memory, by_host).cursor();
  Loader loader = data.Open(memory, Encoded(data, 2), cursor);
  EXPECT_EQ(loader.cursor(), cursor);
  EXPECT_THAT(std::string(loader.Next().status().message()), HasSubstr("another augmentation"));
  EXPECT_FALSE(loader.SetAugmentation(PlanOf("invert")).ok());
  EXPECT_FALSE(loader.CursorOf(AugmentPlan()).ok());
  EXPECT_EQ(*loader.CursorOf(PlanOf(kUsual)), cursor);
  EXPECT_TRUE(loader.SetAugmentation(PlanOf(kUsual)).ok());
  EXPECT_EQ(loader.cursor(), cursor);
  EXPECT_TRUE(loader.Next().ok());
  EXPECT_FALSE(data.Open(memory, by_host, cursor).SetAugmentation(PlanOf(kUsual)).ok());
}

TEST(DeviceAugment, WhatADeviceCannotDoIsDoneByTheCpuAndSaid) {
  const LoaderFixture data(TestName(), {.samples = 24});
  const char* const plan = "contrast(1.4) elastic hue(.2)";
  const Outcome expected = RunEpochs(HostDevice::Get(), data, Augmenting(data, nullptr, plan));
  FakeDevice fake;
  FakeNvjpeg nvjpeg({}, &fake);
  DeviceOptions options = Augmenting(data, &nvjpeg.functions(), plan);
  std::vector<std::string> lines;
  options.log = [&](const std::string& line) { lines.push_back(line); };
  const Outcome got = RunEpochs(fake, data, options);
  EXPECT_THAT(got.errors, IsEmpty());
  ExpectEqual(got.batches, expected.batches);
  EXPECT_EQ(got.stats.fallbacks, 1u);
  EXPECT_EQ(got.stats.why_fallback, "decoding and augmentation by the CPU: elastic");
  EXPECT_THAT(lines, ::testing::ElementsAre(got.stats.why_fallback));
  EXPECT_EQ(got.stats.decode.cpu, 24u);

  options.decode->augment_on_device_only = true;
  const Outcome refused = RunEpochs(fake, data, options);
  ASSERT_THAT(refused.errors, ::testing::SizeIs(1));
  EXPECT_TRUE(absl::IsUnimplemented(refused.errors[0])) << refused.errors[0];
  EXPECT_THAT(std::string(refused.errors[0].message()),
              HasSubstr("augmentation on the device: elastic"));
}

// Also where it has no kernel, of the preprocessing or of the rounds alone, which are tried when it
// is opened.
TEST(DeviceAugment, WithoutAKernelNothingIsAugmentedOnTheDevice) {
  const LoaderFixture data(TestName(), {.samples = 24});
  const Outcome expected = RunEpochs(HostDevice::Get(), data, Augmenting(data, nullptr, kUsual));
  for (const char* const entry : {"Preprocess", "AugmentRound"}) {
    FakeDevice fake;
    FakeNvjpeg nvjpeg({}, &fake);
    fake.FailEntry(entry, kDeviceNoKernelImage);
    DeviceOptions options = Augmenting(data, &nvjpeg.functions(), kUsual);
    const Outcome got = RunEpochs(fake, data, options);
    EXPECT_THAT(got.errors, IsEmpty());
    ExpectEqual(got.batches, expected.batches);
    EXPECT_THAT(got.stats.why_fallback, ::testing::StartsWith("preprocessing by the CPU: "));
    options.decode->augment_on_device_only = true;
    PinnedMemory memory(fake, {.log = nullptr});
    const absl::Status refused =
        DeviceLoader::Open(data.Open(memory, Encoded(data)), options, fake).status();
    EXPECT_TRUE(absl::IsUnimplemented(refused)) << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr("augmentation on the device: "));
    options.decode->augment = {};
    EXPECT_THAT(RunEpochs(fake, data, options).errors, IsEmpty()) << "there is nothing to augment";
  }
}

// Where the CPU is the device, its threads augment, and nothing stands in for kernels.
TEST(DeviceAugment, TheCpuHasNoRounds) {
  class Counting final : public HostDevice {
   public:
    absl::Status AugmentRound(const RoundLaunch& launch, Stream stream) override {
      ++rounds;
      return HostDevice::AugmentRound(launch, stream);
    }
    int rounds = 0;
  };
  const LoaderFixture data(TestName(), {.samples = 24});
  Counting counting;
  DeviceOptions options = Augmenting(data, nullptr, kUsual);
  options.decode->augment_on_device_only = true;  // it is
  const Outcome got = RunEpochs(counting, data, options);
  EXPECT_THAT(got.errors, IsEmpty());
  EXPECT_EQ(got.stats.fallbacks, 0u) << got.stats.why_fallback;
  EXPECT_EQ(counting.rounds, 0);
}

// What the rounds need is allocated with the buffers, as little as will do, and counted.
TEST(DeviceAugment, RoundsTakeNoMoreMemoryThanTheyNeed) {
  const LoaderFixture data(TestName(), {.samples = 24});
  constexpr size_t kLevels = size_t{8} * LoaderFixture::kWidth * LoaderFixture::kHeight * 3;
  const size_t statistics = 8 * (sizeof(RoundStatistics) + sizeof(RoundTables));
  const auto scratch = [&](const char* plan) {
    return RoundScratch(PlanOf(plan), 8, kLevels).bytes;
  };
  EXPECT_EQ(scratch("invert"), 0u);
  EXPECT_EQ(scratch("rotate(9)"), DeviceAligned(kLevels));
  EXPECT_EQ(scratch("rotate(9) sharpness(2)"), 2 * DeviceAligned(kLevels));
  EXPECT_NEAR(scratch("equalize"), kLevels + statistics, 1024);
  for (const char* const plan : {"rotate(9)", "equalize", kUsual}) {
    FakeDevice fake;
    PinnedMemory memory(fake, {.log = nullptr});
    const auto bytes = [&](const char* text) {
      auto loader = DeviceLoader::Open(data.Open(memory, Encoded(data)),
                                       Augmenting(data, nullptr, text), fake);
      EXPECT_TRUE(loader.ok()) << loader.status();
      EXPECT_TRUE(loader->Next()->has_value());
      EXPECT_EQ(loader->stats().device_bytes, fake.device_bytes()) << text;
      return fake.device_bytes();
    };
    EXPECT_GT(bytes(plan), scratch(plan));
    EXPECT_THAT(fake.misuses(), IsEmpty());
  }
}

// With fewer buffers if they do not all fit; or there is an error, when it is opened.
TEST(DeviceAugment, ALittleMemoryIsEnoughOrSaysSo) {
  const LoaderFixture data(TestName(), {.samples = 24});
  const Outcome expected = RunEpochs(HostDevice::Get(), data, Augmenting(data, nullptr, kUsual));
  size_t shrunk = 0, refused = 0;
  for (uint64_t cap = 100'000; cap < 600'000; cap += 25'000) {
    FakeDevice fake({.max_delay_us = 0, .device_cap_bytes = cap});
    const Outcome got = RunEpochs(fake, data, Augmenting(data, nullptr, kUsual));
    if (got.errors.empty()) {
      ExpectEqual(got.batches, expected.batches);
      shrunk += got.stats.shrinks > 0;
    } else {
      ++refused;
      EXPECT_TRUE(absl::IsResourceExhausted(got.errors[0])) << got.errors[0];
    }
    EXPECT_EQ(fake.live_objects(), 0u) << cap << ": " << fake.LiveObjects();
    EXPECT_THAT(fake.misuses(), IsEmpty());
  }
  EXPECT_GT(shrunk, 2u);
  EXPECT_GT(refused, 0u);
  EXPECT_LT(shrunk + refused, 20u) << "in the end there is enough";
}

}  // namespace
}  // namespace shardpack
