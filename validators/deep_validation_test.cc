// What level deep finds in the images of datasets and foreign shards, and what it costs.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "formats/core/image_info.h"
#include "formats/io/file.h"
#include "formats/io/resources.h"
#include "formats/testing/cpu_budget.h"
#include "formats/testing/datasets/test_dataset.h"
#include "formats/testing/datasets/toy_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "images/codecs/decode_testing.h"
#include "images/probe/probe_testing.h"
#include "validators/validator.h"

namespace shardpack {
namespace {

using ::testing::HasSubstr;
using testing::MakeTestFolder;
using testing::TestDatasetOptions;
using testing::TestSample;
using testing::ToyFormat;
using testing::WriteTestDataset;
using testing::WriteTestShard;

const Format* const kToy[] = {&ToyFormat()};

TestSample Sample(const Image& image) {
  TestSample sample;
  sample.image.assign(reinterpret_cast<const char*>(image.data()), image.size());
  sample.info = Probe(image, {.allow_truncated = true}).info;
  return sample;
}

Image Jpeg(uint32_t seed = 1, bool progressive = false) {
  return EncodeJpeg(MakePattern(80, 60, 3, seed), {.progressive = progressive});
}

std::vector<TestSample> Named(std::vector<TestSample> samples) {
  for (size_t i = 0; i < samples.size(); ++i) {
    samples[i].key = "k" + std::to_string(1000 + i);
    samples[i].source_path = samples[i].key + ".jpg";
  }
  return samples;
}

class DeepValidation : public ::testing::Test {
 protected:
  DeepValidation() : folder_(MakeTestFolder("deep")) {}
  ~DeepValidation() override { (void)RemoveTree(folder_); }

  // A dataset of one shard with these images.
  ValidationReport Packed(std::vector<TestSample> samples, ValidateOptions options = {}) {
    const std::string out = folder_ + "/packed" + std::to_string(++made_);
    std::filesystem::create_directory(out);
    TestDatasetOptions made{.shards = 1, .records_per_shard = samples.size()};
    made.samples = Named(std::move(samples));
    WriteTestDataset(out, ToyFormat(), made);
    options.level = ValidationLevel::kDeep;
    const auto report = ValidateDataset(out, kToy, options, progress_, stop_);
    EXPECT_TRUE(report.ok()) << report.status();
    return report.ok() ? *report : ValidationReport();
  }
  ValidationReport Foreign(std::vector<TestSample> samples,
                           ValidationLevel level = ValidationLevel::kDeep) {
    const std::string path = folder_ + "/foreign" + std::to_string(++made_) + ".toy";
    WriteTestShard(path, ToyFormat(), Named(std::move(samples)));
    const std::string paths[] = {path};
    const auto report = ValidateShards(paths, kToy, {.level = level}, progress_, stop_);
    EXPECT_TRUE(report.ok()) << report.status();
    return report.ok() ? *report : ValidationReport();
  }
  // Only this image, between two valid ones, is reported, in both kinds of shards.
  void ExpectFinding(const Image& image, FindingId id, bool decoded = false) {
    const std::vector<TestSample> samples = {Sample(Jpeg()), Sample(image), Sample(Jpeg(2))};
    for (const ValidationReport& report : {Packed(samples), Foreign(samples)}) {
      EXPECT_EQ(report.errors() + report.warnings(), 1u) << ToText(report);
      ASSERT_EQ(report.findings.count(id), 1u) << ToText(report);
      const Finding& finding = report.findings.kept()[0];
      EXPECT_EQ(finding.record, 1u);
      EXPECT_EQ(finding.key, "k1001");
      EXPECT_EQ(report.images_decoded, decoded ? 3u : 2u);
    }
    // Full does not report what only decoding can find.
    EXPECT_EQ(id == FindingId::kNotAnImage ? 0u : Foreign(samples, ValidationLevel::kFull).errors(),
              0u);
  }

