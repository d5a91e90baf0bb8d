// Loader with fields of masks: each equals what MaskPipeline makes of it alone, beside the pixels
// of its image; one that cannot be a mask is a bad sample.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/io/error_facts.h"
#include "formats/io/file.h"
#include "formats/testing/datasets/test_dataset.h"
#include "formats/testing/datasets/toy_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "images/augment/mask_pipeline.h"
#include "images/codecs/decode_testing.h"
#include "images/codecs/encode.h"
#include "readers/loading/loader.h"

namespace shardpack {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr uint64_t kSeed = 11;

std::string EncodedMask(uint32_t width, uint32_t height, uint32_t seed) {
  const TestPixels pixels = MakePattern(width, height, 1, seed);
  ImageEncoder encoder;
  const auto file = encoder.Encode(pixels.view(), {.format = ImageFormat::kPng});
  EXPECT_TRUE(file.ok()) << file.status();
  return std::string(AsText(*file));
}

class LoaderMasksTest : public ::testing::Test {
 protected:
  LoaderMasksTest()
      : folder_(testing::MakeTestFolder(
            ::testing::UnitTest::GetInstance()->current_test_info()->name())) {}
  ~LoaderMasksTest() override { (void)RemoveTree(folder_); }

  // Every third sample has no field "mask", every one has "depth". `bad`: a sample whose mask is
  // one pixel too high.
  void Make(std::optional<uint32_t> bad = std::nullopt) {
    testing::TestDatasetOptions options{.shards = 3, .records_per_shard = 10};
    options.samples = testing::MakeTestSamples(options);
    for (uint32_t i = 0; i < options.samples.size(); ++i) {
      testing::TestSample& sample = options.samples[i];
      const uint32_t width = 40 + 3 * i, height = 90 - 2 * i;
      const Image jpeg = EncodeJpeg(MakePattern(width, height, 3, i), {.sampling = {2, 2}});
      sample.image.assign(jpeg.begin(), jpeg.end());
      sample.info = {.width = width, .height = height, .format = ImageFormat::kJpeg};
      if (i % 3 != 0)
        sample.more_fields.emplace_back("mask",
                                        EncodedMask(width, height + (bad == i ? 1 : 0), 100 + i));
      sample.more_fields.emplace_back("depth", EncodedMask(width, height, 200 + i));
    }
    samples_ = options.samples;
    testing::WriteTestDataset(folder_, testing::ToyFormat(), options);
    dataset_.emplace(*Dataset::Open(folder_));
  }
  Order MakeOrder() const {
    return *Order::Make(
        {.samples = dataset_->size(), .seed = 2, .global_batch = 8, .tail = Tail::kPad});
  }
  static LoaderOptions Options(int threads = 2) {
    LoaderOptions options{.threads = threads, .epochs = 2};
    options.decode.emplace();
    options.decode->crop = {.width = 31, .height = 23, .flip_probability = 0.5};
    options.augment_seed = kSeed;
    options.mask_fields = {"depth", "mask"};
    return options;
  }
  absl::Status OpenWith(const LoaderOptions& options) {
    return Loader::Open(*dataset_, MakeOrder(), {}, options, memory_).status();
  }
  std::string Expected(uint64_t epoch, uint64_t id, std::string_view field) const {
    const testing::TestSample& sample = samples_[id];
    MaskPipeline pipeline(*Options().decode);
    std::string mask(pipeline.output_bytes(), '\0');
    for (const auto& [name, bytes] : sample.more_fields) {
      if (name != field) continue;
      ShownImage image;
      image.width = sample.info.width;
      image.height = sample.info.height;
      EXPECT_TRUE(pipeline
                      .Run(AsBytes(bytes), image, {.seed = kSeed, .epoch = epoch, .id = id},
                           reinterpret_cast<uint8_t*>(mask.data()))
                      .ok());
    }
    return mask;
  }
  static std::string_view MaskOf(const HostBatch& batch, size_t number, size_t slot) {
    constexpr size_t kBytes = 31 * 23;
    return AsText(batch.masks()[number].bytes.subspan(slot * kBytes, kBytes));
  }
  // Counts the samples that were compared.
  size_t Compare(Loader& loader) {
    size_t seen = 0;
    for (int epoch = 0; epoch < 2; ++epoch) {
      for (auto batch = loader.Next(); (*batch).has_value(); batch = loader.Next()) {
        EXPECT_EQ((*batch)->masks().size(), 2u);
        EXPECT_EQ((*batch)->masks()[0].bytes.size(), (*batch)->size() * 31 * 23);
        for (size_t i = 0; i < (*batch)->size(); ++i) {
          const uint64_t id = (*batch)->ids()[i];
          const bool padding = id == kPaddingId;
          const std::string none(31 * 23, '\0');
          EXPECT_EQ(MaskOf(**batch, 0, i),
                    padding ? none : Expected((*batch)->epoch(), id, "depth"));
          EXPECT_EQ(MaskOf(**batch, 1, i),
                    padding ? none : Expected((*batch)->epoch(), id, "mask"));
          EXPECT_EQ((*batch)->has((*batch)->masks()[1].field, i), !padding && id % 3 != 0);
          seen += padding ? 0 : 1;
        }
      }
    }
    return seen;
  }

