#include "converters/publishing/changed_inputs.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "converters/listing/find_skip.h"
#include "converters/listing/skip_answers.h"
#include "formats/core/class_name.h"
#include "formats/core/shard_index.h"
#include "formats/io/file.h"
#include "formats/io/hash.h"

namespace shardpack {
namespace {

std::string ClassOf(const std::vector<std::string>& classes, int64_t label) {
  const std::string name = ClassName(classes, label);
  return name.empty() ? "no class" : absl::StrCat("class ", EscapeForTerminal(name));
}

// Which of the sample's fields differ in presence or size; "" if none.
std::string ChangedField(const ShardIndex& index, uint64_t record, const Listing& now,
                         uint64_t row) {
  const std::string path = EscapeForTerminal(index.source_path(record));
  for (size_t f = 0; f < now.fields.size(); ++f) {
    const std::optional<size_t> packed = index.FindField(now.fields[f].name);
    const bool had = packed && index.has_field(record, *packed), has = now.HasField(row, f);
    const std::string name = EscapeForTerminal(now.fields[f].name);
    if (had && !has) return absl::StrCat(path, " was packed with a field ", name, " and has none");
    if (!had && has)
      return absl::StrCat(path, " was packed without a field ", name, " and has one");
    if (had && index.field(record, *packed).length != now.FieldBytes(row, f)) {
      return absl::StrCat("the field ", name, " of ", path, " has ", now.FieldBytes(row, f),
                          " bytes, ", index.field(record, *packed).length, " were packed");
    }
  }
  return "";
}

}  // namespace

std::string FirstChangedInput(const std::string& dataset, const Manifest& manifest,
                              const Listing& now) {
  struct Rows {
    uint64_t first = 0, count = 0, left = 0;
  };
  // By hash of the path; several samples of a conversion may share one.
  absl::flat_hash_map<uint64_t, Rows> rows;
  std::string path;
  for (uint64_t row = 0; row < now.rows(); ++row) {
    path.clear();
    now.AppendPath(row, path);
    Rows& of_path = rows.try_emplace(Xxh3_64(AsBytes(path)), Rows{.first = row}).first->second;
    ++of_path.count;
    ++of_path.left;
  }
  const bool kept = !manifest.facts.pixels.contains("re-encoded");
  for (const ManifestShard& shard : manifest.shards) {
    const absl::StatusOr<ShardIndex> index = ShardIndex::Open(
        PathInDataset(dataset, shard.index.name), shard.bytes, shard.index.xxh3_128);
    if (!index.ok()) return "";
    for (uint64_t record = 0; record < index->records(); ++record) {
      const std::string_view packed = index->source_path(record);
      const auto found = rows.find(Xxh3_64(AsBytes(packed)));
      if (found == rows.end() || found->second.left == 0)
        return absl::StrCat(EscapeForTerminal(packed), " was packed and is gone");
      --found->second.left;
      if (found->second.count > 1) continue;  // ambiguous
      const uint64_t n = found->second.first;
      const Skip* const skip = FindSkip(now.skips, n);
      if (skip != nullptr && skip->reason == SkipReason::kVanished)
        return absl::StrCat(EscapeForTerminal(packed), " was packed and is gone");
      if (kept && index->fields() > 0 && index->field(record, 0).length != now.bytes[n]) {
        return absl::StrCat(EscapeForTerminal(packed), " has ", now.bytes[n], " bytes, ",
                            index->field(record, 0).length, " were packed");
      }
      if (skip != nullptr) {
        return absl::StrCat("an input that was packed is skipped, ", SkipText(packed, *skip));
      }
      if (std::string field = ChangedField(*index, record, now, n); !field.empty()) return field;
      const std::string was = ClassOf(manifest.classes, index->label(record));
      const std::string is = ClassOf(now.classes, now.label.empty() ? -1 : now.label[n]);
      if (was != is)
        return absl::StrCat(EscapeForTerminal(packed), " was packed as ", was, " and is ", is);
    }
  }
  // The size is still the same.
  const auto made = std::find_if(now.fields.begin(), now.fields.end(),
                                 [](const ListedField& field) { return field.suffix.empty(); });
  // An input that was not packed may have been left out for a reason; it is certainly new only if
  // nothing was left out.
  const std::string content =
      made == now.fields.end()
          ? ""
          : absl::StrCat("the field ", EscapeForTerminal(made->name),
                         ", which the source makes itself, may have other content");
  if (manifest.counts.seen != manifest.counts.packed) return content;
  uint64_t first = UINT64_MAX;
  for (const auto& [hash, of_path] : rows) {
    if (of_path.left > 0) first = std::min(first, of_path.first);
  }
  return first == UINT64_MAX ? content
                             : absl::StrCat(EscapeForTerminal(now.Path(first)), " is new");
}

}  // namespace shardpack
