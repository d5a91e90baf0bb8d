#include "validators/looking/exact_copies.h"

#include <tbb/parallel_for.h>
#include <tbb/parallel_sort.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "formats/core/sample.h"
#include "formats/io/status_macros.h"
#include "readers/dataset/foreign_shard.h"
#include "validators/looking/shard_loop.h"

namespace shardpack {
namespace {

struct Entry {
  uint64_t hash, row;
};

// One for each sample with an image, ascending by hash, then by row.
absl::StatusOr<std::vector<Entry>> SortedHashes(const SampleRows& rows) {
  // The row of a sample without an image is this, and removed below.
  constexpr uint64_t kNone = ~uint64_t{0};
  std::vector<Entry> entries(rows.size(), Entry{0, kNone});
  for (size_t d = 0; d < rows.datasets().size(); ++d) {
    const Dataset& dataset = rows.datasets()[d];
    RETURN_IF_ERROR(ForEachShard(dataset, [&](uint32_t shard, const ShardIndex& index) {
      const std::optional<size_t> field = index.FindField(kImageField);
      if (!field) return absl::OkStatus();
      const auto hashes = NumbersOf<uint64_t>(index, IndexColumn::kHashes, *field);
      const auto offsets = NumbersOf<uint64_t>(index, IndexColumn::kOffsets, *field);
      const uint64_t first = rows.first(d) + dataset.shards()[shard].first_id;
      for (uint64_t record = 0; record < hashes.size(); ++record) {
        if (offsets[record] != kNoField) entries[first + record] = {hashes[record], first + record};
      }
      return absl::OkStatus();
    }));
  }
  std::erase_if(entries, [](const Entry& entry) { return entry.row == kNone; });
  tbb::parallel_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.hash, a.row) < std::tie(b.hash, b.row);
  });
  return entries;
}

absl::StatusOr<uint64_t> LengthOf(const SampleRows& rows, uint64_t row) {
  const SampleLocation at = rows.Locate(row);
  ASSIGN_OR_RETURN(const ShardIndex* const index,
                   rows.datasets()[rows.DatasetOf(row)].BorrowIndex(at.shard));
  return index->field(at.record, *index->FindField(kImageField)).length;
}

absl::Status ReadImage(const SampleRows& rows, uint64_t row, std::vector<std::byte>& bytes) {
  ASSIGN_OR_RETURN(const RowFacts facts, rows.Facts(row));
  bytes.resize(facts.bytes);
  return rows.datasets()[facts.dataset].ReadField(facts.at, *facts.field, bytes);
}

// Hash and length of the text that other tools have in place of a label, if there is one.
using LabelText = std::optional<std::pair<uint64_t, uint64_t>>;

LabelText LabelTextOf(const Dataset& dataset, const ShardIndex& index, uint64_t record) {
  if (dataset.format() != kLabelTextFormat) return std::nullopt;
  const std::optional<size_t> field = index.FindField(kLabelTextField);
  if (!field || !index.has_field(record, *field)) return std::nullopt;
  return std::pair(index.hash(record, *field), index.field(record, *field).length);
}

// The groups of equal images in `group`, which is one where hashes do not lie.
std::vector<CopyGroup> Divided(const SampleRows& rows, const CopyGroup& group,
                               UnreadSamples& unread) {
  const auto failed = [&](const absl::Status& status) {
    ++unread.count;
    if (unread.messages.size() < UnreadSamples::kMostMessages)
      unread.messages.emplace_back(status.message());
  };
  std::vector<CopyGroup> found;
  std::vector<std::byte> first, other;
  std::vector<uint64_t> left = group.rows;
  while (left.size() > 1) {
    CopyGroup equal{.rows = {left[0]}};
    std::vector<uint64_t> different;
    const absl::Status read = ReadImage(rows, left[0], first);
    if (!read.ok()) failed(read);
    for (size_t i = 1; i < left.size(); ++i) {
      const absl::Status read_other = read.ok() ? ReadImage(rows, left[i], other) : read;
      if (read.ok() && !read_other.ok()) failed(read_other);
      // What cannot be read is believed to be what its hash says.
      (!read_other.ok() || first == other ? equal.rows : different).push_back(left[i]);
    }
    if (equal.rows.size() > 1) found.push_back(std::move(equal));
    left = std::move(different);
  }
  return found;
}

}  // namespace

