// The corruption campaign: random damage to every file of a dataset, in every format; a full
// validation must see each.
//
// SHARDPACK_CAMPAIGN_DAMAGES sets how many a format (2,000 unless told), SHARDPACK_CAMPAIGN_SEED
// where it begins.
#include <cstdlib>
#include <iostream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "formats/formats.h"
#include "formats/io/file.h"
#include "formats/testing/datasets/test_dataset.h"
#include "gtest/gtest.h"
#include "validators/validator.h"

namespace shardpack {
namespace {

using testing::MakeTestFolder;
using testing::ReadTestFile;
using testing::TestDatasetOptions;
using testing::WriteTestDataset;
using testing::WriteTestFile;

constexpr size_t kPageBytes = 4096;

uint64_t Setting(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

enum class Damage { kBit, kTruncation, kZeroPage };

struct Counts {
  uint64_t done = 0, missed = 0;
};

class Campaign {
 public:
  Campaign(const Format& format, uint64_t seed)
      : format_(format), folder_(MakeTestFolder("campaign")), random_(seed) {
    // Small, so that headers, paddings, indexes and the manifest get their share of the hits.
    const Manifest manifest = WriteTestDataset(
        folder_, format,
        TestDatasetOptions{.shards = 2, .records_per_shard = 9, .max_image_bytes = 1500});
    for (const FileEntry& file : manifest.files) names_.push_back(file.name);
    names_.push_back(std::string(kManifestName));
    for (const std::string& name : names_) bytes_.push_back(ReadTestFile(PathOf(name)));
  }
  ~Campaign() { (void)RemoveTree(folder_); }

  ValidationReport Validate() {
    ValidationProgress progress;
    std::atomic<int> stop{0};
    absl::StatusOr<ValidationReport> report = ValidateDataset(
        folder_, AllFormats(), {.level = ValidationLevel::kFull, .jobs = 1}, progress, stop);
    EXPECT_TRUE(report.ok()) << report.status();
    return report.ok() ? *std::move(report) : ValidationReport();
  }

  // One damage, one validation, and the file as it was.
  void Hit(Damage kind) {
    // Half of the hits go to any byte of the dataset, half to any file, however small.
    const size_t file = random_() % 2 == 0 ? random_() % names_.size() : FileOfByte();
    std::string damaged = bytes_[file];
    std::string what;
    if (kind == Damage::kBit) {
      const uint64_t bit = random_() % (damaged.size() * 8);
      damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
      what = absl::StrCat("bit ", bit % 8, " of byte ", bit / 8);
    } else if (kind == Damage::kTruncation) {
      damaged.resize(random_() % damaged.size());
      what = absl::StrCat("cut to ", damaged.size());
    } else {
      const size_t begin = random_() % damaged.size() / kPageBytes * kPageBytes;
      const size_t length = std::min(kPageBytes, damaged.size() - begin);
      damaged.replace(begin, length, length, '\0');
      what = absl::StrCat("zeros from ", begin);
    }
    if (damaged == bytes_[file]) return;  // a page of zeros already
    WriteTestFile(PathOf(names_[file]), damaged);
    const ValidationReport report = Validate();
    Counts& counts = counts_[kind];
    ++counts.done;
    counts.missed += report.errors() == 0 ? 1 : 0;
    EXPECT_GT(report.errors(), 0u) << names_[file] << ": " << what << "\n" << ToText(report);
    WriteTestFile(PathOf(names_[file]), bytes_[file]);
  }

  const Counts& counts(Damage kind) { return counts_[kind]; }
  size_t files() const { return names_.size(); }

 private:
  std::string PathOf(const std::string& name) const { return folder_ + "/" + name; }
  size_t FileOfByte() {
    size_t total = 0;
    for (const std::string& bytes : bytes_) total += bytes.size();
    size_t at = random_() % total, file = 0;
    while (at >= bytes_[file].size()) at -= bytes_[file++].size();
    return file;
  }

  const Format& format_;
  const std::string folder_;
  std::mt19937_64 random_;
  std::vector<std::string> names_, bytes_;
  std::map<Damage, Counts> counts_;
};

class CorruptionCampaign : public ::testing::TestWithParam<const Format*> {};

TEST_P(CorruptionCampaign, FullFindsEveryDamage) {
  Campaign campaign(*GetParam(), Setting("SHARDPACK_CAMPAIGN_SEED", 1));
  EXPECT_EQ(campaign.Validate().errors() + campaign.Validate().warnings(), 0u)
      << ToText(campaign.Validate());
  const uint64_t damages = Setting("SHARDPACK_CAMPAIGN_DAMAGES", 2000);
  for (uint64_t i = 0; i < damages && !HasFailure(); ++i) {
    campaign.Hit(i % 20 < 14   ? Damage::kBit
                 : i % 20 < 17 ? Damage::kTruncation
                               : Damage::kZeroPage);
  }
  EXPECT_EQ(campaign.Validate().errors() + campaign.Validate().warnings(), 0u)
      << "every byte is back";
  std::cout << GetParam()->name << ", " << campaign.files() << " files:";
  for (const auto& [kind, name] :
       {std::pair(Damage::kBit, "bit flips"), std::pair(Damage::kTruncation, "truncations"),
        std::pair(Damage::kZeroPage, "zeroed pages")}) {
    const Counts& counts = campaign.counts(kind);
    std::cout << " " << counts.done << " " << name << " (" << counts.missed << " undetected)";
  }
  std::cout << std::endl;
}

INSTANTIATE_TEST_SUITE_P(Formats, CorruptionCampaign,
                         ::testing::ValuesIn(AllFormats().begin(), AllFormats().end()),
                         [](const auto& info) { return std::string(info.param->name); });

}  // namespace
}  // namespace shardpack
