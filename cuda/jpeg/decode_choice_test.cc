// DecodeChoice alone, and in a JpegDecoder on the fake, whose clock is what the fake counts.
#include "cuda/jpeg/decode_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cuda/testing/fake_device.h"
#include "cuda/testing/fake_nvjpeg.h"
#include "images/codecs/decode_testing.h"
#include "images/probe/probe_testing.h"

namespace shardpack {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// What an image takes in each batch of a way; the last one is that of all later batches.
using Costs = std::map<DecodeWay, std::vector<double>>;

DecodeWay Choose(DecodeChoice& choice, const Costs& costs, size_t images = 10) {
  std::map<DecodeWay, size_t> batches;
  while (choice.measures()) {
    EXPECT_EQ(choice.Describe(), "");
    const std::vector<double>& of_way = costs.at(choice.way());
    const size_t batch = std::min(batches[choice.way()]++, of_way.size() - 1);
    choice.Note(images, of_way[batch] * static_cast<double>(images));
  }
  for (const auto& [way, count] : batches) EXPECT_LE(count, DecodeChoice::kTurns);
  return choice.way();
}

const std::vector<DecodeWay> kAll = {
    {JpegWay::kHardware, false}, {JpegWay::kHybrid, false}, {JpegWay::kCpu, false}};

TEST(DecodeChoiceTest, TheFastestIsChosenAndSaid) {
  for (const DecodeWay& best : kAll) {
    Costs costs;
    for (const DecodeWay& way : kAll) costs[way] = {way == best ? 20.0 : 41.25};
    DecodeChoice choice(kAll);
    EXPECT_EQ(Choose(choice, costs), best);
    EXPECT_THAT(choice.Describe(), HasSubstr("after 9 batches"));
  }
  DecodeChoice choice(kAll);
  Choose(choice, {{kAll[0], {41.25}}, {kAll[1], {20}}, {kAll[2], {610.5}}});
  EXPECT_EQ(choice.Describe(),
            "hybrid: 20.0 us an image, after 9 batches; hardware 41.2, cpu 610.5");
}

TEST(DecodeChoiceTest, TheFirstBatchAndOneThatWasDisturbedDoNotCount) {
  DecodeChoice choice(kAll);
  EXPECT_EQ(Choose(choice, {{kAll[0], {9000, 30, 5000}}, {kAll[1], {1, 50, 50}}, {kAll[2], {90}}}),
            kAll[0]);
}

TEST(DecodeChoiceTest, OfEqualWaysTheFirstIsChosen) {
  DecodeChoice choice(kAll);
  EXPECT_EQ(Choose(choice, {{kAll[0], {7}}, {kAll[1], {7}}, {kAll[2], {7}}}), kAll[0]);
}

TEST(DecodeChoiceTest, ASingleWayNeedsNoBatch) {
  const DecodeChoice choice({kAll[2]});
  EXPECT_FALSE(choice.measures());
  EXPECT_EQ(choice.way(), kAll[2]);
  EXPECT_EQ(choice.Describe(), "cpu: there is no other way here");
}

TEST(DecodeChoiceTest, ABatchWithoutImagesIsNoTurn) {
  DecodeChoice choice(kAll);
  for (int i = 0; i < 100; ++i) choice.Note(0, 5);
  EXPECT_TRUE(choice.measures());
  EXPECT_EQ(choice.way(), kAll[0]);
}

// One that is refused has no more turns, and is not chosen.
TEST(DecodeChoiceTest, AWayThatIsRefusedIsSaid) {
  const DecodeWay by_region = {JpegWay::kHardware, true};
  DecodeChoice choice({by_region, kAll[0], {JpegWay::kCpu, true}});
  EXPECT_EQ(choice.way(), by_region);
  choice.Refuse();
  EXPECT_EQ(Choose(choice, {{kAll[0], {20}}, {{JpegWay::kCpu, true}, {30}}}), kAll[0]);
  EXPECT_EQ(choice.Describe(),
            "hardware: 20.0 us an image, after 6 batches; hardware by region refused, cpu 30.0");
  DecodeChoice late({by_region, kAll[1]});
  late.Note(1, 1);
  late.Note(1, 5);
  late.Refuse();
  EXPECT_EQ(Choose(late, {{kAll[1], {5}}}, 1), kAll[1]);
}

// A decoder that chooses, on a clock that goes on by what each way takes for an image.
class ChoosingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(fake_.EnterThread().ok());
    stream_ = *fake_.CreateStream();
    for (uint32_t i = 0; i < 8; ++i) {
      files_.push_back(EncodeJpeg(MakePattern(20 + i % 5, 18, 3, i), {}));
      const Image& bytes = files_.back();
      JpegImage image;
      image.file = {reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()};
      image.info = Probe(bytes).info;
      image.pitch_bytes = size_t{image.info.width} * 3;
      image.out = static_cast<uint8_t*>(*fake_.Allocate(Bytes(image), "an image"));
      images_.push_back(image);
    }
  }
  void TearDown() override {
    EXPECT_TRUE(fake_.Synchronize(stream_).ok());
    for (const JpegImage& image : images_) EXPECT_TRUE(fake_.Free(image.out).ok());
    EXPECT_TRUE(fake_.DestroyStream(stream_).ok());
    EXPECT_EQ(fake_.live_objects(), 0u) << fake_.LiveObjects();
    EXPECT_THAT(fake_.misuses(), IsEmpty());
  }
  static size_t Bytes(const JpegImage& image) { return image.pitch_bytes * image.info.height; }

  struct Cost {
    double hardware, hybrid, cpu;
  };
  // What a decoder says after so many batches. All of them have the same pixels, since the fakes
  // decode as the CPU does.
  JpegDecoderStats Run(const Cost& cost, int batches, int threads = 1) {
    FakeNvjpeg nvjpeg({}, &fake_);
    std::unique_ptr<JpegDecoder> decoder;
    JpegDecoderOptions options;
    options.threads = threads;
    options.share = false;
    options.choose = true;
    options.now_us = [&] {
      if (decoder == nullptr) return 0.0;
      const JpegDecoderStats stats = decoder->stats();
      return static_cast<double>(stats.hardware) * cost.hardware +
             static_cast<double>(stats.hybrid) * cost.hybrid +
             static_cast<double>(stats.cpu) * cost.cpu;
    };
    decoder = std::make_unique<JpegDecoder>(&nvjpeg.functions(), fake_, options);
    for (int batch = 0; batch < batches; ++batch) {
      for (const JpegImage& image : images_) std::memset(image.out, 0x33, Bytes(image));
      std::vector<JpegResult> results(images_.size());
      EXPECT_TRUE(decoder->Decode(images_, stream_, results).ok());
      EXPECT_TRUE(fake_.Synchronize(stream_).ok());
      for (size_t i = 0; i < images_.size(); ++i) {
        EXPECT_TRUE(results[i].status.ok()) << results[i].status;
        const auto expected = Decode(files_[i], {.channels = 3, .orient = false});
        const PixelView got{images_[i].out, images_[i].info.width, images_[i].info.height, 3,
                            images_[i].pitch_bytes};
        EXPECT_EQ(LargestDifference(got, expected->view()), 0) << batch << " " << i;
      }
    }
    const JpegDecoderStats stats = decoder->stats();
    decoder.reset();
    EXPECT_EQ(nvjpeg.misuses(), 0);
    EXPECT_EQ(nvjpeg.live(), 0);
    return stats;
  }

  FakeDevice fake_{{.seed = 9, .max_delay_us = 50}};
  std::deque<Image> files_;
  std::vector<JpegImage> images_;
  Stream stream_ = nullptr;
};

