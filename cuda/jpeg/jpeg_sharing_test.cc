// JpegDecoder with several threads: they do not wait for the engines, and take images of theirs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <deque>
#include <span>
#include <thread>
#include <vector>

#include "cuda/jpeg/jpeg_decoder.h"
#include "cuda/testing/fake_device.h"
#include "cuda/testing/fake_nvjpeg.h"
#include "images/codecs/decode_testing.h"
#include "images/probe/probe_testing.h"

namespace shardpack {
namespace {

using ::testing::IsEmpty;

// Images on the fake device, and what they must become.
class SharingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(fake_.EnterThread().ok());
    stream_ = *fake_.CreateStream();
  }
  void TearDown() override {
    EXPECT_TRUE(fake_.Synchronize(stream_).ok());
    for (const JpegImage& image : images_) EXPECT_TRUE(fake_.Free(image.out).ok());
    EXPECT_TRUE(fake_.DestroyStream(stream_).ok());
    EXPECT_EQ(fake_.live_objects(), 0u) << fake_.LiveObjects();
    EXPECT_THAT(fake_.misuses(), IsEmpty());
  }
  void Add(Image file) {
    files_.push_back(std::move(file));
    const Image& bytes = files_.back();
    JpegImage image;
    image.file = {reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()};
    image.info = Probe(bytes).info;
    image.pitch_bytes = size_t{image.info.width} * 3;
    image.out = static_cast<uint8_t*>(*fake_.Allocate(Bytes(image), "an image"));
    images_.push_back(image);
  }
  static size_t Bytes(const JpegImage& image) { return image.pitch_bytes * image.info.height; }
  void ExpectAllRight(const std::vector<JpegResult>& results) {
    ASSERT_TRUE(fake_.Synchronize(stream_).ok());
    for (size_t i = 0; i < images_.size(); ++i) {
      ASSERT_TRUE(results[i].status.ok()) << results[i].status;
      const auto expected = Decode(files_[i], {.channels = 3, .orient = false});
      const PixelView got{images_[i].out, images_[i].info.width, images_[i].info.height, 3,
                          images_[i].pitch_bytes};
      EXPECT_EQ(LargestDifference(got, expected->view()), 0) << i;
    }
  }

  FakeDevice fake_{{.seed = 9, .max_delay_us = 50}};
  std::deque<Image> files_;
  std::vector<JpegImage> images_;
  Stream stream_ = nullptr;
};

// What the CPU decodes is copied while the engines work: on a stream with them it would come after,
// and threads, whose page-locked memory is small, would wait.
TEST_F(SharingTest, ThreadsDoNotWaitForTheEngines) {
  Add(EncodeJpeg(MakePattern(64, 48, 3), {}));
  uint64_t of_the_cpu = 0;
  for (int i = 0; i < 4; ++i) {  // more than a thread has page-locked memory for
    Add(EncodeJpeg(MakePattern(900, 700, 3), {.rgb_coded = true}));
    of_the_cpu += Bytes(images_.back());
  }
  std::atomic<bool> begun{false}, in_time{false};
  FakeNvjpeg nvjpeg({.engine_work =
                         [&] {  // until the others are done
                           if (!begun.load()) return;
                           const auto end =
                               std::chrono::steady_clock::now() + std::chrono::seconds(20);
                           while (std::chrono::steady_clock::now() < end && !in_time.load()) {
                             in_time.store(fake_.copied_bytes() >= of_the_cpu);
                             std::this_thread::sleep_for(std::chrono::milliseconds(1));
                           }
                         }},
                    &fake_);
  JpegDecoderOptions options;
  options.threads = 2;
  options.share = false;
  std::vector<JpegResult> results(images_.size());
  {
    JpegDecoder decoder(&nvjpeg.functions(), fake_, options);
    for (const bool again : {false, true}) {  // the first batch is compared with the CPU's
      of_the_cpu += fake_.copied_bytes();
      begun.store(again);
      ASSERT_TRUE(decoder.Decode(images_, stream_, results).ok());
      ExpectAllRight(results);
    }
    EXPECT_EQ(decoder.stats().hardware, 2u);
    EXPECT_EQ(decoder.stats().cpu, 8u);
  }
  EXPECT_TRUE(in_time.load());
  EXPECT_EQ(nvjpeg.misuses(), 0);
}