  const std::string folder_;
  int made_ = 0;
  ValidationProgress progress_;
  std::atomic<int> stop_{0};
};

TEST_F(DeepValidation, SoundImagesAndWhatTheReportSays) {
  std::vector<TestSample> samples;
  for (int i = 0; i < 1300; ++i) samples.push_back(Sample(Jpeg(1 + i % 5, i % 2 == 0)));
  samples.push_back(Sample(LoadTestImage("animated.gif")));
  const ValidationReport report = Packed(samples);
  EXPECT_EQ(report.errors() + report.warnings(), 0u) << ToText(report);
  EXPECT_EQ(report.images_checked, 1301u);
  EXPECT_EQ(report.images_decoded, 1301u);
  EXPECT_THAT(ToText(report), HasSubstr("level deep"));
  EXPECT_THAT(ToText(report), HasSubstr("1301 of 1301 images decoded"));
  EXPECT_THAT(ToText(report), HasSubstr("not checked: frames and pages after the first of 1"));
  EXPECT_THAT(ToText(report), Not(HasSubstr("whether the images can be decoded")));
  EXPECT_THAT(ToJson(report), HasSubstr("\"decoded\": 1301"));
  EXPECT_EQ(Foreign(samples).images_decoded, 1301u);
  EXPECT_THAT(ToText(Foreign(samples, ValidationLevel::kFull)),
              HasSubstr("not checked: whether the images can be decoded"));
}

TEST_F(DeepValidation, ASampleOfTheRecords) {
  std::vector<TestSample> samples(200, Sample(Jpeg()));
  const ValidationReport report = Packed(samples, {.sample_percent = 10});
  EXPECT_EQ(report.images_checked, report.records_checked);
  EXPECT_GT(report.images_checked, 5u);
  EXPECT_LT(report.images_checked, 60u);
}

TEST_F(DeepValidation, ImageDamaged) {
  Image jpeg = Jpeg();
  Store(&jpeg, jpeg.size() - 300, std::string("\xFF\xD7", 2));
  ExpectFinding(jpeg, FindingId::kImageDamaged);
  Image cut = Jpeg();
  cut.resize(cut.size() / 2);
  ExpectFinding(cut, FindingId::kImageDamaged);
  // Packed with --allow-truncated, and flagged accordingly.
  TestSample flagged = Sample(cut);
  ASSERT_TRUE(flagged.info.truncated());
  const ValidationReport report = Packed({flagged});
  EXPECT_EQ(report.findings.count(FindingId::kImageDamaged), 1u);
  EXPECT_EQ(report.errors(), 0u) << ToText(report);
}

TEST_F(DeepValidation, NotAnImage) {
  const ValidationReport report = Packed({Sample({'<', 'h', 't', 'm', 'l', '>'})});
  EXPECT_EQ(report.findings.count(FindingId::kNotAnImage), 1u) << ToText(report);
  // Foreign shards: already found at full, and only once.
  EXPECT_EQ(Foreign({Sample({'<', 'h', 't', 'm', 'l', '>'})}).errors(), 1u);
}

TEST_F(DeepValidation, ImageUnsupported) {
  ExpectFinding(LoadTestImage("rle8.bmp"), FindingId::kImageUnsupported);
}

TEST_F(DeepValidation, ImageWarning) {
  Image jpeg = Jpeg();
  Insert(&jpeg, jpeg.size() - 2, Image(64, 0x55));
  ExpectFinding(jpeg, FindingId::kImageWarning, /*decoded=*/true);
}

TEST_F(DeepValidation, ImageFacts) {
  TestSample sample = Sample(Jpeg());
  sample.info.width = 800;
  const ValidationReport report = Packed({sample});
  ASSERT_EQ(report.findings.count(FindingId::kImageFacts), 1u) << ToText(report);
  EXPECT_THAT(report.findings.kept()[0].expected, HasSubstr("800 x 60"));
  EXPECT_THAT(report.findings.kept()[0].actual, HasSubstr("80 x 60"));
  sample.info = {};  // an index without facts cannot contradict
  EXPECT_EQ(Packed({sample}).errors(), 0u);
}

TEST_F(DeepValidation, RawPixels) {
  TestSample sample;
  sample.image = std::string(4 * 6 * 3, 'p');
  sample.info = RawImageInfo(4, 6, 3);
  EXPECT_EQ(Packed({sample, sample}).images_decoded, 2u);
  sample.info = RawImageInfo(4, 7, 3);
  const ValidationReport report = Packed({sample});
  ASSERT_EQ(report.findings.count(FindingId::kImageDamaged), 1u) << ToText(report);
  EXPECT_EQ(report.findings.kept()[0].expected, "84 bytes");
  EXPECT_EQ(report.findings.kept()[0].actual, "72 bytes");
}

// Time and memory for the rest are bounded: 2 s of the processor each, and less than their pixels
// would take.
class HostileImages : public DeepValidation {
 protected:
  void ExpectCheap(const Image& image, FindingId id, bool decoded = false) {
    const uint64_t before = PeakMemoryBytes();
    const testing::CpuBudget budget(2.0);
    const ValidationReport report = Foreign({Sample(image)});
    EXPECT_EQ(report.findings.count(id), 1u) << ToText(report);
    EXPECT_EQ(report.images_decoded, decoded ? 1u : 0u);
    EXPECT_LT(budget.used(), budget.seconds());
    const uint64_t grown = PeakMemoryBytes() - before;
    EXPECT_LT(grown, 4 * image.size() + (64u << 20));
    RecordProperty("milliseconds", static_cast<int>(budget.used() * 1000));
    RecordProperty("grown_kib", static_cast<int>(grown >> 10));
  }
};

TEST_F(HostileImages, ImagePixelLimit) {
  Image header, png = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
  PutBig(&header, 30000, 4);
  PutBig(&header, 30000, 4);
  PutText(&header, std::string("\x08\x02\0\0\0", 5));
  PutChunk(&png, "IHDR", header);
  PutChunk(&png, "IDAT", Image(2 << 20, 0));
  PutChunk(&png, "IEND", {});
  ExpectCheap(png, FindingId::kImagePixelLimit);
  ExpectFinding(png, FindingId::kImagePixelLimit);
}

TEST_F(HostileImages, ImageAncillaryLimit) {
  Image png = LoadTestImage("rgb.png"), text;
  PutChunk(&text, "tEXt", Image(60'000'000, 'a'));
  Insert(&png, 33, text);
  ExpectCheap(png, FindingId::kImageAncillaryLimit, /*decoded=*/true);
  ExpectFinding(png, FindingId::kImageAncillaryLimit, /*decoded=*/true);
}

TEST_F(HostileImages, ImageScanLimit) {
  const Image jpeg = Jpeg(1, /*progressive=*/true);
  size_t last = 0;
  for (size_t at = 0; at + 1 < jpeg.size(); ++at) {
    if (jpeg[at] == 0xFF && jpeg[at + 1] == 0xDA) last = at;
  }
  const Image scan(jpeg.begin() + static_cast<ptrdiff_t>(last), jpeg.end() - 2);
  Image many(jpeg.begin(), jpeg.end() - 2);
  for (int i = 0; i < 5000; ++i) many.insert(many.end(), scan.begin(), scan.end());
  PutText(&many, "\xFF\xD9");
  ExpectCheap(many, FindingId::kImageScanLimit);
  ExpectFinding(many, FindingId::kImageScanLimit);
}

TEST_F(HostileImages, ImageFileLimit) {
  Image huge = Jpeg();
  huge.resize((size_t{256} << 20) + 1);
  const ValidationReport report = Foreign({Sample(huge)});
  EXPECT_EQ(report.findings.count(FindingId::kImageFileLimit), 1u) << ToText(report);
  EXPECT_EQ(report.images_checked, 0u);
}

TEST_F(DeepValidation, ReportsAreTheSameForAnyNumberOfThreads) {
  std::vector<TestSample> samples;
  for (int i = 0; i < 700; ++i) {
    Image jpeg = Jpeg(1 + i % 3);
    if (i % 7 == 0) jpeg.resize(jpeg.size() / 2);
    samples.push_back(Sample(jpeg));
  }
  std::vector<std::string> texts;
  for (const int jobs : {1, 2, 7}) {
    ValidationReport report = Packed(samples, {.jobs = jobs});
    report.seconds = 0;
    report.subject.clear();
    texts.push_back(ToText(report));
  }
  EXPECT_EQ(texts[0], texts[1]);
  EXPECT_EQ(texts[0], texts[2]);
}

TEST(MemoryGate, LetsInWhatFitsAndTheHugeAlone) {
  MemoryGate gate(100);
  gate.Enter(60);
  gate.Enter(40);
  gate.Leave(60);
  gate.Leave(40);
  gate.Enter(1000);
  gate.Leave(1000);
  gate.Enter(100);
  gate.Leave(100);
}

}  // namespace
}  // namespace shardpack