  PageableMemory memory_;
  std::string folder_;
  std::vector<testing::TestSample> samples_;
  std::optional<Dataset> dataset_;
};

TEST_F(LoaderMasksTest, MasksAreThoseOfTheImages) {
  Make();
  for (const int threads : {1, 3}) {
    auto loader = Loader::Open(*dataset_, MakeOrder(), {}, Options(threads), memory_);
    ASSERT_TRUE(loader.ok()) << loader.status();
    EXPECT_EQ(Compare(*loader), 60u);
  }
}

// The batches read ahead get fewer, and memory stays within its limit but for what comes at least.
TEST_F(LoaderMasksTest, TheirMemoryCounts) {
  Make();
  LoaderOptions options = Options();
  options.memory_bytes = 100'000;  // a batch has 17,136 bytes of pixels and 11,456 of masks
  auto loader = *Loader::Open(*dataset_, MakeOrder(), {}, options, memory_);
  EXPECT_LE(memory_.allocated_bytes(), 300'000u);
  EXPECT_EQ(Compare(loader), 60u);
}

TEST_F(LoaderMasksTest, PixelsAreTheSameWithoutMasks) {
  Make();
  LoaderOptions without = Options();
  without.mask_fields.clear();
  auto loader = *Loader::Open(*dataset_, MakeOrder(), {}, Options(), memory_);
  auto other = *Loader::Open(*dataset_, MakeOrder(), {}, without, memory_);
  for (auto batch = loader.Next(); (*batch).has_value(); batch = loader.Next()) {
    const auto same = other.Next();
    EXPECT_EQ(AsText((*batch)->pixels()->bytes), AsText((*same)->pixels()->bytes));
    EXPECT_TRUE((*same)->masks().empty());
    EXPECT_EQ((*batch)->fields(), 3u);
  }
}

TEST_F(LoaderMasksTest, OneThatIsNoMaskOfItsImageIsABadSample) {
  Make(/*bad=*/17);
  {
    auto loader = *Loader::Open(*dataset_, MakeOrder(), {}, Options(), memory_);
    absl::Status status;
    while (status.ok()) status = loader.Next().status();
    EXPECT_TRUE(absl::IsDataLoss(status));
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("train-1.toy"), HasSubstr("000017"), HasSubstr("field mask: "),
                      HasSubstr("91 x 57"), HasSubstr("91 x 56")));
    EXPECT_EQ(FactsOf(status).field, "mask");
    EXPECT_EQ(FactsOf(status).id, 17);
  }
  LoaderOptions options = Options();
  options.bad_samples = BadSamples::kSubstitute;
  auto loader = *Loader::Open(*dataset_, MakeOrder(), {}, options, memory_);
  EXPECT_EQ(Compare(loader), 60u);
  EXPECT_EQ(loader.TakeBadSamples().size(), 2u);
}

TEST_F(LoaderMasksTest, FieldsThatCannotBeMasksAreRefused) {
  Make();
  LoaderOptions options = Options();
  options.decode.reset();
  EXPECT_TRUE(absl::IsInvalidArgument(OpenWith(options)));
  for (const std::vector<std::string>& fields :
       {std::vector<std::string>{"image"}, {"mask", "mask"}, {"msak"}}) {
    options = Options();
    options.mask_fields = fields;
    const absl::Status refused = OpenWith(options);
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << fields[0];
    EXPECT_THAT(std::string(refused.message()), HasSubstr(fields[0]));
  }
}

// A field that is asked for and is a mask, too, is read once.
TEST_F(LoaderMasksTest, AreReadBesideOtherFields) {
  Make();
  LoaderOptions options = Options();
  options.fields = {"mask", "image"};
  auto loader = *Loader::Open(*dataset_, MakeOrder(), {}, options, memory_);
  const HostBatch batch = **loader.Next();
  ASSERT_EQ(batch.fields(), 3u);
  EXPECT_EQ(batch.field_name(0), "mask");
  EXPECT_EQ(batch.masks()[1].field, 0u);
  EXPECT_EQ(batch.masks()[0].field, 2u);
}

}  // namespace
}  // namespace shardpack
