#include "validators/looking/sample_pairs.h"

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>
#include <tbb/parallel_invoke.h>
#include <tbb/parallel_sort.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>

#include "formats/core/sample.h"
#include "formats/io/hash.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

struct PairEntry {
  uint64_t hash, row;
};

// What tells samples of one identity apart.
struct Member {
  std::string_view key, split;
  uint64_t hash, row;  // of the image
  int64_t class_number;
};

// Whose indexes are all open.
class Identities {
 public:
  Identities(const SampleRows& rows, Identity identity, const ClassOfLabel& class_of)
      : rows_(rows), identity_(identity), class_of_(class_of) {}

  absl::Status Open() {
    for (const Dataset& dataset : rows_.datasets()) {
      std::vector<const ShardIndex*> indexes;
      std::vector<std::optional<size_t>> images;
      for (uint32_t shard = 0; shard < dataset.shards().size(); ++shard) {
        ASSIGN_OR_RETURN(const ShardIndex* const index, dataset.BorrowIndex(shard));
        indexes.push_back(index);
        images.push_back(index->FindField(kImageField));
      }
      indexes_.push_back(std::move(indexes));
      images_.push_back(std::move(images));
    }
    return absl::OkStatus();
  }

  // nullopt if the sample has none.
  std::optional<uint64_t> Hash(uint64_t row) const {
    const auto [index, image, record] = Find(row);
    if (identity_ != Identity::kImage) {
      const std::string_view text = TextOf(*index, record);
      if (text.empty() && identity_ == Identity::kPath) return std::nullopt;
      return Xxh3_64(AsBytes(text));
    }
    if (!image || !index->has_field(record, *image)) return std::nullopt;
    return index->hash(record, *image);
  }

  // The order of the identities; hashes are equal.
  bool Less(uint64_t a, uint64_t b) const {
    return identity_ == Identity::kImage ? Length(a) < Length(b) : Text(a) < Text(b);
  }
  bool Equal(uint64_t a, uint64_t b) const {
    return identity_ == Identity::kImage ? Length(a) == Length(b) : Text(a) == Text(b);
  }
  Member MemberOf(uint64_t row) const {
    const auto [index, image, record] = Find(row);
    const bool has_image = image && index->has_field(record, *image);
    const size_t side = rows_.DatasetOf(row);
    return {index->key(record), rows_.datasets()[side].shards()[rows_.Locate(row).shard].split,
            has_image ? index->hash(record, *image) : 0, row,
            class_of_(side, index->label(record))};
  }

 private:
  std::tuple<const ShardIndex*, std::optional<size_t>, uint64_t> Find(uint64_t row) const {
    const size_t dataset = rows_.DatasetOf(row);
    const SampleLocation at = rows_.Locate(row);
    return {indexes_[dataset][at.shard], images_[dataset][at.shard], at.record};
  }
  std::string_view TextOf(const ShardIndex& index, uint64_t record) const {
    return identity_ == Identity::kKey ? index.key(record) : index.source_path(record);
  }
  std::string_view Text(uint64_t row) const {
    const auto [index, image, record] = Find(row);
    return TextOf(*index, record);
  }
  uint64_t Length(uint64_t row) const {
    const auto [index, image, record] = Find(row);
    return index->field(record, *image).length;
  }

  const SampleRows& rows_;
  const Identity identity_;
  const ClassOfLabel& class_of_;
  std::vector<std::vector<const ShardIndex*>> indexes_;
  std::vector<std::vector<std::optional<size_t>>> images_;
};

// Ascending by hash, then by row. Rows without an identity go to `without`.
std::vector<PairEntry> SortedEntries(const Identities& identities, std::span<const uint64_t> rows,
                                     std::vector<uint64_t>& without) {
  constexpr uint64_t kNone = ~uint64_t{0};
  std::vector<PairEntry> entries(rows.size());
  tbb::parallel_for(tbb::blocked_range<size_t>(0, rows.size(), 4096), [&](const auto& range) {
    for (size_t i = range.begin(); i < range.end(); ++i) {
      const std::optional<uint64_t> hash = identities.Hash(rows[i]);
      entries[i] = {hash.value_or(0), hash ? rows[i] : kNone};
    }
  });
  for (size_t i = 0; i < rows.size(); ++i) {
    if (entries[i].row == kNone) without.push_back(rows[i]);
  }
  std::erase_if(entries, [](const PairEntry& entry) { return entry.row == kNone; });
  tbb::parallel_sort(entries.begin(), entries.end(), [](const PairEntry& a, const PairEntry& b) {
    return std::tie(a.hash, a.row) < std::tie(b.hash, b.row);
  });
  return entries;
}

