// Loader with operations, views and mixing: what a batch holds is a function of (seed, epoch, id)
// and of the order alone, for any number of threads, any world size, and after a resume.
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "augment/mix.h"
#include "augment/plan.h"
#include "augment/program.h"
#include "formats/io/file.h"
#include "formats/testing/datasets/test_dataset.h"
#include "formats/testing/datasets/toy_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "images/augment/pixel_pipeline.h"
#include "images/codecs/decode_testing.h"
#include "images/probe/probe_testing.h"
#include "readers/loading/loader.h"

namespace shardpack {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kSeed = 11;
constexpr uint32_t kWidth = 24, kHeight = 20;
constexpr size_t kPixelBytes = size_t{kWidth} * kHeight * 3;
constexpr char kPlan[] =
    "color_jitter(b=.4, c=.4, s=.4, h=.1) rand_augment erase(p=.5, value=random)";

class LoaderAugmentTest : public ::testing::Test {
 protected:
  LoaderAugmentTest()
      : folder_(testing::MakeTestFolder(
            ::testing::UnitTest::GetInstance()->current_test_info()->name())) {}
  ~LoaderAugmentTest() override { (void)RemoveTree(folder_); }

  void Make(const std::vector<uint64_t>& broken = {}) {
    testing::TestDatasetOptions options{.shards = 3, .records_per_shard = 10};
    options.samples = testing::MakeTestSamples(options);
    for (uint32_t i = 0; i < options.samples.size(); ++i) {
      const Image jpeg = EncodeJpeg(MakePattern(40 + i, 50 - i, 3, i), {.sampling = {2, 2}});
      options.samples[i].image.assign(jpeg.begin(), jpeg.end());
      options.samples[i].info = {.width = 40 + i, .height = 50 - i, .format = ImageFormat::kJpeg};
      options.samples[i].label = i % 4;
    }
    for (const uint64_t id : broken) options.samples[id].image.resize(60);
    samples_ = options.samples;
    testing::WriteTestDataset(folder_, testing::ToyFormat(), options);
    dataset_.emplace(*Dataset::Open(folder_));
  }
  // 30 samples: the last batch has two slots of padding.
  Order MakeOrder() const {
    return *Order::Make(
        {.samples = dataset_->size(), .seed = 2, .global_batch = 8, .tail = Tail::kPad});
  }
  static LoaderOptions Options(const std::string& plan = kPlan) {
    LoaderOptions options{.threads = 2, .epochs = 2};
    options.decode.emplace();
    options.decode->crop = {.width = kWidth, .height = kHeight, .flip_probability = 0.5};
    options.augment_seed = kSeed;
    options.augment = *AugmentPlan::Parse(plan);
    return options;
  }
  absl::StatusOr<Loader> Open(const LoaderOptions& options, Rank rank = {},
                              std::optional<Cursor> cursor = std::nullopt) {
    return Loader::Open(*dataset_, MakeOrder(), rank, options, memory_, cursor);
  }
  // The pixels of a sample before mixing, by the pipeline and the plan alone.
  std::vector<uint8_t> Augmented(const LoaderOptions& options, const SampleIdentity& sample) {
    PixelPipeline pipeline = *PixelPipeline::Create(*options.decode);
    std::vector<uint8_t> pixels(pipeline.pixel_bytes());
    EXPECT_TRUE(
        pipeline.RunToPixels(AsBytes(samples_[sample.id].image), ImageInfo{}, sample, pixels.data())
            .ok());
    SampleProgram program;
    options.augment.Draw(sample, kWidth, kHeight, program);
    ProgramRunner runner;
    EXPECT_TRUE(
        runner.Apply(program, {pixels.data(), kWidth, kHeight, 3, size_t{kWidth} * 3}).ok());
    return pixels;
  }
  static std::vector<uint8_t> PixelsOf(const HostBatch& batch, size_t slot, uint32_t view = 0) {
    const PixelBatch& pixels = *batch.pixels();
    const auto bytes = pixels.bytes.subspan((view * batch.size() + slot) * pixels.sample_bytes,
                                            pixels.sample_bytes);
    const auto* const data = reinterpret_cast<const uint8_t*>(bytes.data());
    return {data, data + bytes.size()};
  }