absl::Status MarkGroup(const SampleRows& rows, CopyGroup& group) {
  std::set<LabelText::value_type> texts;
  group.labelled = true;
  // Names and numbers are not comparable, and the first member tells which it is.
  std::set<std::pair<bool, std::string>> classes;
  std::set<std::pair<size_t, std::string_view>> places;
  for (const uint64_t row : group.rows) {
    ASSIGN_OR_RETURN(const RowFacts facts, rows.Facts(row));
    const Dataset& dataset = rows.datasets()[facts.dataset];
    if (facts.label >= 0) classes.emplace(dataset.classes().empty(), facts.class_name);
    places.emplace(facts.dataset, dataset.shards()[facts.at.shard].split);
    if (facts.label >= 0) continue;
    group.labelled = false;
    ASSIGN_OR_RETURN(const ShardIndex* const index, dataset.BorrowIndex(facts.at.shard));
    if (const LabelText text = LabelTextOf(dataset, *index, facts.at.record)) texts.insert(*text);
  }
  group.unread_labels = texts.size() > (classes.empty() ? 1u : 0u);
  const auto named =
      std::count_if(classes.begin(), classes.end(), [](const auto& each) { return !each.first; });
  group.label_conflict = named > 1 || static_cast<ptrdiff_t>(classes.size()) - named > 1;
  group.leak = places.size() > 1;
  return absl::OkStatus();
}

void SortGroups(std::vector<CopyGroup>& groups) {
  const auto order = [](const CopyGroup& group) {
    return std::make_tuple(!group.label_conflict, !group.leak, group.rows[0]);
  };
  std::sort(groups.begin(), groups.end(),
            [&](const CopyGroup& a, const CopyGroup& b) { return order(a) < order(b); });
}

absl::StatusOr<std::vector<CopyGroup>> FindExactCopies(const SampleRows& rows) {
  ASSIGN_OR_RETURN(const std::vector<Entry> entries, SortedHashes(rows));
  std::vector<CopyGroup> groups;
  for (size_t begin = 0, end = 0; begin < entries.size(); begin = end) {
    while (end < entries.size() && entries[end].hash == entries[begin].hash) ++end;
    if (end - begin < 2) continue;
    // Images of different lengths are different, even if their hashes are equal.
    std::vector<std::pair<uint64_t, uint64_t>> by_length;  // and row
    for (size_t i = begin; i < end; ++i) {
      ASSIGN_OR_RETURN(const uint64_t length, LengthOf(rows, entries[i].row));
      by_length.emplace_back(length, entries[i].row);
    }
    std::sort(by_length.begin(), by_length.end());
    for (size_t i = 0, next = 0; i < by_length.size(); i = next) {
      CopyGroup group;
      for (; next < by_length.size() && by_length[next].first == by_length[i].first; ++next)
        group.rows.push_back(by_length[next].second);
      if (group.rows.size() > 1) groups.push_back(std::move(group));
    }
  }
  for (CopyGroup& group : groups) RETURN_IF_ERROR(MarkGroup(rows, group));
  SortGroups(groups);
  return groups;
}

absl::Status CompareBytes(const SampleRows& rows, std::vector<CopyGroup>& groups,
                          const std::atomic<int>& stop, UnreadSamples& unread) {
  std::vector<std::vector<CopyGroup>> divided(groups.size());
  std::vector<UnreadSamples> troubles(groups.size());
  tbb::parallel_for(size_t{0}, groups.size(), [&](size_t i) {
    if (stop.load(std::memory_order_relaxed) == 0)
      divided[i] = Divided(rows, groups[i], troubles[i]);
  });
  if (stop.load() != 0) return absl::CancelledError("stopped");
  std::vector<CopyGroup> result;
  for (size_t i = 0; i < groups.size(); ++i) {
    for (CopyGroup& group : divided[i]) {
      RETURN_IF_ERROR(MarkGroup(rows, group));
      result.push_back(std::move(group));
    }
    unread.count += troubles[i].count;
    for (std::string& message : troubles[i].messages) {
      if (unread.messages.size() < UnreadSamples::kMostMessages)
        unread.messages.push_back(std::move(message));
    }
  }
  SortGroups(result);
  groups = std::move(result);
  return absl::OkStatus();
}

}  // namespace shardpack
