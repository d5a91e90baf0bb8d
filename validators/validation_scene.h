// Validation scenes: a small published dataset in a folder of its own, which a test damages and
// validates.
//
//   Scene scene;
//   scene.Flip("train-1.toy", 100);
//   EXPECT_EQ(Names(scene.Validate()), "file-hash record-hash ");
//
// Lifetime: the folder goes with the scene.
// Errors: failures of the test.
#ifndef SHARDPACK_VALIDATORS_VALIDATION_SCENE_H_
#define SHARDPACK_VALIDATORS_VALIDATION_SCENE_H_

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/testing/datasets/test_dataset.h"
#include "formats/testing/datasets/toy_format.h"
#include "gtest/gtest.h"
#include "validators/validator.h"

namespace shardpack::testing {

inline const Format* const kToy[] = {&ToyFormat()};

// One dataset of three shards with six records each, in its own folder.
class Scene {
 public:
  explicit Scene(TestDatasetOptions options = {.shards = 3, .records_per_shard = 6})
      : folder(MakeTestFolder("scene")), made(options) {
    if (made.samples.empty()) made.samples = MakeTestSamples(made);
    manifest = WriteTestDataset(folder, ToyFormat(), made);
  }
  ~Scene() { (void)RemoveTree(folder); }

  std::string Path(const std::string& name) const { return folder + "/" + name; }
  std::string Read(const std::string& name) const { return ReadTestFile(Path(name)); }
  void Write(const std::string& name, std::string_view bytes) const {
    WriteTestFile(Path(name), bytes);
  }
  void Flip(const std::string& name, size_t offset) const {
    std::string bytes = Read(name);
    bytes.at(offset) = static_cast<char>(bytes.at(offset) ^ 4);
    Write(name, bytes);
  }
  void Reseal() { testing::Reseal(folder, manifest); }
  std::vector<TestSample> SamplesOf(size_t shard) const {
    const auto begin =
        made.samples.begin() + static_cast<ptrdiff_t>(shard * made.records_per_shard);
    return {begin, begin + static_cast<ptrdiff_t>(made.records_per_shard)};
  }
  // Writes the index of shard 1 as if these were its samples, and a manifest that matches it.
  void Reindex(const std::vector<TestSample>& samples) {
    Write("train-1.pidx", IndexTestShard(Path("train-1.toy"), ToyFormat(), samples));
    Reseal();
  }
  // The same with arbitrary changes to the rows.
  struct Row {
    ScannedRecord record;
    ScannedField image;
    std::optional<ScannedField> text = std::nullopt;  // a second field
  };
  void EditIndex(const std::function<void(std::vector<Row>&)>& edit);

  ValidationReport Validate(ValidateOptions options = {}) const {
    std::atomic<int> stop{0};
    ValidationProgress progress;
    absl::StatusOr<ValidationReport> report =
        ValidateDataset(folder, kToy, options, progress, stop);
    EXPECT_TRUE(report.ok()) << report.status();
    return report.ok() ? *std::move(report) : ValidationReport();
  }

  std::string folder;
  TestDatasetOptions made;
  Manifest manifest;
};

// The findings of a report, in the order of the catalogue, each followed by a blank.
std::string Names(const ValidationReport& report);

// Of a dataset against a folder of its sources, after a change to that.
ValidationReport AgainstSources(const std::function<void(const std::string& root)>& change);

// Of a dataset with one sample that has a text, against a source in which these samples have texts.
ValidationReport AgainstTexts(const std::map<size_t, std::string>& texts);

// Of shards without a manifest.
ValidationReport ForeignReport(const std::vector<std::string>& paths, ValidateOptions options = {},
                               std::span<const Format* const> formats = kToy);

}  // namespace shardpack::testing

#endif  // SHARDPACK_VALIDATORS_VALIDATION_SCENE_H_
