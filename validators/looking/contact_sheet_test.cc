#include "validators/looking/contact_sheet.h"

#include <gtest/gtest.h>

#include <set>

#include "absl/strings/escaping.h"
#include "formats/io/bytes.h"
#include "formats/io/file.h"
#include "formats/testing/datasets/test_dataset.h"
#include "formats/testing/datasets/toy_format.h"
#include "images/codecs/decode.h"
#include "images/codecs/encode.h"
#include "validators/looking/dataset_report.h"

namespace shardpack {
namespace {

using testing::TestSample;

std::string Gray(uint8_t value, uint32_t width, uint32_t height) {
  const std::vector<uint8_t> pixels(size_t{3} * width * height, value);
  ImageEncoder encoder;
  const auto file = *encoder.Encode({pixels.data(), width, height, 3, size_t{3} * width},
                                    {.format = ImageFormat::kPng});
  return {reinterpret_cast<const char*>(file.data()), file.size()};
}

class ContactSheetTest : public ::testing::Test {
 protected:
  Dataset Write(std::vector<TestSample> samples, size_t classes = 2) {
    Manifest manifest = testing::WriteTestDataset(folder_, testing::ToyFormat(),
                                                  {.shards = 3, .samples = std::move(samples)});
    manifest.classes.clear();
    for (size_t n = 0; n < classes; ++n) manifest.classes.push_back("class " + std::to_string(n));
    testing::Reseal(folder_, manifest);
    return *Dataset::Open(folder_);
  }
  static TestSample Sample(size_t n, int64_t label, std::string image) {
    return {.key = "key " + std::to_string(n),
            .source_path = "",
            .image = std::move(image),
            .label = label,
            .info = {}};
  }
  const std::string folder_ = testing::MakeTestFolder("sheet");
  const std::atomic<int> stop_{0};
  NearProgress progress_;
};

TEST_F(ContactSheetTest, EachClassHasItsPictures) {
  std::vector<TestSample> samples;
  for (size_t n = 0; n < 40; ++n)
    samples.push_back(
        Sample(n, n % 4 == 0 ? 1 : 0, Gray(static_cast<uint8_t>(n % 2 == 0 ? 40 : 80), 100, 50)));
  samples.push_back(Sample(40, -1, "no image"));
  const Dataset dataset = Write(samples);
  const SampleRows rows({&dataset, 1});
  const ContactSheet sheet = MakeContactSheet(rows, {.each = 5});
  ASSERT_EQ(sheet.rows.size(), 3u);
  EXPECT_EQ(sheet.rows[0].label, -1);
  EXPECT_EQ(sheet.rows[1].samples, 30u);
  EXPECT_EQ(sheet.rows[2].samples, 10u);
  EXPECT_EQ(sheet.rows[1].pictures.size(), 5u);
  EXPECT_EQ(sheet.rows[2].pictures.size(), 5u);
  EXPECT_EQ(sheet.not_shown, 1u);
  EXPECT_EQ(sheet.mean.images, 10u);
  std::set<uint64_t> used;
  for (const SheetPicture& picture : sheet.rows[2].pictures) {
    EXPECT_EQ(picture.thumbnail.width, 64u);
    EXPECT_EQ(picture.thumbnail.height, 32u);
    EXPECT_EQ(rows.Facts(picture.row)->label, 1);
    EXPECT_TRUE(used.insert(picture.row).second);
  }
  // The picture itself.
  std::string file;
  const std::string& uri = sheet.rows[2].pictures[0].thumbnail.uri;
  ASSERT_TRUE(absl::Base64Unescape(uri.substr(uri.find(',') + 1), &file));
  ImageDecoder decoder;
  const auto decoded = decoder.Decode(AsBytes(file), {}, {});
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_NEAR(decoded->view.pixels[0], 40, 4);
  // Again, and the same.
  const ContactSheet again = MakeContactSheet(rows, {.each = 5});
  for (size_t i = 0; i < 5; ++i)
    EXPECT_EQ(again.rows[1].pictures[i].thumbnail.uri, sheet.rows[1].pictures[i].thumbnail.uri);
}

TEST_F(ContactSheetTest, ABudgetLeavesFewerPictures) {
  std::vector<TestSample> samples;
  for (size_t n = 0; n < 60; ++n)
    samples.push_back(Sample(n, static_cast<int64_t>(n % 20), Gray(100, 64, 64)));
  const Dataset dataset = Write(samples, 20);
  const SampleRows rows({&dataset, 1});
  const auto bytes = [](const ContactSheet& sheet) {
    uint64_t sum = 0;
    for (const SheetRow& row : sheet.rows) {
      for (const SheetPicture& picture : row.pictures) sum += PageBytes(picture);
    }
    return sum;
  };
  const ContactSheet all = MakeContactSheet(rows, {.each = 3, .budget_bytes = 1'000'000});
  EXPECT_EQ(all.each, 3u);
  const uint64_t needed = bytes(all);
  const ContactSheet two = MakeContactSheet(rows, {.each = 3, .budget_bytes = needed});
  EXPECT_LT(two.each, 3u);
  EXPECT_GE(two.each, 1u);
  EXPECT_LE(bytes(two), needed);
  EXPECT_EQ(two.rows.size(), 20u);
  const ContactSheet few = MakeContactSheet(rows, {.each = 3, .budget_bytes = needed / 12});
  EXPECT_LT(few.rows.size(), 20u);
  EXPECT_GE(few.rows.size(), 2u);
  EXPECT_LE(bytes(few), needed / 12);
  EXPECT_EQ(few.classes, 20u);
  EXPECT_TRUE(MakeContactSheet(rows, {.each = 3, .budget_bytes = 0}).rows.empty());
  EXPECT_EQ(MakeContactSheet(rows, {.each = 0}).each, 0u);
}

TEST_F(ContactSheetTest, ThePageFitsItsBudgetAndIsTheSameAgain) {
  std::vector<TestSample> samples;
  for (size_t n = 0; n < 200; ++n)
    samples.push_back(
        Sample(n, static_cast<int64_t>(n % 100),
               n % 7 == 0 ? "broken" : Gray(static_cast<uint8_t>(n), 1, n % 25 == 0 ? 6000 : 40)));
  const Dataset dataset = Write(samples, 100);
  for (const uint64_t budget : {100'000u, 3'000'000u}) {
    const ReportOptions options{.name = "a <b>", .max_bytes = budget, .near = true, .jobs = 2};
    const absl::StatusOr<DatasetReport> report = MakeReport(dataset, options, progress_, stop_);
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_FALSE(report->damaged);
    EXPECT_LE(report->html.size(), budget);
    EXPECT_EQ(report->html, MakeReport(dataset, options, progress_, stop_)->html);
    EXPECT_NE(report->html.find("<h1>a &lt;b&gt;</h1>"), std::string::npos);
  }
}

TEST_F(ContactSheetTest, DamageIsNamed) {
  const Dataset whole = Write(
      {Sample(0, 0, Gray(1, 8, 8)), Sample(1, 0, Gray(2, 8, 8)), Sample(2, 1, Gray(3, 8, 8))});
  const std::string index = folder_ + "/" + whole.manifest()->shards[1].index.name;
  std::string bytes = testing::ReadTestFile(index);
  bytes[100] ^= 1;
  testing::WriteTestFile(index, bytes);
  const Dataset damaged = *Dataset::Open(folder_);
  const absl::StatusOr<DatasetReport> report = MakeReport(damaged, {.name = "x"}, progress_, stop_);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->damaged);
  EXPECT_NE(report->html.find("id=\"damage\""), std::string::npos);
  EXPECT_NE(report->html.find("<img"), std::string::npos);
}

TEST_F(ContactSheetTest, SamplesInFilesThatAreGoneComeLast) {
  std::vector<TestSample> samples;
  for (size_t n = 0; n < 12; ++n)
    samples.push_back(Sample(n, 0, Gray(static_cast<uint8_t>(20 * n), 20, 20)));
  const Manifest manifest = *Write(samples).manifest();
  ASSERT_EQ(manifest.shards.size(), 3u);
  // One is missing, of another only the beginning is there.
  (void)RemoveFile(folder_ + "/" + manifest.shards[0].name);
  const std::string cut = folder_ + "/" + manifest.shards[1].name;
  const std::string bytes = testing::ReadTestFile(cut);
  testing::WriteTestFile(cut, bytes.substr(0, bytes.size() - 10));
  std::vector<DamagedFile> damage;
  const Dataset damaged = *Dataset::OpenDamaged(folder_, damage);
  ASSERT_EQ(damage.size(), 2u);
  const SampleRows rows({&damaged, 1});
  const uint64_t whole = manifest.shards[2].records + manifest.shards[1].records - 1;
  const ContactSheet some = MakeContactSheet(rows, {.each = whole});
  EXPECT_EQ(some.not_shown, 0u);
  EXPECT_EQ(some.rows[0].pictures.size(), whole);
  const ContactSheet all = MakeContactSheet(rows, {.each = 12});
  EXPECT_EQ(all.rows[0].pictures.size(), 12u);
  EXPECT_EQ(all.unread, 12 - whole);
}

}  // namespace
}  // namespace shardpack
