#include "validators/looking/near_copies.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <utility>

#include "formats/testing/datasets/test_dataset.h"
#include "formats/testing/datasets/toy_format.h"
#include "images/codecs/encode.h"
#include "validators/looking/copies_report.h"
#include "validators/looking/dataset_stats.h"
#include "validators/looking/perceptual_hash.h"

namespace shardpack {
namespace {

using testing::TestSample;

// Spots of random brightness, the same for each seed at every size.
std::string Picture(unsigned seed, uint32_t width, uint32_t height, uint8_t quality,
                    int brighter = 0) {
  constexpr size_t kGrid = 10;
  std::mt19937 random(seed);
  std::array<std::array<double, kGrid + 1>, kGrid + 1> grid;
  for (auto& row : grid) {
    for (double& value : row) value = static_cast<double>(random() % 180);
  }
  std::vector<uint8_t> pixels(size_t{3} * width * height);
  for (uint32_t y = 0; y < height; ++y) {
    for (uint32_t x = 0; x < width; ++x) {
      const double u = (x + 0.5) / width * (kGrid - 1), v = (y + 0.5) / height * (kGrid - 1);
      const auto i = static_cast<size_t>(u), j = static_cast<size_t>(v);
      const double a = u - static_cast<double>(i), b = v - static_cast<double>(j);
      const double value = (1 - b) * ((1 - a) * grid[j][i] + a * grid[j][i + 1]) +
                           b * ((1 - a) * grid[j + 1][i] + a * grid[j + 1][i + 1]);
      for (uint32_t c = 0; c < 3; ++c)
        pixels[(size_t{y} * width + x) * 3 + c] = static_cast<uint8_t>(20 + value + brighter);
    }
  }
  ImageEncoder encoder;
  const auto file = *encoder.Encode({pixels.data(), width, height, 3, size_t{3} * width},
                                    {.format = ImageFormat::kJpeg, .quality = quality});
  return {reinterpret_cast<const char*>(file.data()), file.size()};
}

TestSample Sample(const std::string& key, int64_t label, std::string image) {
  return {.key = key,
          .source_path = key + ".jpg",
          .image = std::move(image),
          .label = label,
          .info = {}};
}

std::vector<std::byte> BytesOf(const std::string& text) {
  const Bytes bytes = AsBytes(text);
  return {bytes.begin(), bytes.end()};
}

TEST(PerceptualHash, IsThatOfImagehash) {
  // Computed with imagehash 4.3.2: phash(Image.fromarray(pixels)) of these 32 x 32 gray pixels.
  std::array<uint8_t, 1024> gray;
  for (size_t i = 0; i < gray.size(); ++i)
    gray[i] = static_cast<uint8_t>((i * i / 7 + 13 * (i % 32) + 31 * (i / 32)) % 251);
  EXPECT_EQ(HashOfGray(gray).value, 0x8ee70d2ee38cc60du);
  EXPECT_FALSE(HashOfGray(gray).flat);
  for (size_t i = 0; i < gray.size(); ++i)
    gray[i] = static_cast<uint8_t>((i * i * i / 11 + 5 * (i % 32) * (i / 32)) % 241);
  EXPECT_EQ(HashOfGray(gray).value, 0x9b3c0375052e7d1eu);
}

TEST(PerceptualHash, CopiesAreNearAndOthersAreFar) {
  PerceptualHasher hasher;
  const uint64_t original = hasher.Hash(BytesOf(Picture(1, 300, 200, 95)), {})->value;
  for (const std::string& copy : {Picture(1, 300, 200, 30), Picture(1, 90, 60, 80),
                                  Picture(1, 1200, 800, 70), Picture(1, 300, 200, 90, 20)}) {
    const uint64_t hash = hasher.Hash(BytesOf(copy), {})->value;
    EXPECT_LE(std::popcount(hash ^ original), kNearDistance);
  }
  for (unsigned seed = 2; seed < 12; ++seed) {
    const uint64_t hash = hasher.Hash(BytesOf(Picture(seed, 300, 200, 95)), {})->value;
    EXPECT_GT(std::popcount(hash ^ original), kNearDistance) << seed;
  }
}

TEST(PerceptualHash, OneColorIsFlat) {
  PerceptualHasher hasher;
  std::array<uint8_t, 1024> gray;
  gray.fill(77);
  EXPECT_TRUE(HashOfGray(gray).flat);
  gray[5] = 90;
  EXPECT_FALSE(HashOfGray(gray).flat);
  EXPECT_FALSE(hasher.Hash(BytesOf("not an image"), {}).ok());
}

class NearCopiesTest : public ::testing::Test {
 protected:
  Dataset Write(const std::string& name, std::vector<TestSample> samples, size_t shards = 1) {
    const std::string folder = testing::MakeTestFolder("near-" + name);
    testing::WriteTestDataset(folder, testing::ToyFormat(),
                              {.shards = shards, .samples = std::move(samples)});
    return *Dataset::Open(folder);
  }
  const std::atomic<int> stop_{0};
  NearProgress progress_;
};

TEST_F(NearCopiesTest, GroupsWhatLooksAlike) {
  std::vector<uint8_t> white(size_t{64} * 64 * 3, 255);
  ImageEncoder encoder;
  const auto flat = *encoder.Encode({white.data(), 64, 64, 3, 64 * 3}, {});
  const std::string flat_image(reinterpret_cast<const char*>(flat.data()), flat.size());
  const Dataset a =
      Write("a",
            {Sample("0", 0, Picture(1, 300, 200, 95)), Sample("1", 0, Picture(2, 300, 200, 95)),
             Sample("2", 0, Picture(1, 150, 100, 80)), Sample("3", 0, flat_image),
             Sample("4", 1, Picture(2, 200, 133, 60)), Sample("5", 0, "cannot be decoded"),
             Sample("6", 0, Picture(3, 100, 100, 90)), Sample("7", 0, Picture(3, 100, 100, 90))},
            3);
  const Dataset b = Write(
      "b", {Sample("0", 0, Picture(4, 100, 100, 90)), Sample("9", 0, Picture(1, 80, 53, 85))});
  const Dataset both[] = {a, b};
  const absl::StatusOr<CopiesReport> report = FindCopies(both, {.near = true}, progress_, stop_);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->near.flat, 1u);
  EXPECT_EQ(report->near.hashed, 8u);
  EXPECT_EQ(report->near.unread.count, 1u);
  ASSERT_EQ(report->near.unread.messages.size(), 1u);
  EXPECT_NE(report->near.unread.messages[0].find("key 5"), std::string::npos);
  ASSERT_EQ(report->near.groups.size(), 2u);  // 6 and 7 are equal byte for byte
  EXPECT_EQ(report->near.groups[0].group.rows, (std::vector<uint64_t>{1, 4}));
  EXPECT_TRUE(report->near.groups[0].group.label_conflict);
  EXPECT_EQ(report->near.groups[1].group.rows, (std::vector<uint64_t>{0, 2, 9}));
  EXPECT_TRUE(report->near.groups[1].group.leak);
  EXPECT_EQ(report->near.groups[1].distances[0], 0);
  ASSERT_EQ(report->exact.size(), 1u);
  EXPECT_EQ(report->exact[0].rows, (std::vector<uint64_t>{6, 7}));
  // The copy in b stays; of those with two labels none; of equal ones the first.
  EXPECT_EQ(*KeysToLeaveOut(*report), (std::vector<std::string>{"0", "1", "2", "4", "7"}));
  std::string text;
  ASSERT_TRUE(WriteJson(*report, [&](std::string_view piece) { text += piece; }).ok());
  const nlohmann::json json = nlohmann::json::parse(text);
  EXPECT_EQ(json["near"][1]["samples"][2]["dataset"], 1);
  EXPECT_EQ(json["near"][0]["samples"][1]["class"], "dog");
  EXPECT_EQ(json["exact"][0]["samples"][1]["key"], "7");
  EXPECT_EQ(json["undecodable"]["count"], 1);
}

TEST_F(NearCopiesTest, WhatIsHeldOutKeepsItsSamplesElseTheSmallestSplit) {
  const std::string folder = testing::MakeTestFolder("near-splits");
  // Records 0 and 3 are equal; `second` is the split of the shard of the latter.
  const auto left_out = [&](const std::string& second, size_t more) {
    std::vector<TestSample> samples = {Sample("0", 0, "same"), Sample("1", 0, "x"),
                                       Sample("2", 0, "y"), Sample("3", 0, "same")};
    for (size_t n = 0; n < more; ++n)
      samples.push_back(Sample("more" + std::to_string(n), 0, "more" + std::to_string(n)));
    Manifest manifest = testing::WriteTestDataset(folder, testing::ToyFormat(),
                                                  {.shards = 2, .samples = std::move(samples)});
    EXPECT_LE(manifest.shards[0].records, 3u);
    manifest.shards[1].split = second;
    manifest.splits = {{"train", manifest.shards[0].records}, {second, manifest.shards[1].records}};
    testing::Reseal(folder, manifest);
    const Dataset dataset = *Dataset::Open(folder);
    return *KeysToLeaveOut(*FindCopies({&dataset, 1}, {}, progress_, stop_));
  };
  // Of splits of one size the first row stays.
  EXPECT_EQ(left_out("more", 0), std::vector<std::string>{"3"});
  EXPECT_EQ(left_out("val", 0), std::vector<std::string>{"0"});
  EXPECT_EQ(left_out("validate", 0), std::vector<std::string>{"3"});
  for (const char* name : {"valid", "validation", "test", "dev", "eval"})
    EXPECT_EQ(left_out(name, 1), std::vector<std::string>{"0"}) << name;
}

TEST_F(NearCopiesTest, NotesOfWhatWasDecoded) {
  std::vector<uint8_t> white(size_t{64} * 64 * 3, 255);
  ImageEncoder encoder;
  const auto flat = *encoder.Encode({white.data(), 64, 64, 3, 64 * 3}, {});
  const std::string flat_image(reinterpret_cast<const char*>(flat.data()), flat.size());
  std::vector<TestSample> samples = {Sample("good", 0, Picture(1, 100, 100, 90)),
                                     Sample("bad", 0, "cannot be decoded")};
  for (int n = 0; n < 7; ++n) samples.push_back(Sample("flat" + std::to_string(n), 0, flat_image));
  const Dataset dataset = Write("notes", samples, 3);
  const SampleRows rows({&dataset, 1});
  DatasetStats stats;
  AddDecodedNotes(rows, *FindNearCopies(rows, {.distance = 0}, progress_, stop_), stats);
  ASSERT_EQ(stats.notes.size(), 2u);
  const auto text = [&](size_t n) {
    return NoteText(stats.notes[n], [](std::string_view name) { return std::string(name); });
  };
  EXPECT_EQ(text(0), "1 image does not decode: bad");
  EXPECT_EQ(text(1), "7 images are of nearly one color: flat0, flat1, flat2, flat3, flat4, ...");
}

TEST_F(NearCopiesTest, AStopEndsIt) {
  const Dataset dataset = Write("c", {Sample("0", 0, "x")});
  const std::atomic<int> stop{2};
  EXPECT_TRUE(
      absl::IsCancelled(FindNearCopies(SampleRows({&dataset, 1}), {}, progress_, stop).status()));
}

}  // namespace
}  // namespace shardpack
