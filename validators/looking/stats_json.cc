#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "formats/io/escape.h"
#include "validators/looking/dataset_stats.h"

namespace shardpack {
namespace {

using nlohmann::json;

json ToObject(const Distribution& values) {
  if (values.count == 0) return nullptr;
  json quantiles = json::object();
  for (size_t i = 0; i < Distribution::kPercents.size(); ++i)
    quantiles[std::to_string(Distribution::kPercents[i])] = values.quantiles[i];
  return {{"count", values.count},
          {"mean", values.mean},
          {"quantiles", std::move(quantiles)},
          {"histogram", {{"edges", values.edges}, {"counts", values.counts}}}};
}

json ToObject(const ClassStats& row, const std::vector<SplitStats>& splits) {
  json by_split = json::object();
  for (size_t split = 0; split < splits.size(); ++split)
    by_split[PercentEscape(splits[split].name)] = row.by_split[split];
  return {{"label", row.label < 0 ? json() : json(row.label)},
          {"name", PercentEscape(row.name)},
          {"samples", row.samples},
          {"image_bytes", row.image_bytes},
          {"splits", std::move(by_split)}};
}

json ToObject(const SplitStats& split) {
  return {{"name", PercentEscape(split.name)},
          {"samples", split.samples},
          {"shards", split.shards},
          {"shard_bytes", split.shard_bytes},
          {"min_shard_samples", split.min_shard_samples},
          {"max_shard_samples", split.max_shard_samples},
          {"min_shard_bytes", split.min_shard_bytes},
          {"max_shard_bytes", split.max_shard_bytes}};
}

json ToObject(const StatsNote& note) {
  return {{"id", NoteId(note.kind)},
          {"count", note.count},
          {"split", PercentEscape(note.split)},
          {"names", PercentEscapeAll(note.names)},
          {"text", NoteText(note, PercentEscape)}};
}

json Images(const DatasetStats& stats) {
  return {{"bytes", stats.image_bytes},       {"without_facts", stats.without_facts},
          {"formats", stats.formats},         {"pixels", stats.pixels},
          {"progressive", stats.progressive}, {"animated", stats.animated},
          {"with_alpha", stats.alpha},        {"turned", stats.turned},
          {"truncated", stats.truncated}};
}

template <typename Rows, typename... More>
json ToArray(const Rows& rows, const More&... more) {
  json array = json::array();
  for (const auto& row : rows) array.push_back(ToObject(row, more...));
  return array;
}

}  // namespace

std::string ToJson(const DatasetStats& stats) {
  // What nobody could look at is null.
  const auto looked_at = [&](json value) {
    return stats.any_looked_at() ? std::move(value) : json();
  };
  const auto of_copies = [&](uint64_t count) {
    return stats.unread_shards == 0 ? json(count) : json();
  };
  json fields = json::array(), reasons = json::object();
  for (const FieldStats& field : stats.fields) {
    fields.push_back(
        {{"name", PercentEscape(field.name)}, {"samples", field.samples}, {"bytes", field.bytes}});
  }
  for (const auto& [reason, count] : stats.skipped.by_reason)
    reasons[PercentEscape(reason)] = count;
  const json object = {
      {"schema", "shardpack.stats/1"},
      {"dataset", stats.identity},
      {"format", stats.format},
      {"layout", stats.layout},
      {"manifest", stats.has_manifest},
      {"samples", looked_at(stats.samples)},
      {"shards", looked_at(stats.shards)},
      {"shard_bytes", looked_at(stats.shard_bytes)},
      {"splits", looked_at(ToArray(stats.splits))},
      {"classes", looked_at(ToArray(stats.classes, stats.splits))},
      {"unlabelled", looked_at(ToObject(stats.unlabelled, stats.splits))},
      {"images", looked_at(Images(stats))},
      {"width", ToObject(stats.width)},
      {"height", ToObject(stats.height)},
      {"aspect", ToObject(stats.aspect)},
      {"bytes", ToObject(stats.bytes)},
      {"fields", looked_at(std::move(fields))},
      {"copies",
       {{"groups", of_copies(stats.copies.groups)},
        {"extra", of_copies(stats.copies.extra)},
        {"leaks", of_copies(stats.copies.leaks)},
        {"label_conflicts", of_copies(stats.copies.label_conflicts)}}},
      {"filtered", stats.filtered},
      {"skipped_inputs", {{"count", stats.skipped.count}, {"by_reason", std::move(reasons)}}},
      {"pixel_stats", stats.pixel_stats},
      {"notes", ToArray(stats.notes)},
      {"damaged", stats.damaged()},
      {"damaged_files", PercentEscapeAll(stats.damaged_files)},
      {"not_looked_at", PercentEscapeAll(stats.not_looked_at)}};
  return object.dump() + "\n";
}

}  // namespace shardpack