// Samples of one identity: those with equal keys first; among them, and then among the others,
// those of one split, then those with one image, then those of one class, then in their order.
void PairGroup(const Identities& identities, std::span<const uint64_t> was,
               std::span<const uint64_t> now, SamplePairs& result) {
  if (was.empty() || now.empty()) {
    result.only_was.insert(result.only_was.end(), was.begin(), was.end());
    result.only_now.insert(result.only_now.end(), now.begin(), now.end());
    return;
  }
  if (was.size() == 1 && now.size() == 1) {
    result.pairs.push_back({was[0], now[0]});
    return;
  }
  std::vector<Member> left_was, left_now;
  for (const uint64_t row : was) left_was.push_back(identities.MemberOf(row));
  for (const uint64_t row : now) left_now.push_back(identities.MemberOf(row));
  // Takes the pairs whose `facts` are equal.
  const auto pair_equal = [&](const auto& facts) {
    const auto less = [&](const Member& a, const Member& b) {
      const auto facts_a = facts(a), facts_b = facts(b);
      return facts_a != facts_b ? facts_a < facts_b : a.row < b.row;
    };
    std::sort(left_was.begin(), left_was.end(), less);
    std::sort(left_now.begin(), left_now.end(), less);
    std::vector<Member> next_was, next_now;
    auto a = left_was.begin(), b = left_now.begin();
    while (a != left_was.end() && b != left_now.end()) {
      if (facts(*a) == facts(*b)) {
        result.pairs.push_back({(a++)->row, (b++)->row});
      } else if (facts(*a) < facts(*b)) {
        next_was.push_back(*a++);
      } else {
        next_now.push_back(*b++);
      }
    }
    next_was.insert(next_was.end(), a, left_was.end());
    next_now.insert(next_now.end(), b, left_now.end());
    left_was = std::move(next_was);
    left_now = std::move(next_now);
  };
  using M = const Member&;
  pair_equal([](M m) { return std::tie(m.key, m.split, m.hash, m.class_number); });
  pair_equal([](M m) { return std::make_tuple(m.key, m.split, m.hash); });
  pair_equal([](M m) { return std::make_tuple(m.key, m.split); });
  pair_equal([](M m) { return std::make_tuple(m.key, m.hash); });
  pair_equal([](M m) { return std::make_tuple(m.key); });
  pair_equal([](M m) { return std::tie(m.split, m.hash, m.class_number); });
  pair_equal([](M m) { return std::make_tuple(m.split, m.hash); });
  pair_equal([](M m) { return std::make_tuple(m.split); });
  pair_equal([](M m) { return std::tie(m.hash, m.class_number); });
  pair_equal([](M m) { return std::make_tuple(m.hash); });
  pair_equal([](M) { return 0; });
  for (const Member& member : left_was) result.only_was.push_back(member.row);
  for (const Member& member : left_now) result.only_now.push_back(member.row);
}

// Rows whose hashes are equal.
void PairRun(const Identities& identities, std::vector<uint64_t> was, std::vector<uint64_t> now,
             SamplePairs& result) {
  const auto less = [&](uint64_t a, uint64_t b) { return identities.Less(a, b); };
  std::sort(was.begin(), was.end(), less);
  std::sort(now.begin(), now.end(), less);
  auto a = was.begin(), b = now.begin();
  while (a != was.end() || b != now.end()) {
    const bool from_now = a == was.end() || (b != now.end() && less(*b, *a));
    const uint64_t first = from_now ? *b : *a;
    const auto end_of = [&](auto begin, auto end) {
      return std::find_if(begin, end, [&](uint64_t row) { return !identities.Equal(row, first); });
    };
    const auto a_end = end_of(a, was.end()), b_end = end_of(b, now.end());
    PairGroup(identities, {a, a_end}, {b, b_end}, result);
    a = a_end;
    b = b_end;
  }
}

}  // namespace

absl::StatusOr<SamplePairs> PairSamples(const SampleRows& rows, std::vector<uint64_t> was,
                                        std::vector<uint64_t> now, Identity identity,
                                        const ClassOfLabel& class_of) {
  Identities identities(rows, identity, class_of);
  RETURN_IF_ERROR(identities.Open());
  SamplePairs result;
  std::vector<PairEntry> a, b;
  tbb::parallel_invoke([&] { a = SortedEntries(identities, was, result.only_was); },
                       [&] { b = SortedEntries(identities, now, result.only_now); });
  result.pairs.reserve(std::min(a.size(), b.size()));
  size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    if (j == b.size() || (i < a.size() && a[i].hash < b[j].hash)) {
      result.only_was.push_back(a[i++].row);
      continue;
    }
    if (i == a.size() || b[j].hash < a[i].hash) {
      result.only_now.push_back(b[j++].row);
      continue;
    }
    const uint64_t hash = a[i].hash;
    size_t i_end = i, j_end = j;
    while (i_end < a.size() && a[i_end].hash == hash) ++i_end;
    while (j_end < b.size() && b[j_end].hash == hash) ++j_end;
    if (i_end - i == 1 && j_end - j == 1) {
      // Almost always a pair; whether the identities are equal is looked at below, in the order of
      // the rows, which costs less.
      result.pairs.push_back({a[i].row, b[j].row});
    } else {
      std::vector<uint64_t> run_was, run_now;
      for (; i < i_end; ++i) run_was.push_back(a[i].row);
      for (; j < j_end; ++j) run_now.push_back(b[j].row);
      PairRun(identities, std::move(run_was), std::move(run_now), result);
    }
    i = i_end;
    j = j_end;
  }
  tbb::parallel_sort(result.pairs.begin(), result.pairs.end(),
                     [](const SamplePair& x, const SamplePair& y) { return x.was < y.was; });
  std::vector<uint8_t> wrong(result.pairs.size());
  tbb::parallel_for(tbb::blocked_range<size_t>(0, wrong.size(), 4096), [&](const auto& range) {
    for (size_t n = range.begin(); n < range.end(); ++n)
      wrong[n] = identities.Equal(result.pairs[n].was, result.pairs[n].now) ? 0 : 1;
  });
  size_t kept = 0;
  for (size_t n = 0; n < wrong.size(); ++n) {
    const SamplePair pair = result.pairs[n];
    if (wrong[n] == 0) {
      result.pairs[kept++] = pair;
    } else {
      result.only_was.push_back(pair.was);
      result.only_now.push_back(pair.now);
    }
  }
  result.pairs.resize(kept);
  std::sort(result.only_was.begin(), result.only_was.end());
  std::sort(result.only_now.begin(), result.only_now.end());
  return result;
}

}  // namespace shardpack
