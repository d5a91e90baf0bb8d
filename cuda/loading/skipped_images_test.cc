// SkippedImages on memory whose pixels the test writes: what is looked at is of each image alone,
// whole or a part.
#include "cuda/loading/skipped_images.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cuda/testing/fake_device.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using ::testing::Each;
using ::testing::Ge;
using ::testing::IsEmpty;
using ::testing::Lt;
using ::testing::SizeIs;

constexpr size_t kPitch = 96;

// Three images of which 32 x 10 pixels are there, one behind the other; the headers may say more.
class SkippedImagesTest : public ::testing::TestWithParam<PixelRegion> {
 protected:
  SkippedImagesTest() {
    memory_ = static_cast<uint8_t*>(*fake_.Allocate(3 * bytes_, "images"));
    std::fill_n(memory_, 3 * bytes_, uint8_t{1});
    for (size_t slot = 0; slot < 3; ++slot) {
      JpegImage image;
      image.info.width = GetParam().empty() ? 32 : 400;
      image.info.height = GetParam().empty() ? 10 : 300;
      image.out = memory_ + slot * bytes_;
      image.pitch_bytes = kPitch;
      image.region = image.room = GetParam();
      images_.push_back({image, slot});
    }
  }
  ~SkippedImagesTest() override {
    EXPECT_TRUE(fake_.Synchronize(stream_).ok() && fake_.DestroyStream(stream_).ok());
    EXPECT_TRUE(fake_.Free(memory_).ok());
    EXPECT_THAT(fake_.misuses(), IsEmpty());
  }

  std::vector<SkippedImage> Find() {
    SkippedImages skipped(fake_, nullptr);
    EXPECT_TRUE(skipped.Look(memory_, images_, stream_).ok());
    return *skipped.Find();
  }

  static constexpr size_t bytes_ = kPitch * 10;
  FakeDevice fake_;
  const Stream stream_ = *fake_.CreateStream();
  uint8_t* memory_ = nullptr;
  std::vector<SlotImage> images_;
};

TEST_P(SkippedImagesTest, AllThatWasWritten) { EXPECT_THAT(Find(), IsEmpty()); }

TEST_P(SkippedImagesTest, EachThatWasNot) {
  for (size_t slot = 0; slot < 3; ++slot) {
    std::fill_n(memory_ + slot * bytes_, bytes_, kUnpainted);
    const std::vector<SkippedImage> found = Find();
    ASSERT_THAT(found, SizeIs(1));
    EXPECT_EQ(found[0].at.slot, slot);
    EXPECT_THAT(found[0].unpainted, Each(Lt(bytes_)));
    std::fill_n(memory_ + slot * bytes_, bytes_, uint8_t{1});
  }
}

TEST_P(SkippedImagesTest, EachThatEndsEarly) {
  for (size_t slot = 0; slot < 3; ++slot) {
    uint8_t* const last_row = memory_ + slot * bytes_ + bytes_ - kPitch;
    std::fill_n(last_row, kPitch, kUnpainted);
    const std::vector<SkippedImage> found = Find();
    ASSERT_THAT(found, SizeIs(1));
    EXPECT_EQ(found[0].at.slot, slot);
    EXPECT_THAT(found[0].unpainted, Each(Ge(bytes_ - kPitch)));
    std::fill_n(last_row, kPitch, uint8_t{1});
  }
}

TEST_P(SkippedImagesTest, BytesOfThatValueAmongOthers) {
  for (size_t i = 0; i < 3 * bytes_; i += 2) memory_[i] = kUnpainted;
  EXPECT_THAT(Find(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(WholeImagesAndParts, SkippedImagesTest,
                         ::testing::Values(PixelRegion{}, PixelRegion{100, 50, 32, 10}));

}  // namespace
}  // namespace shardpack
