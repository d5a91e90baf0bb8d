#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "formats/io/escape.h"
#include "formats/io/status_macros.h"
#include "validators/looking/dataset_diff.h"

namespace shardpack {
namespace {

using nlohmann::json;

json ToObject(const RowFacts& facts) {
  return {{"key", PercentEscape(facts.key)},
          {"path", PercentEscape(facts.source_path)},
          {"split", PercentEscape(facts.split)},
          {"label", facts.label < 0 ? json() : json(facts.label)},
          {"class", facts.label < 0 ? json() : json(PercentEscape(facts.class_name))},
          {"bytes", facts.bytes},
          {"shard", PercentEscape(facts.shard)},
          {"record", facts.at.record}};
}

absl::StatusOr<json> ToObject(const DatasetDiff& diff, const SampleChange& change) {
  json object = {{"what", json::array()}};
  for (size_t kind = 0; kind < diff.counts.size(); ++kind) {
    if (change.Has(static_cast<ChangeKind>(kind)))
      object["what"].push_back(ChangeWord(static_cast<ChangeKind>(kind)));
  }
  for (const auto& [name, row] : {std::pair("was", change.was), std::pair("now", change.now)}) {
    if (row == SampleChange::kNoRow) continue;
    ASSIGN_OR_RETURN(const RowFacts facts, diff.rows.Facts(row));
    object[name] = ToObject(facts);
  }
  if (change.Has(ChangeKind::kFields)) {
    ASSIGN_OR_RETURN(const std::vector<std::string> names, ChangedFields(diff, change));
    object["fields"] = PercentEscapeAll(names);
  }
  return object;
}

}  // namespace

absl::Status WriteJson(const DatasetDiff& diff,
                       const std::function<void(std::string_view)>& write) {
  json counts = json::object(), fields = json::array(), classes = json::array(),
       options = json::array();
  for (size_t kind = 0; kind < diff.counts.size(); ++kind)
    counts[std::string(ChangeWord(static_cast<ChangeKind>(kind)))] = diff.counts[kind];
  for (const FieldDifference& field : diff.fields) {
    fields.push_back({{"name", PercentEscape(field.name)},
                      {"lost", field.lost},
                      {"gained", field.gained},
                      {"changed", field.changed}});
  }
  const auto number = [](int64_t label) { return label < 0 ? json() : json(label); };
  for (const ClassDifference& each : diff.classes) {
    classes.push_back(
        {{"name", PercentEscape(each.name)}, {"was", number(each.was)}, {"now", number(each.now)}});
  }
  for (const OptionDifference& option : diff.options) {
    options.push_back({{"name", PercentEscape(option.name)},
                       {"was", PercentEscape(option.was)},
                       {"now", PercentEscape(option.now)}});
  }
  const json head = {{"schema", "shardpack.diff/1"},
                     {"was", IdentityText(diff.rows.datasets()[0].identity())},
                     {"now", IdentityText(diff.rows.datasets()[1].identity())},
                     {"samples_was", diff.rows.datasets()[0].size()},
                     {"samples", diff.rows.datasets()[1].size()},
                     {"same", diff.same},
                     {"differs", diff.differs()},
                     {"counts", std::move(counts)},
                     {"fields", std::move(fields)},
                     {"classes", std::move(classes)},
                     {"options", std::move(options)},
                     {"not_compared", PercentEscapeAll(diff.not_compared)},
                     {"labels_by_number", diff.labels_by_number},
                     {"damaged", diff.damage.any()},
                     {"damaged_files", PercentEscapeAll(Reasons(diff.damage.files))},
                     {"not_looked_at", PercentEscapeAll(diff.damage.not_looked_at)}};
  std::string text = head.dump();
  text.pop_back();
  write(text + ",\"changes\":[");
  bool first = true;
  for (const SampleChange& change : diff.changes) {
    ASSIGN_OR_RETURN(const json object, ToObject(diff, change));
    write(absl::StrCat(first ? "\n" : ",\n", object.dump()));
    first = false;
  }
  write("]}\n");
  return absl::OkStatus();
}

}  // namespace shardpack