// Nine batches are tried, three by each way; the others go by the fastest.
TEST_F(ChoosingTest, LaterBatchesGoTheFastestWay) {
  const JpegDecoderStats engines = Run({10, 20, 30}, 12);
  EXPECT_EQ(engines.hardware, 48u);
  EXPECT_EQ(engines.hybrid, 24u);
  EXPECT_EQ(engines.cpu, 24u);
  EXPECT_EQ(engines.choice, "hardware: 10.0 us an image, after 9 batches; hybrid 20.0, cpu 30.0");
  const JpegDecoderStats hybrid = Run({20, 10, 30}, 12, 3);
  EXPECT_EQ(hybrid.hybrid, 48u);
  EXPECT_THAT(hybrid.choice, StartsWith("hybrid: 10.0"));
  const JpegDecoderStats cpu = Run({20, 15, 10}, 12);
  EXPECT_EQ(cpu.cpu, 48u);
  EXPECT_THAT(cpu.choice, StartsWith("cpu: 10.0"));
  EXPECT_EQ(cpu.without_nvjpeg, 0u);  // it was not lacking
  EXPECT_EQ(cpu.refused, 0u);
}

// What is measured ends when the pixels are there, not when the work is enqueued: on a clock that
// goes on when the engines have worked.
TEST_F(ChoosingTest, MeasuresUntilThePixelsAreThere) {
  std::atomic<uint64_t> us{0};
  FakeNvjpegOptions engines;
  engines.engine_work = [&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    us += 1000;
  };
  FakeNvjpeg nvjpeg(engines, &fake_);
  JpegDecoderOptions options;
  options.share = false;
  options.choose = true;
  options.now_us = [&] { return static_cast<double>(us.load()); };
  {
    JpegDecoder decoder(&nvjpeg.functions(), fake_, options);
    for (int batch = 0; batch < 9; ++batch) {
      std::vector<JpegResult> results(images_.size());
      ASSERT_TRUE(decoder.Decode(images_, stream_, results).ok());
      ASSERT_TRUE(fake_.Synchronize(stream_).ok());
    }
    EXPECT_EQ(decoder.stats().choice,
              "hybrid: 0.0 us an image, after 9 batches; hardware 125.0, cpu 0.0");
    EXPECT_TRUE(decoder.has_hardware());
    EXPECT_FALSE(decoder.may_use_hardware());
  }
}

TEST_F(ChoosingTest, NothingIsSaidBeforeTheChoice) { EXPECT_EQ(Run({1, 2, 3}, 8).choice, ""); }

}  // namespace
}  // namespace shardpack
