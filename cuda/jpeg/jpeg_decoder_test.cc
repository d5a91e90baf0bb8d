#include "cuda/jpeg/jpeg_decoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cuda/testing/fake_nvjpeg.h"
#include "images/codecs/decode_testing.h"
#include "images/probe/probe_testing.h"

namespace shardpack {
namespace {

struct File {
  std::string name;
  Image bytes;
  ImageInfo info;
  JpegWay with_engines, without_engines;
  bool good = true;
};

void Add(const std::string& name, Image bytes, JpegWay with, JpegWay without,
         std::vector<File>* files, bool good = true) {
  const ImageInfo info = Probe(bytes).info;
  files->push_back({name, std::move(bytes), info, with, without, good});
}

// One of each kind that the decoder distinguishes.
std::vector<File> AllKinds() {
  constexpr JpegWay kEngines = JpegWay::kHardware, kHybrid = JpegWay::kHybrid, kCpu = JpegWay::kCpu;
  const TestPixels rgb = MakePattern(45, 31, 3), gray = MakePattern(20, 33, 1);
  std::vector<File> files;
  Add("baseline", EncodeJpeg(rgb, {.sampling = {2, 2}}), kEngines, kHybrid, &files);
  Add("progressive", EncodeJpeg(rgb, {.progressive = true}), kHybrid, kHybrid, &files);
  Add("gray", EncodeJpeg(gray, {}), kEngines, kHybrid, &files);
  Add("cmyk", LoadTestImage("cmyk.jpg"), kCpu, kCpu, &files);
  Add("ycck", LoadTestImage("ycck.jpg"), kCpu, kCpu, &files);
  Add("rgb coded", EncodeJpeg(rgb, {.rgb_coded = true}), kCpu, kCpu, &files);
  Add("turned", LoadTestImage("orientation-6.jpg"), kEngines, kHybrid, &files);
  Add("png", LoadTestImage("rgb.png"), kCpu, kCpu, &files);
  Image damaged = EncodeJpeg(MakePattern(64, 64, 3), {});
  const ImageInfo info = Probe(damaged).info;
  damaged.resize(damaged.size() / 2);
  Add("cut", damaged, kCpu, kCpu, &files, false);
  files.back().info = info;
  Add("restart", LoadTestImage("restart.jpg"), kEngines, kHybrid, &files);
  return files;
}

// A batch of them with room for each, and its results.
struct Batch {
  explicit Batch(const std::vector<File>& files, uint8_t channels = 3, size_t gap = 5)
      : files(&files), channels(channels) {
    for (const File& file : files) {
      const size_t pitch = size_t{file.info.width} * channels + gap;
      outs.push_back(std::vector<uint8_t>(pitch * file.info.height, 0xEE));
      JpegImage image;
      image.file = {reinterpret_cast<const std::byte*>(file.bytes.data()), file.bytes.size()};
      image.info = file.info;
      image.out = outs.back().data();
      image.pitch_bytes = pitch;
      images.push_back(image);
    }
    results.resize(files.size());
  }

  // Whether the i-th holds what the CPU makes of it.
  ::testing::AssertionResult IsRight(size_t i) const {
    const auto expected = Decode((*files)[i].bytes, {.channels = channels, .orient = false});
    if (!expected.ok()) return ::testing::AssertionFailure() << expected.status();
    const PixelView view{outs[i].data(), images[i].info.width, images[i].info.height, channels,
                         images[i].pitch_bytes};
    const int largest = LargestDifference(view, expected->view());
    if (largest == 0) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << (*files)[i].name << " differs by " << largest;
  }
  void ExpectAll() const {
    for (size_t i = 0; i < files->size(); ++i) {
      const File& file = (*files)[i];
      EXPECT_EQ(results[i].status.ok(), file.good) << file.name << " " << results[i].status;
      if (!file.good) continue;
      EXPECT_TRUE(IsRight(i));
    }
  }

