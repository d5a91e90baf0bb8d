// What differs between a dataset and a selection of its samples.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "formats/io/error_facts.h"
#include "formats/io/hash.h"
#include "formats/io/status_macros.h"
#include "readers/dataset/dataset.h"

namespace shardpack {

absl::StatusOr<Dataset> Dataset::Select(std::span<const uint64_t> ids) const {
  std::vector<uint64_t> unselected_ids;
  unselected_ids.reserve(ids.size());
  for (const uint64_t id : ids) {
    if (id >= size()) {
      return WithFacts(
          absl::OutOfRangeError(absl::StrCat("sample ", id, " of ", size(), " samples")),
          {.id = static_cast<int64_t>(id)});
    }
    unselected_ids.push_back(UnselectedId(id));
  }
  return WithSelection(std::move(unselected_ids));
}

// Equal for equal samples, in however many steps they were selected.
Dataset Dataset::WithSelection(std::vector<uint64_t> unselected_ids) const {
  Dataset selected = Unselected();
  const Digest whole = selected.identity();
  const Digest list = Xxh3_128(std::as_bytes(std::span(unselected_ids)));
  const uint64_t parts[] = {whole.high, whole.low, list.high, list.low};
  selected.selection_ = std::make_shared<const Selection>(
      Selection{std::move(unselected_ids), Xxh3_128(std::as_bytes(std::span(parts)))});
  return selected;
}

absl::StatusOr<Dataset> Dataset::SplitSelection(std::string_view name) const {
  ASSIGN_OR_RETURN(const Dataset split, Unselected().Split(name));
  // The split has these of all shards, in the same order.
  std::vector<uint64_t> first_ids;
  uint64_t first = 0;
  for (const DatasetShard& shard : shards()) {
    first_ids.push_back(first);
    if (shard.split == name) first += shard.records;
  }
  std::vector<uint64_t> ids;
  for (uint64_t id = 0; id < size(); ++id) {
    const SampleLocation at = Locate(id);
    if (shards()[at.shard].split == name) ids.push_back(first_ids[at.shard] + at.record);
  }
  return split.WithSelection(std::move(ids));
}

uint64_t Dataset::size(std::string_view split) const {
  uint64_t records = 0;
  if (selection_ == nullptr) {
    for (const DatasetShard& shard : shards()) {
      if (shard.split == split) records += shard.records;
    }
    return records;
  }
  for (uint64_t id = 0; id < size(); ++id) {
    if (shards()[Locate(id).shard].split == split) ++records;
  }
  return records;
}

std::optional<int64_t> Dataset::IdAt(SampleLocation at) const {
  const uint64_t unselected = shards()[at.shard].first_id + at.record;
  if (selection_ == nullptr) return static_cast<int64_t>(unselected);
  const auto found = std::find(selection_->ids.begin(), selection_->ids.end(), unselected);
  if (found == selection_->ids.end()) return std::nullopt;
  return found - selection_->ids.begin();
}

}  // namespace shardpack
