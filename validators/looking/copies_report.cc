#include "validators/looking/copies_report.h"

#include <tbb/task_arena.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/io/escape.h"
#include "formats/io/resources.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

using absl::StrCat;
using nlohmann::json;

using SplitSizes = std::map<std::string_view, uint64_t>;

// What is measured on them is to stay comparable, however large they are.
bool IsHeldOut(std::string_view split) {
  for (const std::string_view word : {"val", "valid", "validation", "test", "dev", "eval"}) {
    if (split == word) return true;
  }
  return false;
}

// Adds the rows of the first dataset that go. `sizes`: of its splits.
void Leave(const SampleRows& rows, const SplitSizes& sizes, const CopyGroup& group,
           std::set<uint64_t>& out) {
  const Dataset& dataset = rows.datasets()[0];
  std::vector<uint64_t> own;
  for (const uint64_t row : group.rows) {
    // What another group has left out needs no partner any more.
    if (rows.DatasetOf(row) == 0 && !out.contains(row)) own.push_back(row);
  }
  const bool elsewhere = rows.DatasetOf(group.rows.back()) != 0;
  uint64_t stays = rows.size();
  if (!group.label_conflict && !group.unread_labels && !elsewhere && !own.empty()) {
    const auto order = [&](uint64_t row) {
      const DatasetShard& shard = dataset.shards()[dataset.Locate(row).shard];
      return std::make_tuple(!IsHeldOut(shard.split), sizes.at(shard.split), row);
    };
    stays = *std::min_element(own.begin(), own.end(),
                              [&](uint64_t a, uint64_t b) { return order(a) < order(b); });
  }
  for (const uint64_t row : own) {
    if (row != stays) out.insert(row);
  }
}

std::string Place(const RowFacts& facts) {
  return StrCat("record ", facts.at.record, " of ", PercentEscape(facts.shard));
}