  const std::vector<File>* files;
  uint8_t channels;
  std::vector<std::vector<uint8_t>> outs;
  std::vector<JpegImage> images;
  std::vector<JpegResult> results;
};

TEST(JpegDecoder, EachKindItsWay) {
  const std::vector<File> files = AllKinds();
  for (const uint8_t channels : {uint8_t{1}, uint8_t{3}}) {
    for (const int engines : {0, 2}) {
      FakeNvjpeg fake({.engines = engines});
      JpegDecoderOptions options;
      options.channels = channels;
      JpegDecoder decoder(&fake.functions(), fake.device(), options);
      EXPECT_EQ(decoder.has_hardware(), engines != 0);
      EXPECT_TRUE(decoder.has_hybrid());
      EXPECT_EQ(decoder.backends(), engines == 0 ? "hardware: nvjpegCreateExV2: not on this GPU; "
                                                   "hybrid: yes"
                                                 : "hardware: 2 engines; hybrid: yes");
      Batch batch(files, channels);
      ASSERT_TRUE(decoder.Decode(batch.images, nullptr, batch.results).ok());
      fake.Finish();
      batch.ExpectAll();
      for (size_t i = 0; i < files.size(); ++i) {
        EXPECT_EQ(batch.results[i].way,
                  engines == 0 ? files[i].without_engines : files[i].with_engines)
            << files[i].name;
      }
      EXPECT_EQ(decoder.stats().batches, engines == 0 ? 0u : 1u);
      EXPECT_EQ(decoder.stats().failed, 1u);
      EXPECT_EQ(fake.misuses(), 0);
    }
  }
}

TEST(JpegDecoder, WithoutNvjpegOnTheCpu) {
  const std::vector<File> files = AllKinds();
  FakeNvjpeg fake({});
  JpegDecoder decoder(nullptr, fake.device(), {});
  EXPECT_EQ(decoder.backends(), "hardware: no nvJPEG; hybrid: no nvJPEG");
  Batch batch(files);
  ASSERT_TRUE(decoder.Decode(batch.images, nullptr, batch.results).ok());
  fake.Finish();
  batch.ExpectAll();
  EXPECT_EQ(decoder.stats().cpu, files.size() - 1);
}

// More than the memory between CPU and device holds, with and without gaps between rows.
// The CPU decodes and copies no more, and what is around it stays; the others give whole images.
TEST(JpegDecoder, RegionsAreEnoughForTheCpu) {
  std::vector<File> files = AllKinds();
  for (int exif = 1; exif <= 8; ++exif) {
    const std::string name = "orientation-" + std::to_string(exif) + ".jpg";
    Add(name, LoadTestImage(name), JpegWay::kHardware, JpegWay::kHybrid, &files);
  }
  for (const uint8_t channels : {uint8_t{1}, uint8_t{3}}) {
    for (const int engines : {2, 0, -1}) {  // -1: no nvJPEG
      for (const bool orient : {false, true}) {
        FakeNvjpeg fake({.engines = std::max(engines, 0)});
        JpegDecoderOptions options;
        options.channels = channels;
        options.orient = orient;
        options.threads = 2;
        JpegDecoder decoder(engines < 0 ? nullptr : &fake.functions(), fake.device(), options);
        Batch batch(files, channels);
        for (size_t i = 0; i < files.size(); ++i) {
          JpegImage& image = batch.images[i];
          const auto [width, height] = SizeOf(image.info, orient);
          image.region = {width / 4, height / 3, width - width / 2, height - height / 2};
          image.pitch_bytes = size_t{width} * channels;
          batch.outs[i].assign(image.pitch_bytes * height, 0xEE);
          image.out = batch.outs[i].data();
        }
        ASSERT_TRUE(decoder.Decode(batch.images, nullptr, batch.results).ok());
        fake.Finish();
        for (size_t i = 0; i < files.size(); ++i) {
          if (files[i].name == "cut") continue;
          SCOPED_TRACE(files[i].name);
          const JpegResult& result = batch.results[i];
          ASSERT_TRUE(result.status.ok()) << result.status;
          EXPECT_EQ(result.packed, result.way == JpegWay::kCpu);
          const auto whole = Decode(files[i].bytes, {.channels = channels, .orient = orient});
          ASSERT_TRUE(whole.ok()) << whole.status();
          TestPixels right = *whole;
          if (result.packed) right = CropPixels(whole->view(), batch.images[i].region);
          ASSERT_LE(right.bytes.size(), batch.outs[i].size());
          const auto end = batch.outs[i].begin() + static_cast<std::ptrdiff_t>(right.bytes.size());
          EXPECT_TRUE(std::equal(batch.outs[i].begin(), end, right.bytes.begin()));
          EXPECT_EQ(std::count(end, batch.outs[i].end(), 0xEE), batch.outs[i].end() - end);
        }
        EXPECT_EQ(fake.misuses(), 0);
      }
    }
  }
}

// What engines skipped is read as what they give.
TEST(JpegDecoder, SkippedImagesAreDecodedWhole) {
  const std::vector<File> files = AllKinds();
  FakeNvjpeg fake({});
  JpegDecoder decoder(&fake.functions(), fake.device(), {});
  Batch batch(files);
  batch.images[0].region = {20, 10, 9, 8};
  const size_t last = batch.images[0].pitch_bytes * (files[0].info.height - 1);
  bool skipped = false;
  ASSERT_TRUE(
      decoder.DecodeSkipped(batch.images[0], {&last, 1}, nullptr, &batch.results[0], &skipped)
          .ok());
  fake.Finish();
  EXPECT_TRUE(skipped);
  EXPECT_FALSE(batch.results[0].packed);
  EXPECT_TRUE(batch.IsRight(0));
}

TEST(JpegDecoder, LargeImagesInParts) {
  std::vector<File> files;
  for (const uint32_t width : {1500u, 701u, 100u}) {
    Add("large", EncodeJpeg(MakePattern(width, 900, 3), {}), JpegWay::kCpu, JpegWay::kCpu, &files);
  }
  for (const size_t gap : {size_t{0}, size_t{5}}) {
    FakeNvjpeg fake({});
    JpegDecoder decoder(nullptr, fake.device(), {});
    Batch batch(files, 3, gap);
    ASSERT_TRUE(decoder.Decode(batch.images, nullptr, batch.results).ok());
    fake.Finish();
    batch.ExpectAll();
    for (size_t i = 0; gap > 0 && i < files.size(); ++i) {
      EXPECT_EQ(batch.outs[i][size_t{files[i].info.width} * 3], 0xEE) << "between rows";
    }
  }
}

TEST(JpegDecoder, OldLibraryWithoutInterpolation) {
  const std::vector<File> files = AllKinds();
  FakeNvjpeg fake({.knows_interpolation = false});
  JpegDecoder decoder(&fake.functions(), fake.device(), {});
  EXPECT_TRUE(decoder.has_hardware() && decoder.has_hybrid());
}

void ExpectManyInFlight(const std::vector<File>& files, bool nvjpeg) {
  FakeNvjpeg fake({});
  JpegDecoderOptions options;
  std::vector<std::unique_ptr<Batch>> batches;
  {
    JpegDecoder decoder(nvjpeg ? &fake.functions() : nullptr, fake.device(), options);
    uint64_t allocated = 0;
    for (int i = 0; i < 17; ++i) {
      if (i == 12) allocated = fake.Calls("AllocateHost");
      batches.push_back(std::make_unique<Batch>(files));
      Batch& batch = *batches.back();
      ASSERT_TRUE(decoder.Decode(batch.images, nullptr, batch.results).ok());
    }
    EXPECT_EQ(fake.Calls("AllocateHost"), allocated);
  }
  fake.Finish();
  for (const auto& batch : batches) batch->ExpectAll();
  EXPECT_EQ(fake.misuses(), 0);
  EXPECT_EQ(fake.live(), 0);
}

// Memory of one batch is not used for the next before the device has read it. Each way alone, since
// waiting for one lets the work of the others run too.
TEST(JpegDecoder, ManyBatchesInFlight) {
  const std::vector<File> files = AllKinds();
  ExpectManyInFlight(files, true);
  ExpectManyInFlight(files, false);
  for (const JpegWay way : {JpegWay::kHardware, JpegWay::kHybrid}) {
    std::vector<File> alone;
    std::copy_if(files.begin(), files.end(), std::back_inserter(alone),
                 [way](const File& file) { return file.with_engines == way; });
    ExpectManyInFlight(alone, true);
  }
}

// The engines are given up when they fail repeatedly.
TEST(JpegDecoder, EnginesThatAlwaysFail) {
  const std::vector<File> files = AllKinds();
  FakeNvjpeg fake({});
  fake.functions().DecodeBatched = [](NvjpegHandle, NvjpegState, const unsigned char* const*,
                                      const size_t*, NvjpegImage*,
                                      void*) -> int { return kNvjpegInternalError; };
  JpegDecoder decoder(&fake.functions(), fake.device(), {});
  for (int i = 1; i <= 4; ++i) {
    Batch batch(files);
    ASSERT_TRUE(decoder.Decode(batch.images, nullptr, batch.results).ok());
    fake.Finish();
    batch.ExpectAll();
    EXPECT_EQ(decoder.has_hardware(), i < 3);
    EXPECT_EQ(decoder.stats().failed_batches, static_cast<uint64_t>(std::min(i, 3)));
  }
  EXPECT_EQ(decoder.backends(),
            "hardware: given up: nvjpegDecodeBatched: internal error; hybrid: yes");
}

// Each scan is a pass over the whole image, for nvJPEG too.
TEST(JpegDecoder, ManyScansAreTheCpus) {
  std::vector<File> files;
  Add("progressive", EncodeJpeg(MakePattern(45, 31, 3), {.progressive = true}), JpegWay::kHybrid,
      JpegWay::kHybrid, &files);
  for (const uint32_t most : {100u, 3u}) {
    FakeNvjpeg fake({});
    JpegDecoderOptions options;
    options.max_scans = most;
    JpegDecoder decoder(&fake.functions(), fake.device(), options);
    Batch batch(files);
    ASSERT_TRUE(decoder.Decode(batch.images, nullptr, batch.results).ok());
    fake.Finish();
    EXPECT_EQ(batch.results[0].way, most == 3 ? JpegWay::kCpu : JpegWay::kHybrid);
    EXPECT_EQ(batch.results[0].status.ok(), most != 3) << batch.results[0].status;
  }
}

// The engines do not say which image they failed at.
TEST(JpegDecoder, FailedBatchIsDecodedOneByOne) {
  const std::vector<File> files = AllKinds();
  FakeNvjpeg fake({});
  fake.functions().DecodeBatched = [](NvjpegHandle, NvjpegState, const unsigned char* const*,
                                      const size_t*, NvjpegImage*,
                                      void*) -> int { return kNvjpegExecutionFailed; };
  JpegDecoder decoder(&fake.functions(), fake.device(), {});
  Batch batch(files);
  ASSERT_TRUE(decoder.Decode(batch.images, nullptr, batch.results).ok());
  fake.Finish();
  batch.ExpectAll();
  EXPECT_EQ(decoder.stats().hardware, 0u);
  EXPECT_EQ(decoder.stats().first_refusal, "nvjpegDecodeBatched: execution failed");
}

TEST(JpegDecoder, EveryAbsentSymbol) {
  const std::vector<File> files = AllKinds();
  int number = 0;
#define SHARDPACK_WITHOUT(name, users, parameters)                                   \
  {                                                                                  \
    FakeNvjpeg fake({});                                                             \
    fake.functions().name = nullptr;                                                 \
    JpegDecoder decoder(&fake.functions(), fake.device(), {});                       \
    Batch batch(files);                                                              \
    ASSERT_TRUE(decoder.Decode(batch.images, nullptr, batch.results).ok()) << #name; \
    fake.Finish();                                                                   \
    batch.ExpectAll();                                                               \
    const bool whole = decoder.has_hardware() && decoder.has_hybrid();               \
    const std::string absent = "nvjpeg" #name;                                       \
    const bool named = decoder.backends().find(absent) != std::string::npos;         \
    EXPECT_TRUE(whole || named) << absent << ": " << decoder.backends();             \
    number += named;                                                                 \
  }
  SHARDPACK_NVJPEG_FUNCTIONS(SHARDPACK_WITHOUT)
#undef SHARDPACK_WITHOUT
  // All but the optional ones.
  EXPECT_EQ(number, 26);
}

// One call fails, each in turn. Returns how many there were.
int FailEach(const std::vector<File>& files, int code) {
  for (int call = 1;; ++call) {
    FakeNvjpeg fake({});
    int64_t before = 0;
    bool over = false;
    {
      fake.FailAt(call, code);
      JpegDecoderOptions options;
      options.hybrid_pages = 2;
      JpegDecoder decoder(&fake.functions(), fake.device(), options);
      for (int i = 0; i < 2; ++i) {
        Batch batch(files);
        const absl::Status status = decoder.Decode(batch.images, nullptr, batch.results);
        fake.Finish();
        if (status.ok()) {
          batch.ExpectAll();
        } else {
          EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
          EXPECT_NE(status.message().find("(error "), std::string::npos) << status;
        }
      }
      over = !fake.failed();
      before = fake.live();
    }
    EXPECT_EQ(fake.live(), 0) << "call " << call;
    EXPECT_EQ(fake.misuses(), 0) << "call " << call;
    EXPECT_GT(before, 0);
    if (over || ::testing::Test::HasFailure()) return call;
  }
}

TEST(JpegDecoder, EveryCallFailing) {
  const std::vector<File> files = AllKinds();
  for (const int code : {int{kNvjpegBadJpeg}, int{kNvjpegExecutionFailed}}) {
    // Calls of nvJPEG and of the device are counted together, so each call of both fails once.
    EXPECT_GT(FailEach(files, code), 60);
  }
}

TEST(JpegDecoder, RefusesWhatHasNoRoom) {
  const std::vector<File> files = AllKinds();
  FakeNvjpeg fake({});
  JpegDecoder decoder(&fake.functions(), fake.device(), {});
  Batch batch(files);
  batch.images[0].pitch_bytes = 45 * 3 - 1;
  batch.images[1].out = nullptr;
  batch.images[2].info.width -= 1;  // nvJPEG finds out, and so does the CPU
  batch.images[3].info = {};
  batch.images[9].info.format = ImageFormat::kUnknown;
  ASSERT_TRUE(decoder.Decode(batch.images, nullptr, batch.results).ok());
  fake.Finish();
  const auto code = [&](size_t i) { return batch.results[i].status.code(); };
  EXPECT_EQ(code(0), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(1), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(2), absl::StatusCode::kDataLoss);
  EXPECT_EQ(code(3), absl::StatusCode::kDataLoss);
  EXPECT_EQ(code(9), absl::StatusCode::kOk);
  EXPECT_TRUE(batch.IsRight(9));
  EXPECT_TRUE(batch.IsRight(6));
  EXPECT_FALSE(decoder.Decode(batch.images, nullptr, {}).ok());
  batch.outs[2].assign(batch.outs[2].size(), 0);
}

// One of many baseline images, whose bytes no other has.
std::vector<File> ManyImages(size_t count) {
  std::vector<File> files;
  for (size_t i = 0; i < count; ++i) {
    Add("image " + std::to_string(i), EncodeJpeg(MakePattern(40 + i, 64, 3), {}),
        JpegWay::kHardware, JpegWay::kHybrid, &files);
  }
  return files;
}

bool IsFile(std::span<const std::byte> file, const File& wanted) {
  return file.size() == wanted.bytes.size() &&
         std::memcmp(file.data(), wanted.bytes.data(), file.size()) == 0;
}

// The engines go on, and ask once for what they refuse.
TEST(JpegDecoder, ImagesThatTheEnginesRefuseAreFoundAndRemembered) {
  const std::vector<File> files = ManyImages(32);
  for (const int code : {int{kNvjpegJpegNotSupported}, int{kNvjpegExecutionFailed}}) {
    FakeNvjpegOptions options;
    options.engine_status = [&](std::span<const std::byte> file) {
      return IsFile(file, files[5]) || IsFile(file, files[22]) ? code : 0;
    };
    FakeNvjpeg fake(options);
    JpegDecoder decoder(&fake.functions(), fake.device(), {});
    for (uint64_t n = 1; n <= 6; ++n) {
      Batch batch(files);
      for (size_t i = 0; i < files.size(); ++i) batch.images[i].id = 1000 + i;
      ASSERT_TRUE(decoder.Decode(batch.images, nullptr, batch.results).ok());
      fake.Finish();
      batch.ExpectAll();
      for (size_t i = 0; i < files.size(); ++i) {
        EXPECT_EQ(batch.results[i].way, i == 5 || i == 22 ? JpegWay::kHybrid : JpegWay::kHardware);
      }
      EXPECT_EQ(decoder.stats().failed_batches, 1u);
      EXPECT_EQ(decoder.stats().hardware, 30 * n);
      EXPECT_TRUE(decoder.has_hardware());
    }
    EXPECT_EQ(fake.Calls("DecodeBatched"), 5u + 19) << "halves of the first batch, and one each";
  }
}

TEST(JpegDecoder, EnginesThatRefuseMostImagesCostFewCalls) {
  const std::vector<File> files = ManyImages(32);
  FakeNvjpegOptions options;
  options.engine_status = [&](std::span<const std::byte> file) {
    return IsFile(file, files[31]) ? 0 : int{kNvjpegJpegNotSupported};
  };
  FakeNvjpeg fake(options);
  JpegDecoder decoder(&fake.functions(), fake.device(), {});
  Batch batch(files);
  ASSERT_TRUE(decoder.Decode(batch.images, nullptr, batch.results).ok());
  fake.Finish();
  batch.ExpectAll();
  EXPECT_LE(fake.Calls("DecodeBatched"), 4u * 6 + 2);
}

// They rest, and are then asked again.
TEST(JpegDecoder, EnginesThatFailForAWhileComeBack) {
  const std::vector<File> files = ManyImages(2);
  bool fail = true;
  FakeNvjpegOptions options;
  options.engine_status = [&](std::span<const std::byte>) {
    return fail ? int{kNvjpegInternalError} : 0;
  };
  FakeNvjpeg fake(options);
  JpegDecoder decoder(&fake.functions(), fake.device(), {});
  const auto decode = [&] {
    Batch batch(files);
    ASSERT_TRUE(decoder.Decode(batch.images, nullptr, batch.results).ok());
    fake.Finish();
    batch.ExpectAll();
  };
  for (int i = 0; i < 3; ++i) decode();
  EXPECT_FALSE(decoder.has_hardware());
  EXPECT_EQ(decoder.backends(),
            "hardware: given up: nvjpegDecodeBatched: internal error; hybrid: yes");
  const uint64_t calls = fake.Calls("DecodeBatched");
  fail = false;
  for (int i = 0; i < 255; ++i) decode();
  EXPECT_EQ(fake.Calls("DecodeBatched"), calls);
  decode();
  EXPECT_TRUE(decoder.has_hardware());
  EXPECT_EQ(decoder.stats().hardware, 2u);
}

// Success is not believed before it has been seen.
TEST(JpegDecoder, EnginesWhosePixelsAreWrongAreNotUsed) {
  const std::vector<File> files = ManyImages(5);
  FakeNvjpegOptions options;
  options.is_wrong = [&](std::span<const std::byte> file) { return IsFile(file, files[3]); };
  FakeNvjpeg fake(options);
  JpegDecoder decoder(&fake.functions(), fake.device(), {});
  for (int i = 0; i < 2; ++i) {
    Batch batch(files);
    ASSERT_TRUE(decoder.Decode(batch.images, nullptr, batch.results).ok());
    fake.Finish();
    batch.ExpectAll();
    EXPECT_FALSE(decoder.has_hardware());
    EXPECT_EQ(decoder.stats().hardware, 0u);
  }
  EXPECT_EQ(fake.Calls("DecodeBatched"), 1u);
  EXPECT_NE(decoder.backends().find("given up: an image differs from the CPU's by"),
            std::string::npos)
      << decoder.backends();
}

// A part of a GPU may not tell (MIG, vGPU).
TEST(JpegDecoder, EnginesWhoseNumberIsNotKnownAreUsed) {
  const std::vector<File> files = ManyImages(3);
  FakeNvjpeg fake({});
  fake.functions().GetHardwareDecoderInfo = [](NvjpegHandle, unsigned*, unsigned*) -> int {
    return kNvjpegImplementationNotSupported;
  };
  JpegDecoder decoder(&fake.functions(), fake.device(), {});
  EXPECT_EQ(decoder.backends(), "hardware: yes; hybrid: yes");
  Batch batch(files);
  ASSERT_TRUE(decoder.Decode(batch.images, nullptr, batch.results).ok());
  fake.Finish();
  batch.ExpectAll();
  EXPECT_EQ(decoder.stats().hardware, 3u);
}

// Of a wide image and a high one: not of one that is both. All of it is counted, and has a limit.
TEST(JpegDecoder, MemoryOfNvjpegIsCountedAndLimited) {
  std::vector<File> files;
  Add("wide", EncodeJpeg(MakePattern(3000, 16, 3), {}), JpegWay::kHardware, JpegWay::kHybrid,
      &files);
  Add("high", EncodeJpeg(MakePattern(16, 3000, 3), {}), JpegWay::kHardware, JpegWay::kHybrid,
      &files);
  const uint64_t batch_bytes = 2 * 3000 * 16 * 3;
  for (const uint64_t most : {uint64_t{1} << 30, uint64_t{100'000}}) {
    FakeNvjpeg fake({});
    JpegDecoderOptions options;
    options.nvjpeg_bytes = most;
    {
      JpegDecoder decoder(&fake.functions(), fake.device(), options);
      for (int i = 0; i < 3; ++i) {
        Batch batch(files);
        for (size_t k = 0; k < files.size(); ++k) batch.images[k].id = k;
        ASSERT_TRUE(decoder.Decode(batch.images, nullptr, batch.results).ok());
        fake.Finish();
        batch.ExpectAll();
        EXPECT_LE(decoder.stats().nvjpeg_bytes, most);
      }
      const JpegDecoderStats stats = decoder.stats();
      EXPECT_EQ(fake.own_bytes(), 0u);
      if (most > batch_bytes) {
        EXPECT_EQ(stats.hardware, 6u);
        EXPECT_GE(stats.nvjpeg_bytes, 2 * batch_bytes) << "two batches may be under way";
        EXPECT_LE(stats.nvjpeg_bytes, 4 * batch_bytes);
        EXPECT_EQ(stats.nvjpeg_refusals, 0u);
      } else {
        EXPECT_EQ(stats.hardware, 0u);
        EXPECT_GT(stats.nvjpeg_refusals, 0u);
        EXPECT_EQ(stats.cpu, 6u);
      }
    }
    EXPECT_EQ(fake.live(), 0);
  }
}

// A library that takes no allocator takes its own memory, and no more than the batch's.
TEST(JpegDecoder, AnOlderLibraryReservesForItsBatchAlone) {
  std::vector<File> files;
  Add("wide", EncodeJpeg(MakePattern(3000, 16, 3), {}), JpegWay::kHardware, JpegWay::kHybrid,
      &files);
  Add("high", EncodeJpeg(MakePattern(16, 3000, 3), {}), JpegWay::kHardware, JpegWay::kHybrid,
      &files);
  FakeNvjpeg fake({});
  fake.functions().CreateExV2 = nullptr;
  JpegDecoder decoder(&fake.functions(), fake.device(), {});
  for (int i = 0; i < 3; ++i) {
    Batch batch(files);
    ASSERT_TRUE(decoder.Decode(batch.images, nullptr, batch.results).ok());
    fake.Finish();
    batch.ExpectAll();
  }
  EXPECT_GT(fake.own_bytes(), 0u);
  EXPECT_LE(fake.own_bytes(), 4u * 2 * 3000 * 16 * 3);
  EXPECT_EQ(fake.Calls("DecodeBatchedPreAllocate"), 2u) << "once for each batch under way";
}

TEST(JpegDecoder, ThreadsShareAHandle) {
  std::vector<File> files = ManyImages(24);
  FakeDevice device;
  ASSERT_TRUE(device.EnterThread().ok());
  FakeNvjpeg fake({.engines = 0}, &device);
  JpegDecoderOptions options;
  options.threads = 6;
  JpegDecoder decoder(&fake.functions(), device, options);
  const uint64_t handles = fake.Calls("CreateEx");
  EXPECT_EQ(handles, 2u) << "for engines, which there are none, and for all threads";
  EXPECT_EQ(fake.misuses(), 0);
}

}  // namespace
}  // namespace shardpack
