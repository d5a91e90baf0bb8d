// Loader with a decoder: the pixels of every slot equal those of the pipeline alone, for any number
// of threads and any world size; images that cannot be decoded are bad samples.
#include <cerrno>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "formats/io/file.h"
#include "formats/testing/datasets/test_dataset.h"
#include "formats/testing/datasets/toy_format.h"
#include "formats/testing/fault_injection.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "images/augment/pixel_pipeline.h"
#include "images/codecs/decode_testing.h"
#include "images/probe/probe_testing.h"
#include "readers/loading/loader.h"

namespace shardpack {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr uint64_t kSeed = 11;

class LoaderDecodeTest : public ::testing::Test {
 protected:
  LoaderDecodeTest()
      : folder_(testing::MakeTestFolder(
            ::testing::UnitTest::GetInstance()->current_test_info()->name())) {}
  ~LoaderDecodeTest() override { (void)RemoveTree(folder_); }

  // `broken`: the sample whose bytes end early; it is packed like that, with a matching hash.
  void Make(std::optional<uint64_t> broken = std::nullopt) {
    testing::TestDatasetOptions options{.shards = 3, .records_per_shard = 10};
    options.samples = testing::MakeTestSamples(options);
    for (uint32_t i = 0; i < options.samples.size(); ++i) {
      const Image jpeg =
          EncodeJpeg(MakePattern(40 + 3 * i, 90 - 2 * i, 3, i), {.sampling = {2, 2}});
      options.samples[i].image.assign(jpeg.begin(), jpeg.end());
      options.samples[i].info = {
          .width = 40 + 3 * i, .height = 90 - 2 * i, .format = ImageFormat::kJpeg};
      if (broken == i) options.samples[i].image.resize(jpeg.size() / 2);
    }
    samples_ = options.samples;
    testing::WriteTestDataset(folder_, testing::ToyFormat(), options);
    dataset_.emplace(*Dataset::Open(folder_));
  }
  Order MakeOrder() const {
    return *Order::Make(
        {.samples = dataset_->size(), .seed = 2, .global_batch = 8, .tail = Tail::kPad});
  }
  static LoaderOptions Options(int threads) {
    LoaderOptions options{.threads = threads, .epochs = 2};
    options.decode.emplace();
    options.decode->crop = {.width = 32, .height = 24, .flip_probability = 0.5};
    options.augment_seed = kSeed;
    return options;
  }
  std::string Expected(uint64_t epoch, uint64_t id) const {
    PixelPipeline pipeline = *PixelPipeline::Create(*Options(1).decode);
    std::string pixels(pipeline.output_bytes(), '\0');
    EXPECT_TRUE(pipeline
                    .Run(AsBytes(samples_[id].image), ImageInfo{},
                         {.seed = kSeed, .epoch = epoch, .id = id}, pixels.data())
                    .ok());
    return pixels;
  }
  static std::string_view PixelsOf(const HostBatch& batch, size_t slot) {
    const PixelBatch& pixels = *batch.pixels();
    return AsText(pixels.bytes.subspan(slot * pixels.sample_bytes, pixels.sample_bytes));
  }