// Slow engines leave images to the threads, each image comes once, and the rates are known then.
TEST_F(SharingTest, ThreadsTakeImagesOfTheEngines) {
  for (uint32_t i = 0; i < 96; ++i) Add(EncodeJpeg(MakePattern(20 + i % 7, 18, 3, i), {}));
  for (const bool share : {true, false}) {
    FakeNvjpeg nvjpeg({.engines = 1, .engine_us = 2000}, &fake_);
    JpegDecoderOptions options;
    options.threads = 3;
    options.share = share;
    {
      JpegDecoder decoder(&nvjpeg.functions(), fake_, options);
      for (int batch = 0; batch < 2; ++batch) {
        for (const JpegImage& image : images_) std::memset(image.out, 0x33, Bytes(image));
        std::vector<JpegResult> results(images_.size());
        ASSERT_TRUE(decoder.Decode(images_, stream_, results).ok());
        ExpectAllRight(results);
      }
      const JpegDecoderStats stats = decoder.stats();
      EXPECT_EQ(stats.hardware + stats.hybrid + stats.cpu, 192u);
      EXPECT_EQ(stats.hardware == 192, !share);
      EXPECT_GT(stats.hardware, 0u);
      EXPECT_EQ(stats.engine_us > 0 && stats.lane_us > 0, share);
    }
    EXPECT_EQ(nvjpeg.misuses(), 0);
    EXPECT_EQ(nvjpeg.live(), 0);
  }
}

// Of batches that are a few chunks long too, or nothing would be shared.
TEST_F(SharingTest, TheRatesOfSmallBatchesAreKnown) {
  for (uint32_t i = 0; i < 12; ++i) Add(EncodeJpeg(MakePattern(20 + i % 7, 18, 3, i), {}));
  FakeNvjpeg nvjpeg({.engines = 1, .engine_us = 3000}, &fake_);
  JpegDecoderOptions options;
  options.threads = 2;
  JpegDecoder decoder(&nvjpeg.functions(), fake_, options);
  JpegDecoderStats stats;
  uint64_t batches = 0;
  // On a busy machine the threads may begin when the engines have ended.
  while (batches < 3 || (batches < 200 && stats.lane_us == 0)) {
    std::vector<JpegResult> results(images_.size());
    ASSERT_TRUE(decoder.Decode(images_, stream_, results).ok());
    ExpectAllRight(results);
    stats = decoder.stats();
    ++batches;
  }
  EXPECT_GT(stats.engine_us, 0);
  EXPECT_GT(stats.lane_us, 0);
  EXPECT_LT(stats.hardware, batches * images_.size());
}

// Engines that refuse all leave all to the threads, in the same batch.
TEST_F(SharingTest, ThreadsTakeWhatTheEnginesRefuse) {
  for (uint32_t i = 0; i < 40; ++i) Add(EncodeJpeg(MakePattern(20 + i % 5, 18, 3, i), {}));
  FakeNvjpeg nvjpeg({.engine_status = [](auto) { return kNvjpegExecutionFailed; }}, &fake_);
  JpegDecoderOptions options;
  options.threads = 3;
  JpegDecoder decoder(&nvjpeg.functions(), fake_, options);
  for (int batch = 0; batch < 4; ++batch) {
    std::vector<JpegResult> results(images_.size());
    ASSERT_TRUE(decoder.Decode(images_, stream_, results).ok());
    ExpectAllRight(results);
  }
  EXPECT_EQ(decoder.stats().hardware, 0u);
  EXPECT_EQ(decoder.stats().hybrid, 160u);
  EXPECT_FALSE(decoder.has_hardware());  // after three batches
}

// What the engines had begun when they refused it does not come over what the threads decode, which
// is on streams of their own.
TEST_F(SharingTest, EnginesThatRefuseLateWriteBeforeTheThreads) {
  for (uint32_t i = 0; i < 24; ++i) Add(EncodeJpeg(MakePattern(20 + i % 5, 18, 3, i), {}));
  for (const bool hybrid : {true, false}) {
    FakeNvjpeg nvjpeg({.engine_status = [&](std::span<const std::byte> file) -> int {
                         return file.data() == images_.back().file.data() ? kNvjpegExecutionFailed
                                                                          : 0;
                       },
                       .refuses_late = true},
                      &fake_);
    for (const bool share : {true, false}) {
      JpegDecoderOptions options;
      options.threads = 3;
      options.share = share;
      options.use_hybrid = hybrid;
      JpegDecoder decoder(&nvjpeg.functions(), fake_, options);
      for (int batch = 0; batch < 3; ++batch) {
        std::vector<JpegResult> results(images_.size());
        ASSERT_TRUE(decoder.Decode(images_, stream_, results).ok());
        ExpectAllRight(results);
        EXPECT_TRUE(share || decoder.stats().failed_batches > 0);  // shared: a thread may take it
      }
    }
    EXPECT_EQ(nvjpeg.misuses(), 0);
  }
}

// Each call that fails ends in an error, or in right images.
TEST_F(SharingTest, EveryCallThatFails) {
  for (uint32_t i = 0; i < 30; ++i) Add(EncodeJpeg(MakePattern(20 + i % 5, 18, 3, i), {}));
  for (int64_t n = 1, without = 0; without < 2; n += 3) {
    FakeNvjpeg nvjpeg({}, &fake_);
    nvjpeg.FailAt(n, kNvjpegExecutionFailed);
    JpegDecoderOptions options;
    options.threads = 3;
    {
      JpegDecoder decoder(&nvjpeg.functions(), fake_, options);
      std::vector<JpegResult> results(images_.size());
      const absl::Status status = decoder.Decode(images_, stream_, results);
      EXPECT_TRUE(status.ok()) << status;  // nvJPEG's failures are no failures of the device
      if (status.ok()) ExpectAllRight(results);
    }
    without = nvjpeg.failed() ? 0 : without + 1;
    ASSERT_EQ(nvjpeg.misuses(), 0) << n;
    if (HasFailure()) return;
  }
}