// What a list of keys would name beside the rows that are meant. `left`: those, by key.
absl::Status CheckOthersDiffer(const SampleRows& rows, const std::set<uint64_t>& out,
                               const std::unordered_map<std::string, uint64_t>& left) {
  const Dataset& dataset = rows.datasets()[0];
  for (uint32_t n = 0; n < dataset.shards().size(); ++n) {
    ASSIGN_OR_RETURN(const ShardIndex index, dataset.index(n));
    const uint64_t first = dataset.shards()[n].first_id;
    for (uint64_t record = 0; record < index.records(); ++record) {
      if (out.contains(first + record)) continue;
      const auto found = left.find(std::string(index.key(record)));
      if (found == left.end()) continue;
      ASSIGN_OR_RETURN(const RowFacts meant, rows.Facts(found->second));
      ASSIGN_OR_RETURN(const RowFacts other, rows.Facts(first + record));
      return absl::InvalidArgumentError(
          StrCat("the key ", PercentEscape(meant.key), " is that of a copy, ", Place(meant),
                 ", and of another sample, ", Place(other),
                 ", so a list of keys cannot tell them apart; --json gives shards and records"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<json> ToObject(const SampleRows& rows, const CopyGroup& group,
                              const std::vector<int>* distances) {
  json samples = json::array();
  for (size_t i = 0; i < group.rows.size(); ++i) {
    ASSIGN_OR_RETURN(const RowFacts facts, rows.Facts(group.rows[i]));
    json sample = {{"dataset", facts.dataset},
                   {"key", PercentEscape(facts.key)},
                   {"path", PercentEscape(facts.source_path)},
                   {"split", PercentEscape(facts.split)},
                   {"class", facts.label < 0 ? json() : json(PercentEscape(facts.class_name))},
                   {"bytes", facts.bytes},
                   {"shard", PercentEscape(facts.shard)},
                   {"record", facts.at.record}};
    if (distances != nullptr) sample["distance"] = (*distances)[i];
    samples.push_back(std::move(sample));
  }
  return json{{"label_conflict", group.label_conflict},
              {"unread_labels", group.unread_labels},
              {"leak", group.leak},
              {"samples", std::move(samples)}};
}

absl::Status Fill(const CopiesOptions& options, NearProgress& progress,
                  const std::atomic<int>& stop, CopiesReport& report) {
  ASSIGN_OR_RETURN(report.exact, FindExactCopies(report.rows));
  RETURN_IF_ERROR(CompareBytes(report.rows, report.exact, stop, report.unread));
  if (!options.near) return absl::OkStatus();
  ASSIGN_OR_RETURN(report.near,
                   FindNearCopies(report.rows, {.distance = options.distance}, progress, stop));
  return absl::OkStatus();
}

json ToObject(const UnreadSamples& unread) {
  return {{"count", unread.count}, {"messages", PercentEscapeAll(unread.messages)}};
}

}  // namespace

absl::StatusOr<CopiesReport> FindCopies(std::span<const Dataset> datasets,
                                        const CopiesOptions& options, NearProgress& progress,
                                        const std::atomic<int>& stop) {
  CopiesReport report{SampleRows(datasets), options.near, options.distance, {}, {}, {}, {}};
  tbb::task_arena arena(options.jobs > 0 ? options.jobs : AvailableCores());
  RETURN_IF_ERROR(arena.execute([&] { return Fill(options, progress, stop, report); }));
  return report;
}

absl::StatusOr<std::vector<std::string>> KeysToLeaveOut(const CopiesReport& report) {
  std::set<uint64_t> out;
  SplitSizes sizes;
  for (const DatasetShard& shard : report.rows.datasets()[0].shards())
    sizes[shard.split] += shard.records;
  for (const CopyGroup& group : report.exact) Leave(report.rows, sizes, group, out);
  for (const NearGroup& near : report.near.groups) Leave(report.rows, sizes, near.group, out);
  std::vector<std::string> keys;
  std::unordered_map<std::string, uint64_t> left;
  for (const uint64_t row : out) {
    ASSIGN_OR_RETURN(const RowFacts facts, report.rows.Facts(row));
    if (facts.key.empty()) {
      return absl::InvalidArgumentError(
          StrCat(Place(facts),
                 " has no key, so a list of keys cannot name it; --json gives shards and records"));
    }
    left.emplace(facts.key, row);
    keys.push_back(facts.key);
  }
  if (!out.empty()) RETURN_IF_ERROR(CheckOthersDiffer(report.rows, out, left));
  return keys;
}

absl::Status WriteJson(const CopiesReport& report,
                       const std::function<void(std::string_view)>& write) {
  json datasets = json::array();
  for (const Dataset& dataset : report.rows.datasets())
    datasets.push_back(
        {{"dataset", IdentityText(dataset.identity())}, {"samples", dataset.size()}});
  json head = {{"schema", "shardpack.dups/1"},
               {"datasets", std::move(datasets)},
               {"samples", report.rows.size()},
               {"unread", ToObject(report.unread)},
               {"damaged", report.damage.any()},
               {"damaged_files", PercentEscapeAll(Reasons(report.damage.files))},
               {"not_looked_at", PercentEscapeAll(report.damage.not_looked_at)},
               {"hash", report.with_near ? json("phash 64") : json()}};
  if (report.with_near) {
    head["distance"] = report.distance;
    head["hashed"] = report.near.hashed;
    head["flat"] = report.near.flat;
    head["undecodable"] = ToObject(report.near.unread);
  }
  std::string text = head.dump();
  text.pop_back();
  write(text + ",\"exact\":[");
  std::string comma = "\n";
  for (const CopyGroup& group : report.exact) {
    ASSIGN_OR_RETURN(const json object, ToObject(report.rows, group, nullptr));
    write(comma + object.dump());
    comma = ",\n";
  }
  write("],\"near\":[");
  comma = "\n";
  for (const NearGroup& near : report.near.groups) {
    ASSIGN_OR_RETURN(const json object, ToObject(report.rows, near.group, &near.distances));
    write(comma + object.dump());
    comma = ",\n";
  }
  write("]}\n");
  return absl::OkStatus();
}

}  // namespace shardpack