  PageableMemory memory_;
  std::string folder_;
  std::vector<testing::TestSample> samples_;
  std::optional<Dataset> dataset_;
};

TEST_F(LoaderDecodeTest, PixelsDependOnSeedEpochAndIdAlone) {
  Make();
  const Order order = MakeOrder();
  std::map<std::pair<uint64_t, uint64_t>, std::string> expected;
  for (uint64_t epoch = 0; epoch < 2; ++epoch) {
    for (uint64_t id = 0; id < samples_.size(); ++id) expected[{epoch, id}] = Expected(epoch, id);
  }
  EXPECT_NE((expected[{0, 5}]), (expected[{1, 5}]));
  for (const auto& [threads, world] : {std::pair(1, 1u), std::pair(3, 1u), std::pair(2, 8u)}) {
    for (uint32_t r = 0; r < world; ++r) {
      auto loader = Loader::Open(*dataset_, order, {.rank = r, .world_size = world},
                                 Options(threads), memory_);
      ASSERT_TRUE(loader.ok()) << loader.status();
      size_t samples = 0;
      for (int epoch = 0; epoch < 2; ++epoch) {
        for (auto batch = loader->Next(); (*batch).has_value(); batch = loader->Next()) {
          const PixelBatch& pixels = *(*batch)->pixels();
          EXPECT_EQ(pixels.bytes.size(), (*batch)->size() * 32 * 24 * 3);
          EXPECT_EQ(pixels.width, 32u);
          EXPECT_EQ(pixels.height, 24u);
          EXPECT_EQ(pixels.channels, 3u);
          for (size_t i = 0; i < (*batch)->size(); ++i) {
            EXPECT_FALSE((*batch)->has(0, i)) << "the encoded bytes are not kept";
            const uint64_t id = (*batch)->ids()[i];
            if (id == kPaddingId) {
              EXPECT_EQ(PixelsOf(**batch, i), std::string(pixels.sample_bytes, '\0'));
              continue;
            }
            ++samples;
            ASSERT_EQ(PixelsOf(**batch, i), (expected[{(*batch)->epoch(), id}]));
          }
        }
      }
      if (world == 1) {
        EXPECT_EQ(samples, 60u);
      }
      EXPECT_GT(loader->stats().decode.items, 0u);
    }
  }
}

// Pixels without a header are cropped, resized and turned like those of an equal image file.
TEST_F(LoaderDecodeTest, RawPixelsAreDecodedAlready) {
  testing::TestDatasetOptions options{.shards = 2, .records_per_shard = 10};
  options.samples = testing::MakeTestSamples(options);
  for (uint32_t i = 0; i < options.samples.size(); ++i) {
    const TestPixels pixels = MakePattern(40, 30, 3, i);
    options.samples[i].image.assign(pixels.bytes.begin(), pixels.bytes.end());
    options.samples[i].info = RawImageInfo(30, 40, 3);
    // The same as a 24-bit bitmap: rows from the top by a negative height, blue first.
    Image bitmap;
    PutText(&bitmap, "BM");
    for (const uint32_t number : {54u + 3600, 0u, 54u, 40u, 40u}) PutLittle(&bitmap, number, 4);
    PutLittle(&bitmap, static_cast<uint32_t>(-30), 4);
    PutLittle(&bitmap, 1, 2);
    PutLittle(&bitmap, 24, 2);
    bitmap.resize(54);
    for (size_t p = 0; p < pixels.bytes.size(); p += 3) {
      for (const size_t c : {2, 1, 0}) bitmap.push_back(pixels.bytes[p + c]);
    }
    testing::TestSample same;
    same.image.assign(bitmap.begin(), bitmap.end());
    samples_.push_back(same);
  }
  testing::WriteTestDataset(folder_, testing::ToyFormat(), options);
  dataset_.emplace(*Dataset::Open(folder_));
  auto loader = Loader::Open(*dataset_, MakeOrder(), {}, Options(2), memory_);
  ASSERT_TRUE(loader.ok()) << loader.status();
  size_t seen = 0;
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (auto batch = loader->Next(); (*batch).has_value(); batch = loader->Next()) {
      for (size_t i = 0; i < (*batch)->size(); ++i) {
        const uint64_t id = (*batch)->ids()[i];
        if (id == kPaddingId) continue;
        ++seen;
        ASSERT_EQ(PixelsOf(**batch, i), Expected((*batch)->epoch(), id));
      }
    }
  }
  EXPECT_EQ(seen, 40u);
  // Without a decoder, the bytes are the pixels.
  const auto sample = dataset_->Read(7);
  ASSERT_TRUE(sample.ok()) << sample.status();
  EXPECT_EQ(sample->fields[0].bytes, options.samples[7].image);
}

