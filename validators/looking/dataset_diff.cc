#include "validators/looking/dataset_diff.h"

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "formats/core/class_name.h"
#include "formats/core/sample.h"
#include "formats/io/status_macros.h"
#include "validators/looking/sample_pairs.h"
#include "validators/looking/shard_loop.h"

namespace shardpack {
namespace {

constexpr size_t kBlock = 8192;

absl::string_view View(std::string_view text) { return {text.data(), text.size()}; }

// nullopt unless each name is a whole number in plain decimal.
std::optional<std::vector<int64_t>> NumbersOfNames(std::span<const std::string> names) {
  std::vector<int64_t> numbers;
  for (const std::string& name : names) {
    int64_t number = -1;
    // "007" and "+7" are names.
    if (!absl::SimpleAtoi(name, &number) || number < 0 || absl::StrCat(number) != name)
      return std::nullopt;
    numbers.push_back(number);
  }
  return numbers;
}

int64_t NumberOf(const std::vector<int64_t>& numbers, int64_t label) {
  return static_cast<uint64_t>(label) < numbers.size() ? numbers[static_cast<size_t>(label)]
                                                       : label;
}

// A shard, and where its index has the fields of the datasets.
struct OpenShard {
  const ShardIndex* index = nullptr;
  std::string_view split;
  std::vector<int> columns;  // by number of the field; -1: none
};

class Comparison {
 public:
  Comparison(DatasetDiff& diff, const DiffOptions& options) : diff_(diff), options_(options) {}
  absl::Status Run();

 private:
  // What differs of a field, by its number.
  struct FieldCount {
    uint64_t lost = 0, gained = 0, changed = 0;
  };
  struct Part {
    std::vector<SampleChange> changes;
    std::vector<FieldCount> fields;
    uint64_t same = 0;
  };

  const Dataset& was() const { return diff_.rows.datasets()[0]; }
  const Dataset& now() const { return diff_.rows.datasets()[1]; }
  absl::Status OpenShards();
  absl::Status CompareClasses();
  void CompareOptions();
  void CompareSplitNames();
  absl::StatusOr<bool> AgreeByName(const std::array<std::vector<int64_t>, 2>& numbers) const;
  int64_t ClassOf(size_t side, int64_t label) const;
  void Compare(const std::vector<SamplePair>& pairs);
  void ComparePair(const SamplePair& pair, Part& part) const;
  void LeaveOutUnknown(SamplePairs& found);
  std::array<std::vector<uint64_t>, 2> AllRows() const;
  absl::Status PairAll();