// One of each kind of route, and damaged ones, several times over.
class ParsingTest : public SharingTest {
 protected:
  void SetUp() override {
    SharingTest::SetUp();
    for (uint32_t i = 0; i < 60; ++i) {
      const TestPixels pixels = MakePattern(20 + i % 7, 18, 3, i);
      Add(EncodeJpeg(pixels, {.progressive = i % 5 == 1, .rgb_coded = i % 5 == 2}));
      images_.back().id = i;
    }
    // Headers of another size: nvJPEG finds out, and so does the CPU.
    images_[3].info.width -= 1;
    images_[40].info.width -= 1;
  }
  std::vector<JpegResult> Decode(JpegDecoder& decoder) {
    std::vector<JpegResult> results(images_.size());
    EXPECT_TRUE(decoder.Decode(images_, stream_, results).ok());
    EXPECT_TRUE(fake_.Synchronize(stream_).ok());
    return results;
  }
};

// Headers are parsed on all threads, each with a stream of its own. What becomes of an image, of
// one whose headers are wrong too, does not depend on the number of threads.
TEST_F(ParsingTest, ManyHeadersAtOnceAndTheSameResults) {
  std::vector<JpegResult> by_one;
  for (const int threads : {1, 8}) {
    FakeNvjpeg nvjpeg({.parse_us = 2000,
                       .engine_status = [&](std::span<const std::byte> file) -> int {
                         return file.data() == images_[15].file.data() ? kNvjpegExecutionFailed : 0;
                       }},
                      &fake_);
    JpegDecoderOptions options;
    options.threads = threads;
    options.share = false;       // which is a matter of time
    options.use_hybrid = false;  // which parses too
    {
      JpegDecoder decoder(&nvjpeg.functions(), fake_, options);
      for (int batch = 0; batch < 3; ++batch) {
        const std::vector<JpegResult> results = Decode(decoder);
        if (by_one.empty()) by_one = results;
        for (size_t i = 0; i < images_.size(); ++i) {
          SCOPED_TRACE(i);
          EXPECT_EQ(results[i].status, by_one[i].status);
          EXPECT_EQ(results[i].way, by_one[i].way);
          EXPECT_EQ(results[i].status.ok(), i != 3 && i != 40) << results[i].status;
          const bool by_engines = i % 5 != 1 && i % 5 != 2 && i != 3 && i != 40 && i != 15;
          EXPECT_EQ(results[i].way == JpegWay::kHardware, by_engines);
        }
      }
      EXPECT_EQ(decoder.stats().failed, 6u);
      EXPECT_EQ(decoder.stats().failed_batches, 1u) << "it is remembered";
    }
    if (threads == 1) {
      EXPECT_EQ(nvjpeg.most_parses(), 1);
    } else {
      EXPECT_GE(nvjpeg.most_parses(), 3);
      EXPECT_LE(nvjpeg.most_parses(), 8);
    }
    EXPECT_EQ(nvjpeg.misuses(), 0);
    EXPECT_EQ(nvjpeg.live(), 0);
  }
}

// A call of nvJPEG that fails while others parse: each image ends somewhere.
TEST_F(ParsingTest, AParseThatFails) {
  for (int64_t call = 1; call < 400; call += 7) {
    FakeNvjpeg nvjpeg({}, &fake_);
    JpegDecoderOptions options;
    options.threads = 3;
    JpegDecoder decoder(&nvjpeg.functions(), fake_, options);
    nvjpeg.FailAt(call, kNvjpegBadJpeg);
    const std::vector<JpegResult> results = Decode(decoder);
    for (size_t i = 0; i < images_.size(); ++i)
      ASSERT_EQ(results[i].status.ok(), i != 3 && i != 40) << call << " " << results[i].status;
    ASSERT_EQ(nvjpeg.misuses(), 0) << call;
  }
}

// A batch starts no threads.
TEST_F(ParsingTest, ThreadsStay) {
  const uint64_t before = fake_.calls("EnterThread");
  FakeNvjpeg nvjpeg({}, &fake_);
  JpegDecoderOptions options;
  options.threads = 3;
  JpegDecoder decoder(&nvjpeg.functions(), fake_, options);
  for (int batch = 0; batch < 100; ++batch) (void)Decode(decoder);
  EXPECT_EQ(fake_.calls("EnterThread") - before, 3u);
}

}  // namespace
}  // namespace shardpack
