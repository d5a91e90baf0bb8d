#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/commands/commands.h"
#include "cli/commands/selection.h"
#include "cli/flags/failure.h"
#include "formats/core/class_name.h"
#include "formats/io/escape.h"
#include "formats/io/file.h"
#include "formats/io/status_macros.h"
#include "jobs/open_input.h"

namespace shardpack::cli {
namespace {

using absl::StrCat;

struct Row {
  uint64_t bytes = 0;  // of the image
  uint64_t hash = 0;
  ImageInfo image;
};

absl::StatusOr<Row> Look(const Dataset& dataset, const SampleRow& row) {
  Row facts;
  ASSIGN_OR_RETURN(const ImageInfo image, ImageOf(dataset, row));
  facts.image = image;
  const std::optional<size_t> column = row.index.FindField(kImageField);
  if (column.has_value() && row.index.has_field(row.record, *column)) {
    facts.bytes = row.index.field(row.record, *column).length;
    facts.hash = row.index.hash(row.record, *column);
  }
  return facts;
}

// Taken from a shard's first rows, so that the columns line up without reading all of them.
size_t KeyColumns(const ShardIndex& index) {
  size_t columns = 12;
  for (uint64_t record = 0; record < std::min<uint64_t>(index.records(), 1000); ++record) {
    columns = std::max(columns, DisplayColumns(EscapeForTerminal(index.key(record))));
  }
  return std::min<size_t>(columns, 48);
}

std::string TextLine(const Dataset& dataset, const SampleRow& row, const Row& facts,
                     size_t key_columns, bool long_rows) {
  const std::string name =
      EscapeForTerminal(ClassName(dataset.classes(), row.index.label(row.record)));
  const std::string pixels =
      facts.image.width == 0 ? "-" : StrCat(facts.image.width, "x", facts.image.height);
  std::string text = StrCat(PaddedTo(key_columns, EscapeForTerminal(row.index.key(row.record))),
                            "  ", PaddedTo(12, name.empty() ? "-" : name),
                            absl::StrFormat("  %9d  %9s", facts.bytes, pixels));
  if (long_rows) {
    text += absl::StrFormat("  %-4s  %016x  %s:%d", std::string(ImageExtension(facts.image.format)),
                            facts.hash, EscapeForTerminal(row.shard.name), row.record);
  }
  const std::string path = EscapeForTerminal(row.index.source_path(row.record));
  return StrCat(text, path.empty() ? "" : "  ", path, "\n");
}

std::string JsonLine(const Dataset& dataset, const SampleRow& row, const Row& facts) {
  const int64_t label = row.index.label(row.record);
  nlohmann::json json = {{"id", row.id},
                         {"shard", PercentEscape(row.shard.name)},
                         {"record", row.record},
                         {"split", PercentEscape(row.shard.split)},
                         {"key", PercentEscape(row.index.key(row.record))},
                         {"bytes", facts.bytes},
                         {"width", facts.image.width},
                         {"height", facts.image.height},
                         {"image", ImageExtension(facts.image.format)},
                         {"xxh3_64", absl::StrFormat("%016x", facts.hash)},
                         {"path", PercentEscape(row.index.source_path(row.record))}};
  json["label"] = label < 0 ? nlohmann::json() : nlohmann::json(label);
  json["class"] = label < 0 ? nlohmann::json()
                            : nlohmann::json(PercentEscape(ClassName(dataset.classes(), label)));
  return json.dump() + "\n";
}

}  // namespace

ExitCode RunLs(const CommandLine& line, Terminal& terminal) {
  absl::StatusOr<Dataset> dataset =
      OpenShown(line.arguments, /*same_labels=*/line.samples().label.has_value(), terminal);
  if (!dataset.ok()) return Fail(dataset.status(), terminal);
  absl::StatusOr<Selection> selection = Selection::Make(*dataset, line);
  if (!selection.ok()) return Fail(selection.status(), terminal);
  Results results;
  const DatasetShard* shard = nullptr;
  size_t key_columns = 0;
  absl::Status looked;
  absl::Status walked = ForEachSample(*dataset, *selection, [&](const SampleRow& row) {
    if (shard != &row.shard) key_columns = KeyColumns(row.index);
    shard = &row.shard;
    const absl::StatusOr<Row> facts = Look(*dataset, row);
    looked = facts.status();
    if (!facts.ok()) return false;
    results.Write(line.json
                      ? JsonLine(*dataset, row, *facts)
                      : TextLine(*dataset, row, *facts, key_columns, line.samples().long_rows));
    return !results.closed();
  });
  walked.Update(looked);
  const ExitCode code = walked.ok() ? ExitCode::kDone : Fail(walked, terminal);
  return FinishResults(results, code, terminal);
}

}  // namespace shardpack::cli