TEST_F(LoaderDecodeTest, AnImageThatFailsMidwayIsABadSample) {
  Make(/*broken=*/17);
  const Order order = MakeOrder();
  {
    auto loader = *Loader::Open(*dataset_, order, {}, Options(2), memory_);
    absl::Status status;
    while (status.ok()) status = loader.Next().status();
    EXPECT_TRUE(absl::IsDataLoss(status));
    EXPECT_THAT(status.ToString(), AllOf(HasSubstr("train-1.toy"), HasSubstr("000017")));
  }
  LoaderOptions options = Options(2);
  options.bad_samples = BadSamples::kSubstitute;
  auto loader = *Loader::Open(*dataset_, order, {}, options, memory_);
  size_t substituted = 0;
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (auto batch = loader.Next(); (*batch).has_value(); batch = loader.Next()) {
      for (size_t i = 0; i < (*batch)->size(); ++i) {
        const uint64_t id = (*batch)->ids()[i];
        if (id == kPaddingId) continue;
        ASSERT_NE(id, 17u);
        EXPECT_EQ(PixelsOf(**batch, i), Expected((*batch)->epoch(), id));
        substituted += (*batch)->status()[i].state == SampleState::kSubstituted;
      }
    }
  }
  EXPECT_EQ(substituted, 2u);
  const std::vector<BadSample> bad = loader.TakeBadSamples();
  ASSERT_EQ(bad.size(), 2u);
  EXPECT_EQ(bad[0].id, 17u);
}

// Nothing is in the page cache.
ssize_t ColdPreadv2(int fd, const iovec* parts, int count, off_t offset, int flags) {
  if ((flags & RWF_NOWAIT) == 0) return ::preadv2(fd, parts, count, offset, flags);
  errno = EAGAIN;
  return -1;
}

TEST_F(LoaderDecodeTest, OneThreadServesAConsumerThatKeepsBatches) {
  Make();
  const testing::ScopedSyscalls restored;
  SyscallsForTesting().preadv2 = ColdPreadv2;
  LoaderOptions options = Options(1);
  options.prefetch_batches = 2;
  auto loader = *Loader::Open(*dataset_, MakeOrder(), {}, options, memory_);
  std::vector<HostBatch> kept;
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (auto batch = loader.Next(); (*batch).has_value(); batch = loader.Next())
      kept.push_back(**std::move(batch));
  }
  EXPECT_EQ(kept.size(), 8u);
}

TEST_F(LoaderDecodeTest, DecodingNeedsTheImageAndOptionsThatCanBe) {
  Make();
  LoaderOptions options = Options(1);
  options.decode->crop.width = 0;
  EXPECT_TRUE(
      absl::IsInvalidArgument(Loader::Open(*dataset_, MakeOrder(), {}, options, memory_).status()));
  options = Options(1);
  options.fields = {"json"};
  EXPECT_TRUE(
      absl::IsInvalidArgument(Loader::Open(*dataset_, MakeOrder(), {}, options, memory_).status()));
}

TEST_F(LoaderDecodeTest, LittleMemoryMeansFewerBatchesAhead) {
  Make();
  LoaderOptions options = Options(2);
  options.memory_bytes = 100'000;  // less than ten batches of 18,432 bytes
  auto loader = *Loader::Open(*dataset_, MakeOrder(), {}, options, memory_);
  EXPECT_LE(memory_.allocated_bytes(), 300'000u);
  std::vector<HostBatch> kept;
  for (auto batch = loader.Next(); (*batch).has_value(); batch = loader.Next())
    kept.push_back(**std::move(batch));
  EXPECT_EQ(kept.size(), 4u);
  for (const HostBatch& batch : kept)
    EXPECT_EQ(PixelsOf(batch, 0), Expected(batch.epoch(), batch.ids()[0]));
}

}  // namespace
}  // namespace shardpack