  // By epoch, step and global slot.
  using Seen = std::map<std::tuple<uint64_t, uint64_t, uint64_t>,
                        std::tuple<uint64_t, std::vector<uint8_t>, std::vector<float>>>;
  void ReadAll(Loader& loader, const Rank& rank, Seen& seen) {
    for (int epoch = 0; epoch < 2; ++epoch) {
      for (auto batch = loader.Next();; batch = loader.Next()) {
        ASSERT_TRUE(batch.ok()) << batch.status();
        if (!batch->has_value()) break;
        const HostBatch& got = **batch;
        for (size_t i = 0; i < got.size(); ++i) {
          std::vector<float> labels;
          if (const MixedBatch* const mixed = got.mixed()) {
            const auto row =
                mixed->soft_labels.begin() + static_cast<ptrdiff_t>(i * mixed->classes);
            labels.assign(row, row + mixed->classes);
          }
          seen[{got.epoch(), got.step(), rank.first_slot(8) + i}] = {got.ids()[i], PixelsOf(got, i),
                                                                     labels};
        }
      }
    }
  }

  PageableMemory memory_;
  std::string folder_;
  std::vector<testing::TestSample> samples_;
  std::optional<Dataset> dataset_;
};

TEST_F(LoaderAugmentTest, PixelsAreThoseOfThePlan) {
  Make();
  const LoaderOptions options = Options();
  Seen seen;
  auto loader = Open(options);
  ASSERT_TRUE(loader.ok()) << loader.status();
  ReadAll(*loader, {}, seen);
  size_t samples = 0;
  for (const auto& [at, content] : seen) {
    const auto& [id, pixels, labels] = content;
    if (id == kPaddingId) continue;
    EXPECT_EQ(pixels, Augmented(options, {kSeed, std::get<0>(at), id}));
    ++samples;
  }
  EXPECT_EQ(samples, 60u);
}

TEST_F(LoaderAugmentTest, ThreadsAndWorldSizesChangeNothing) {
  Make();
  for (const bool mixes : {false, true}) {
    LoaderOptions options = Options();
    if (mixes) options.mix = MixOptions{.mixup_alpha = 1, .cutmix_alpha = 1, .classes = 4};
    Seen expected;
    {
      auto loader = Open(options);
      ReadAll(*loader, {}, expected);
    }
    for (const auto& [threads, world] : {std::pair(1, 1u), std::pair(5, 2u), std::pair(2, 4u)}) {
      options.threads = threads;
      Seen seen;
      for (uint32_t r = 0; r < world; ++r) {
        const Rank rank{.rank = r, .world_size = world};
        auto loader = Open(options, rank);
        ASSERT_TRUE(loader.ok()) << loader.status();
        ReadAll(*loader, rank, seen);
      }
      EXPECT_EQ(seen, expected) << "mixes " << mixes << ", world " << world;
    }
  }
}

TEST_F(LoaderAugmentTest, ResumesWithTheSamePixels) {
  Make();
  LoaderOptions options = Options();
  options.mix = MixOptions{.mixup_alpha = 1, .classes = 4};
  auto unbroken = Open(options);
  ASSERT_TRUE(unbroken.ok());
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(unbroken->Next().ok());
  const Cursor cursor = unbroken->cursor();
  EXPECT_TRUE(CursorToText(cursor).starts_with("shardpack-cursor:2:"));
  auto resumed = Open(options, {}, cursor);
  ASSERT_TRUE(resumed.ok()) << resumed.status();
  const auto a = unbroken->Next(), b = resumed->Next();
  ASSERT_TRUE(a.ok() && b.ok());
  for (size_t i = 0; i < (*a)->size(); ++i) EXPECT_EQ(PixelsOf(**a, i), PixelsOf(**b, i));
}

TEST_F(LoaderAugmentTest, AnotherPlanAtResumeIsAnErrorUnlessAllowed) {
  Make();
  const Cursor cursor = Open(Options())->cursor();
  LoaderOptions other = Options("rand_augment");
  EXPECT_THAT(std::string(Open(other, {}, cursor).status().message()),
              HasSubstr("another augmentation"));
  EXPECT_FALSE(Open(Options(""), {}, cursor).ok());
  other.other_augment = true;
  EXPECT_TRUE(Open(other, {}, cursor).ok());
  const Cursor plain = Open(Options(""))->cursor();
  EXPECT_EQ(plain.version, 1u);
  EXPECT_FALSE(Open(Options(), {}, plain).ok());
}

TEST_F(LoaderAugmentTest, NumbersAreThoseOfTheAugmentedPixels) {
  Make();
  LoaderOptions options = Options();
  const auto bytes = Open(options)->Next();
  options.decode->output = {.type = PixelType::kF32, .layout = PixelLayout::kNchw};
  const auto numbers = Open(options)->Next();
  ASSERT_TRUE(bytes.ok() && numbers.ok());
  for (size_t i = 0; i < (*bytes)->size(); ++i) {
    const std::vector<uint8_t> levels = PixelsOf(**bytes, i), raw = PixelsOf(**numbers, i);
    std::vector<float> floats(kPixelBytes);
    std::memcpy(floats.data(), raw.data(), raw.size());
    for (size_t p = 0; p < levels.size(); ++p)
      ASSERT_EQ(floats[p % 3 * kWidth * kHeight + p / 3], static_cast<float>(levels[p]) / 255);
  }
}

TEST_F(LoaderAugmentTest, ViewsAreDrawnOneByOne) {
  Make();
  LoaderOptions options = Options();
  options.views = 3;
  auto loader = Open(options);
  ASSERT_TRUE(loader.ok()) << loader.status();
  const auto batch = loader->Next();
  ASSERT_TRUE(batch.ok());
  EXPECT_EQ((*batch)->pixels()->views, 3u);
  EXPECT_EQ((*batch)->pixels()->bytes.size(), 3 * 8 * kPixelBytes);
  for (size_t i = 0; i < 8; ++i) {
    for (uint16_t view = 0; view < 3; ++view) {
      EXPECT_EQ(PixelsOf(**batch, i, view),
                Augmented(options, {kSeed, 0, (*batch)->ids()[i], view}));
    }
    EXPECT_NE(PixelsOf(**batch, i, 0), PixelsOf(**batch, i, 1));
  }
}

TEST_F(LoaderAugmentTest, MixesEachSampleWithTheNextOfItsGroup) {
  Make();
  LoaderOptions options = Options();
  options.mix = MixOptions{.mixup_alpha = 1, .cutmix_alpha = 1, .group = 4, .classes = 4};
  auto loader = Open(options);
  ASSERT_TRUE(loader.ok()) << loader.status();
  size_t mixed_samples = 0, padding = 0;
  for (uint64_t step = 0; step < 4; ++step) {
    const auto batch = loader->Next();
    ASSERT_TRUE(batch.ok());
    const HostBatch& got = **batch;
    for (size_t i = 0; i < 8; ++i) {
      const size_t partner = i % 4 == 3 ? i - 3 : i + 1;
      const uint64_t id = got.ids()[i], other = got.ids()[partner];
      const MixedBatch& mixed = *got.mixed();
      if (id == kPaddingId) {
        ++padding;
        EXPECT_EQ(PixelsOf(got, i), std::vector<uint8_t>(kPixelBytes));
        continue;
      }
      std::vector<uint8_t> expected = Augmented(options, {kSeed, 0, id});
      const MixDraw draw = DrawMix(*options.mix, kSeed, 0, step * 2 + i / 4, kWidth, kHeight);
      if (other == kPaddingId || !draw.mixed()) {
        EXPECT_EQ(mixed.partners[i], kPaddingId);
        EXPECT_EQ(mixed.weights[i], 0);
      } else {
        MixPixels(draw, {expected.data(), kWidth, kHeight, 3, size_t{kWidth} * 3},
                  Augmented(options, {kSeed, 0, other}).data(), expected.data());
        EXPECT_EQ(mixed.partners[i], other);
        EXPECT_EQ(mixed.weights[i], static_cast<float>(draw.weight));
        ++mixed_samples;
      }
      EXPECT_EQ(PixelsOf(got, i), expected);
      float sum = 0;
      for (uint32_t c = 0; c < 4; ++c) sum += mixed.soft_labels[i * 4 + c];
      EXPECT_FLOAT_EQ(sum, 1);
      EXPECT_GE(mixed.soft_labels[i * 4 + id % 4], 1 - mixed.weights[i] - 1e-6);
    }
  }
  EXPECT_EQ(padding, 2u);
  EXPECT_GT(mixed_samples, 15u);
}

// Two bad samples, in one group or not: their substitutes are mixed like any sample.
TEST_F(LoaderAugmentTest, SubstitutesAreMixedToo) {
  Make({3, 4, 5, 6, 7, 20, 21});
  LoaderOptions options = Options();
  options.mix = MixOptions{.mixup_alpha = 1, .group = 4, .classes = 4};
  options.bad_samples = BadSamples::kSubstitute;
  options.image_infos = true;
  auto loader = Open(options);
  ASSERT_TRUE(loader.ok()) << loader.status();
  for (uint64_t step = 0; step < 4; ++step) {
    const auto batch = loader->Next();
    ASSERT_TRUE(batch.ok()) << batch.status();
    const HostBatch& got = **batch;
    for (size_t i = 0; i < 8; ++i) {
      const uint64_t id = got.ids()[i];
      if (id == kPaddingId) continue;
      EXPECT_EQ(got.image_infos()[i].width, samples_[id].info.width);
      std::vector<uint8_t> expected = Augmented(options, {kSeed, 0, id});
      const uint64_t other = got.mixed()->partners[i];
      const MixDraw draw = DrawMix(*options.mix, kSeed, 0, step * 2 + i / 4, kWidth, kHeight);
      if (other != kPaddingId) {
        EXPECT_EQ(other, got.ids()[i % 4 == 3 ? i - 3 : i + 1]);
        MixPixels(draw, {expected.data(), kWidth, kHeight, 3, size_t{kWidth} * 3},
                  Augmented(options, {kSeed, 0, other}).data(), expected.data());
      }
      EXPECT_EQ(PixelsOf(got, i), expected) << "step " << step << ", slot " << i;
    }
  }
  EXPECT_EQ(loader->TakeBadSamples().size(), 7u);
}

TEST_F(LoaderAugmentTest, ALabelBeyondTheClassesIsAnError) {
  Make();
  LoaderOptions options = Options();
  options.mix = MixOptions{.mixup_alpha = 1, .classes = 3};
  const auto batch = Open(options)->Next();
  EXPECT_THAT(std::string(batch.status().message()),
              HasSubstr("the label 3 is not one of the 3 classes of mix"));
}

TEST_F(LoaderAugmentTest, OptionsThatDoNotFitAreRefused) {
  Make();
  const auto message = [&](auto change, Rank rank = {}) {
    LoaderOptions options = Options();
    change(options);
    const auto opened = Open(options, rank);
    return opened.ok() ? std::string("opened") : std::string(opened.status().message());
  };
  EXPECT_EQ(message([](LoaderOptions& o) { o.decode.reset(); }),
            "augmentation, views and mixing need decoding");
  EXPECT_EQ(message([](LoaderOptions& o) { o.views = 0; }), "views is 0; it is 1 to 64");
  EXPECT_EQ(message([](LoaderOptions& o) {
              o.views = 2;
              o.mix = MixOptions{.mixup_alpha = 1, .classes = 4};
            }),
            "mixing is for one view");
  EXPECT_EQ(message([](LoaderOptions& o) { o.mix = MixOptions{.mixup_alpha = 1}; }),
            "mix: classes is 0; it is the number of classes, 1 to 1000000");
  EXPECT_EQ(
      message(
          [](LoaderOptions& o) { o.mix = MixOptions{.mixup_alpha = 1, .group = 4, .classes = 4}; },
          {.rank = 1, .world_size = 4}),
      "mix: groups of 4 do not divide a rank's 2 samples");
  EXPECT_EQ(message([](LoaderOptions& o) {
              o.augment = AugmentPlan();
              o.decode_fields = {{.field = "mask.png"}};
              o.mix = MixOptions{.classes = 4, .smoothing = 0.1};
            }),
            "masks and other decoded fields are of one view, unmixed");
  EXPECT_THAT(message([](LoaderOptions& o) { o.mask_fields = {"mask.png"}; }),
              HasSubstr("masks follow the crop and flip alone"));
}

}  // namespace
}  // namespace shardpack