  DatasetDiff& diff_;
  const DiffOptions& options_;
  std::array<std::vector<OpenShard>, 2> shards_;
  std::vector<std::string> field_names_;  // [0] is the image
  // What the labels of a side are compared as; where it is empty, as they are.
  std::array<std::vector<int64_t>, 2> numbers_;
  bool with_splits_ = true;
  std::vector<FieldCount> field_counts_;
};

absl::Status Comparison::OpenShards() {
  field_names_ = {std::string(kImageField)};
  for (size_t side = 0; side < 2; ++side) {
    const Dataset& dataset = diff_.rows.datasets()[side];
    shards_[side].resize(dataset.shards().size());
    RETURN_IF_ERROR(ForEachShard(dataset, [&](uint32_t shard, const ShardIndex& index) {
      shards_[side][shard] = {&index, dataset.shards()[shard].split, {}};
      return absl::OkStatus();
    }));
    for (OpenShard& shard : shards_[side]) {
      for (size_t field = 0; field < shard.index->fields(); ++field) {
        const std::string_view name = shard.index->field_name(field);
        const auto known = std::find(field_names_.begin(), field_names_.end(), name);
        const auto number = static_cast<size_t>(known - field_names_.begin());
        if (known == field_names_.end()) field_names_.emplace_back(name);
        shard.columns.resize(std::max(shard.columns.size(), number + 1), -1);
        shard.columns[number] = static_cast<int>(field);
      }
    }
  }
  for (auto& shards : shards_) {
    for (OpenShard& shard : shards) shard.columns.resize(field_names_.size(), -1);
  }
  field_counts_.resize(field_names_.size());
  return absl::OkStatus();
}

// A side has no names, and those of the other are numbers. Labels without names may be these, as in
// shards of other tools, or numbers of the classes, as in a shard that pack wrote.
absl::StatusOr<bool> Comparison::AgreeByName(
    const std::array<std::vector<int64_t>, 2>& numbers) const {
  std::array<std::vector<uint64_t>, 2> rows = AllRows();
  ASSIGN_OR_RETURN(const SamplePairs equal,
                   PairSamples(diff_.rows, std::move(rows[0]), std::move(rows[1]), Identity::kImage,
                               [](size_t, int64_t) { return 0; }));
  uint64_t by_name = 0, by_number = 0;
  for (const SamplePair& pair : equal.pairs) {
    std::array<int64_t, 2> labels, names;
    for (size_t side = 0; side < 2; ++side) {
      const SampleLocation at = diff_.rows.Locate(side == 0 ? pair.was : pair.now);
      labels[side] = shards_[side][at.shard].index->label(at.record);
      names[side] = NumberOf(numbers[side], labels[side]);
    }
    if (labels[0] < 0 || labels[1] < 0) continue;
    by_name += names[0] == names[1] ? 1 : 0;
    by_number += labels[0] == labels[1] ? 1 : 0;
  }
  return by_name >= by_number;
}

absl::Status Comparison::CompareClasses() {
  const std::span<const std::string> old_names = was().classes(), new_names = now().classes();
  if (old_names.empty() && new_names.empty()) return absl::OkStatus();
  if (old_names.empty() || new_names.empty()) {
    const std::string only_one = "names of classes, which only one of both has: ";
    std::array<std::vector<int64_t>, 2> numbers;
    std::optional<std::vector<int64_t>> names =
        NumbersOfNames(old_names.empty() ? new_names : old_names);
    if (names) {
      numbers[old_names.empty() ? 1 : 0] = *std::move(names);
      ASSIGN_OR_RETURN(const bool by_name, AgreeByName(numbers));
      if (by_name) {
        numbers_ = std::move(numbers);
        diff_.not_compared.push_back(
            absl::StrCat(only_one, "they are numbers, which the other's labels are taken for"));
        return absl::OkStatus();
      }
    }
    diff_.labels_by_number = true;
    diff_.not_compared.push_back(absl::StrCat(only_one, "labels are compared as numbers"));
    return absl::OkStatus();
  }
  absl::flat_hash_map<absl::string_view, int64_t> numbers;
  for (size_t n = 0; n < new_names.size(); ++n)
    numbers.emplace(View(new_names[n]), static_cast<int64_t>(n));
  std::vector<bool> kept(new_names.size());
  for (size_t n = 0; n < old_names.size(); ++n) {
    const auto found = numbers.find(View(old_names[n]));
    const int64_t now = found == numbers.end() ? -1 : found->second;
    // A class that is no longer there has a number that no label has.
    numbers_[0].push_back(now >= 0 ? now : -2 - static_cast<int64_t>(n));
    if (now >= 0) kept[static_cast<size_t>(now)] = true;
    if (now != static_cast<int64_t>(n))
      diff_.classes.push_back({old_names[n], static_cast<int64_t>(n), now});
  }
  for (size_t n = 0; n < new_names.size(); ++n) {
    if (!kept[n]) diff_.classes.push_back({new_names[n], -1, static_cast<int64_t>(n)});
  }
  return absl::OkStatus();
}

void Comparison::CompareOptions() {
  const auto add = [&](const std::string& name, const std::string& was, const std::string& now) {
    if (was != now) diff_.options.push_back({name, was, now});
  };
  add("format", was().format(), now().format());
  const Manifest *const old_one = was().manifest(), *const new_one = now().manifest();
  if (old_one == nullptr || new_one == nullptr) return;
  add("layout", old_one->layout, new_one->layout);
  std::map<std::string, std::pair<std::string, std::string>> options;
  for (const auto& [name, value] : old_one->options) options[name].first = value;
  for (const auto& [name, value] : new_one->options) options[name].second = value;
  for (const auto& [name, values] : options) {
    // The layout is there already.
    if (name != "layout") add(name, values.first, values.second);
  }
}

void Comparison::CompareSplitNames() {
  const auto has_splits = [](const std::vector<OpenShard>& shards) {
    return std::any_of(shards.begin(), shards.end(),
                       [](const OpenShard& shard) { return !shard.split.empty(); });
  };
  const bool old_has = has_splits(shards_[0]), new_has = has_splits(shards_[1]);
  with_splits_ = old_has && new_has;
  if (old_has != new_has && !shards_[0].empty() && !shards_[1].empty())
    diff_.not_compared.push_back("splits, which only one of both has");
}

int64_t Comparison::ClassOf(size_t side, int64_t label) const {
  return NumberOf(numbers_[side], std::max(label, kNoLabel));
}

void Comparison::ComparePair(const SamplePair& pair, Part& part) const {
  const SampleLocation old_at = diff_.rows.Locate(pair.was), new_at = diff_.rows.Locate(pair.now);
  const OpenShard& old_shard = shards_[0][old_at.shard];
  const OpenShard& new_shard = shards_[1][new_at.shard];
  SampleChange change{pair.was, pair.now, 0};
  for (size_t field = 0; field < field_names_.size(); ++field) {
    const int old_column = old_shard.columns[field], new_column = new_shard.columns[field];
    const auto has = [](const OpenShard& shard, int column, uint64_t record) {
      return column >= 0 && shard.index->has_field(record, static_cast<size_t>(column));
    };
    const bool had = has(old_shard, old_column, old_at.record);
    const bool has_now = has(new_shard, new_column, new_at.record);
    const auto differs = [&] {
      const auto a = static_cast<size_t>(old_column), b = static_cast<size_t>(new_column);
      return old_shard.index->hash(old_at.record, a) != new_shard.index->hash(new_at.record, b) ||
             old_shard.index->field(old_at.record, a).length !=
                 new_shard.index->field(new_at.record, b).length;
    };
    const bool changed = had && has_now && differs();
    if (had == has_now && !changed) continue;
    change.Set(field == 0 ? ChangeKind::kContent : ChangeKind::kFields);
    FieldCount& count = part.fields[field];
    ++(changed ? count.changed : had ? count.lost : count.gained);
  }
  if (ClassOf(0, old_shard.index->label(old_at.record)) !=
      ClassOf(1, new_shard.index->label(new_at.record)))
    change.Set(ChangeKind::kRelabelled);
  if (with_splits_ && old_shard.split != new_shard.split) change.Set(ChangeKind::kMoved);
  // Of the name that samples are found by; by hash, of the key.
  const bool by_path = options_.by == DiffBy::kPath;
  const auto name = [&](const OpenShard& shard, uint64_t record) {
    return by_path ? shard.index->source_path(record) : shard.index->key(record);
  };
  const std::string_view old_name = name(old_shard, old_at.record);
  const std::string_view new_name = name(new_shard, new_at.record);
  // A sample that lacks a name on one side was not renamed.
  if (old_name != new_name && !old_name.empty() && !new_name.empty())
    change.Set(ChangeKind::kRenamed);
  if (change.kinds == 0) {
    ++part.same;
  } else {
    part.changes.push_back(change);
  }
}

void Comparison::Compare(const std::vector<SamplePair>& pairs) {
  std::vector<Part> parts((pairs.size() + kBlock - 1) / kBlock);
  tbb::parallel_for(size_t{0}, parts.size(), [&](size_t n) {
    Part& part = parts[n];
    part.fields.resize(field_names_.size());
    const size_t end = std::min(pairs.size(), (n + 1) * kBlock);
    for (size_t i = n * kBlock; i < end; ++i) ComparePair(pairs[i], part);
  });
  for (const Part& part : parts) {
    diff_.same += part.same;
    diff_.changes.insert(diff_.changes.end(), part.changes.begin(), part.changes.end());
    for (size_t field = 0; field < field_counts_.size(); ++field) {
      field_counts_[field].lost += part.fields[field].lost;
      field_counts_[field].gained += part.fields[field].gained;
      field_counts_[field].changed += part.fields[field].changed;
    }
  }
}

// Keeps what is surely only on its side.
void Comparison::LeaveOutUnknown(SamplePairs& found) {
  const auto leave = [&](bool unknown, std::vector<uint64_t>& rows, const char* which) {
    if (!unknown || rows.empty()) return;
    diff_.not_compared.push_back(absl::StrCat(rows.size(), " of the ", which,
                                              " dataset's samples, which may be in the part of the "
                                              "other dataset that could not be read"));
    rows.clear();
  };
  leave(options_.now_is_partial, found.only_was, "first");
  leave(options_.was_is_partial, found.only_now, "second");
}

std::array<std::vector<uint64_t>, 2> Comparison::AllRows() const {
  std::array<std::vector<uint64_t>, 2> rows = {std::vector<uint64_t>(was().size()),
                                               std::vector<uint64_t>(now().size())};
  for (size_t side = 0; side < 2; ++side)
    std::iota(rows[side].begin(), rows[side].end(), diff_.rows.first(side));
  return rows;
}

absl::Status Comparison::PairAll() {
  std::array<std::vector<uint64_t>, 2> rows = AllRows();
  const ClassOfLabel class_of = [&](size_t side, int64_t label) { return ClassOf(side, label); };
  const bool by_hash = options_.by == DiffBy::kHash;
  const Identity first = by_hash                        ? Identity::kImage
                         : options_.by == DiffBy::kPath ? Identity::kPath
                                                        : Identity::kKey;
  ASSIGN_OR_RETURN(SamplePairs found, PairSamples(diff_.rows, std::move(rows[0]),
                                                  std::move(rows[1]), first, class_of));
  const bool none = found.pairs.empty() && !found.only_was.empty() && !found.only_now.empty();
  if (none && !by_hash)
    diff_.not_compared.push_back("names, of which none is in both; --by hash compares by bytes");
  Compare(found.pairs);
  ASSIGN_OR_RETURN(SamplePairs more,
                   PairSamples(diff_.rows, std::move(found.only_was), std::move(found.only_now),
                               by_hash ? Identity::kKey : Identity::kImage, class_of));
  Compare(more.pairs);
  LeaveOutUnknown(more);
  for (const uint64_t row : more.only_was) {
    diff_.changes.push_back({.was = row});
    diff_.changes.back().Set(ChangeKind::kRemoved);
  }
  std::sort(diff_.changes.begin(), diff_.changes.end(),
            [](const SampleChange& a, const SampleChange& b) { return a.was < b.was; });
  for (const uint64_t row : more.only_now) {
    diff_.changes.push_back({.now = row});
    diff_.changes.back().Set(ChangeKind::kAdded);
  }
  return absl::OkStatus();
}

absl::Status Comparison::Run() {
  RETURN_IF_ERROR(OpenShards());
  RETURN_IF_ERROR(CompareClasses());
  CompareOptions();
  CompareSplitNames();
  RETURN_IF_ERROR(PairAll());
  diff_.counts.assign(static_cast<size_t>(ChangeKind::kCount), 0);
  for (const SampleChange& change : diff_.changes) {
    for (size_t kind = 0; kind < diff_.counts.size(); ++kind)
      diff_.counts[kind] += change.Has(static_cast<ChangeKind>(kind)) ? 1 : 0;
  }
  for (size_t field = 1; field < field_names_.size(); ++field) {
    const FieldCount& count = field_counts_[field];
    if (count.lost + count.gained + count.changed > 0)
      diff_.fields.push_back({field_names_[field], count.lost, count.gained, count.changed});
  }
  return absl::OkStatus();
}

// Whether any sample has a source path.
absl::StatusOr<bool> HasPaths(const Dataset& dataset) {
  for (uint32_t shard = 0; shard < dataset.shards().size(); ++shard) {
    ASSIGN_OR_RETURN(const ShardIndex* const index, dataset.BorrowIndex(shard));
    if (!ColumnOf(*index, IndexColumn::kPathText).empty()) return true;
  }
  return dataset.size() == 0;
}

}  // namespace

std::string_view ChangeWord(ChangeKind kind) {
  static constexpr std::array<std::string_view, static_cast<size_t>(ChangeKind::kCount)> kWords = {
      "added", "removed", "content", "relabelled", "moved", "renamed", "fields"};
  return kWords[static_cast<size_t>(kind)];
}

absl::StatusOr<DatasetDiff> DiffDatasets(const Dataset& was, const Dataset& now,
                                         const DiffOptions& options) {
  if (was.is_selection() || now.is_selection())
    return absl::InvalidArgumentError("whole datasets are compared, not selections");
  for (const Dataset* dataset : {&was, &now}) {
    if (options.by != DiffBy::kPath) break;
    ASSIGN_OR_RETURN(const bool has_paths, HasPaths(*dataset));
    if (!has_paths)
      return absl::InvalidArgumentError(
          "one of both has no source paths; compare --by key or hash");
  }
  const Dataset both[] = {was, now};
  DatasetDiff diff{SampleRows(both), 0, {}, {}, {}, {}, {}, {}, {}, false};
  RETURN_IF_ERROR(Comparison(diff, options).Run());
  return diff;
}

absl::StatusOr<std::vector<std::string>> ChangedFields(const DatasetDiff& diff,
                                                       const SampleChange& change) {
  std::map<std::string, std::array<std::pair<uint64_t, uint64_t>, 2>> fields;  // hash, bytes + 1
  for (size_t side = 0; side < 2; ++side) {
    const uint64_t row = side == 0 ? change.was : change.now;
    const SampleLocation at = diff.rows.Locate(row);
    ASSIGN_OR_RETURN(const ShardIndex* const index,
                     diff.rows.datasets()[side].BorrowIndex(at.shard));
    for (size_t field = 0; field < index->fields(); ++field) {
      if (!index->has_field(at.record, field)) continue;
      fields[std::string(index->field_name(field))][side] = {
          index->hash(at.record, field), index->field(at.record, field).length + 1};
    }
  }
  std::vector<std::string> names;
  for (const auto& [name, sides] : fields) {
    if (sides[0] != sides[1] && name != kImageField) names.push_back(name);
  }
  return names;
}

}  // namespace shardpack
