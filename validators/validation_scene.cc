#include "validators/validation_scene.h"

#include <atomic>
#include <filesystem>
#include <utility>

#include "formats/io/file.h"

namespace shardpack::testing {

void Scene::EditIndex(const std::function<void(std::vector<Row>&)>& edit) {
  const std::vector<TestSample> samples = SamplesOf(1);
  const uint64_t size = Read("train-1.toy").size();
  const absl::StatusOr<ShardIndex> index =
      ShardIndex::FromBytes(IndexTestShard(Path("train-1.toy"), ToyFormat(), samples), size);
  std::vector<Row> rows;
  for (uint64_t r = 0; r < index->records(); ++r) {
    const Extent whole = index->record(r), image = index->field(r, 0);
    rows.push_back({{.key = samples[r].key,
                     .source_path = samples[r].source_path,
                     .label = samples[r].label,
                     .offset = whole.offset,
                     .length = whole.length,
                     .fields = {}},
                    {kImageField, image.offset, image.length, index->hash(r, 0)}});
  }
  edit(rows);
  ShardIndexBuilder builder;
  for (Row& row : rows) {
    std::vector<ScannedField> fields = {row.image};
    if (row.text) fields.push_back(*row.text);
    row.record.fields = fields;
    builder.Add(row.record, row.record.key, row.record.source_path, row.record.label, {});
  }
  Write("train-1.pidx", builder.Finish(size));
  Reseal();
}

std::string Names(const ValidationReport& report) {
  std::string names;
  for (const FindingSpec& spec : AllFindings()) {
    if (report.findings.count(spec.id) > 0) names += std::string(spec.name) + " ";
  }
  return names;
}

ValidationReport AgainstSources(const std::function<void(const std::string& root)>& change) {
  Scene scene;
  const std::string root = scene.Path("../source");
  std::filesystem::create_directories(root + "/cat");
  std::filesystem::create_directories(root + "/dog");
  for (const TestSample& sample : scene.made.samples)
    WriteTestFile(root + "/" + sample.source_path, sample.image);
  change(root);
  ValidationReport report = scene.Validate({.open_source = FilesBelow(root)});
  (void)RemoveTree(root);
  return report;
}

ValidationReport AgainstTexts(const std::map<size_t, std::string>& texts) {
  Scene scene;
  const std::vector<TestSample> samples = scene.SamplesOf(1);
  scene.EditIndex([&](std::vector<Scene::Row>& rows) {
    rows[2].text = {"txt", rows[2].image.offset, 4,
                    Xxh3_64(AsBytes(samples[2].image.substr(0, 4)))};
  });
  const std::string root = MakeTestFolder("texts");
  for (const std::string_view folder : {"/cat", "/dog"})
    std::filesystem::create_directories(root + std::string(folder));
  for (const TestSample& sample : scene.made.samples)
    WriteTestFile(root + "/" + sample.source_path, sample.image);
  for (const auto& [number, text] : texts) {
    const std::string& path = samples[number].source_path;
    WriteTestFile(root + "/" + path.substr(0, path.rfind('.')) + ".txt", text);
  }
  ValidationReport report =
      scene.Validate({.open_source = FilesBelow(root), .against_parts = {{"txt", "txt"}}});
  (void)RemoveTree(root);
  return report;
}

ValidationReport ForeignReport(const std::vector<std::string>& paths, ValidateOptions options,
                               std::span<const Format* const> formats) {
  std::atomic<int> stop{0};
  ValidationProgress progress;
  absl::StatusOr<ValidationReport> report = ValidateShards(paths, formats, options, progress, stop);
  EXPECT_TRUE(report.ok()) << report.status();
  return report.ok() ? *std::move(report) : ValidationReport();
}

}  // namespace shardpack::testing
