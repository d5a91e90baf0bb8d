#include "validators/looking/near_copies.h"

#include <tbb/blocked_range.h>
#include <tbb/enumerable_thread_specific.h>
#include <tbb/parallel_for.h>
#include <tbb/parallel_sort.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <mutex>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/core/image_info.h"
#include "formats/io/file.h"
#include "formats/io/status_macros.h"
#include "validators/looking/near_pairs.h"
#include "validators/looking/perceptual_hash.h"

namespace shardpack {
namespace {

constexpr size_t kGrain = 32;

struct Entry {
  uint64_t hash, row;
};

// Sets of numbers that are joined step by step.
class Sets {
 public:
  explicit Sets(size_t count) : parents_(count) { std::iota(parents_.begin(), parents_.end(), 0); }
  uint32_t Find(uint32_t number) {
    while (parents_[number] != number) {
      parents_[number] = parents_[parents_[number]];
      number = parents_[number];
    }
    return number;
  }
  // The smallest number stands for a set.
  void Join(uint32_t a, uint32_t b) {
    a = Find(a);
    b = Find(b);
    parents_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<uint32_t> parents_;
};

class Hashing {
 public:
  Hashing(const SampleRows& rows, NearProgress& progress, const std::atomic<int>& stop,
          NearCopies& result)
      : rows_(rows), progress_(progress), stop_(stop), result_(result) {}

  // Of all images that can be decoded and are not flat, ascending by hash, then by row.
  absl::StatusOr<std::vector<Entry>> Run();

 private:
  struct Worker {
    PerceptualHasher hasher;
    std::vector<std::byte> bytes;
    std::vector<Entry> entries;
    std::vector<uint64_t> flat, undecodable, huge;  // rows
  };
  void HashRow(uint64_t row, Worker& worker);
  // `message`: names the sample.
  void Failed(uint64_t row, std::string message);
  void Failed(uint64_t row, const RowFacts& facts, const absl::Status& status);

  const SampleRows& rows_;
  NearProgress& progress_;
  const std::atomic<int>& stop_;
  NearCopies& result_;
  std::mutex mutex_;
  std::vector<std::pair<uint64_t, std::string>> messages_;  // and row
};

void Hashing::Failed(uint64_t row, const RowFacts& facts, const absl::Status& status) {
  Failed(row, absl::StrCat(EscapeForTerminal(facts.shard), " record ", facts.at.record, " key ",
                           EscapeForTerminal(facts.key), ": ", std::string(status.message())));
}

void Hashing::Failed(uint64_t row, std::string message) {
  ++progress_.bad;
  const std::lock_guard lock(mutex_);
  ++result_.unread.count;
  messages_.emplace_back(row, std::move(message));
  // The first ones are named, whichever thread found them.
  if (messages_.size() < 4 * UnreadSamples::kMostMessages) return;
  std::sort(messages_.begin(), messages_.end());
  messages_.resize(UnreadSamples::kMostMessages);
}

void Hashing::HashRow(uint64_t row, Worker& worker) {
  const absl::StatusOr<RowFacts> facts = rows_.Facts(row);
  ++progress_.done;
  if (!facts.ok()) return Failed(row, std::string(facts.status().message()));
  if (!facts->field) return;
  if (facts->bytes > kMaxImageFileBytes) {
    worker.huge.push_back(row);
    return Failed(row, *facts, absl::ResourceExhaustedError("more than 256 MiB"));
  }
  worker.bytes.resize(facts->bytes);
  const absl::Status read =
      rows_.datasets()[facts->dataset].ReadField(facts->at, *facts->field, worker.bytes);
  if (!read.ok()) {
    Failed(row, std::string(read.message()));
    const std::lock_guard lock(mutex_);
    ++result_.damaged;
    return;
  }
  progress_.bytes += facts->bytes;
  const absl::StatusOr<ImageHash> hash = worker.hasher.Hash(worker.bytes, facts->image);
  if (!hash.ok()) {
    worker.undecodable.push_back(row);
    return Failed(row, *facts, hash.status());
  }
  if (hash->flat) {
    worker.flat.push_back(row);
  } else {
    worker.entries.push_back({hash->value, row});
  }
}

void AddFirst(const std::vector<uint64_t>& rows, std::vector<uint64_t>& first) {
  first.insert(first.end(), rows.begin(), rows.end());
  std::sort(first.begin(), first.end());
  first.resize(std::min(first.size(), NearCopies::kMostRows));
}

absl::StatusOr<std::vector<Entry>> Hashing::Run() {
  // A damaged index is an error, not a bad image.
  for (const Dataset& dataset : rows_.datasets()) {
    for (uint32_t shard = 0; shard < dataset.shards().size(); ++shard)
      RETURN_IF_ERROR(dataset.BorrowIndex(shard).status());
  }
  progress_.total = rows_.size();
  tbb::enumerable_thread_specific<Worker> workers;
  tbb::parallel_for(tbb::blocked_range<uint64_t>(0, rows_.size(), kGrain), [&](const auto& range) {
    Worker& worker = workers.local();
    for (uint64_t row = range.begin(); row < range.end(); ++row) {
      if (stop_.load(std::memory_order_relaxed) != 0) return;
      HashRow(row, worker);
    }
  });
  if (stop_.load() != 0) return absl::CancelledError("stopped");
  std::vector<Entry> entries;
  for (Worker& worker : workers) {
    entries.insert(entries.end(), worker.entries.begin(), worker.entries.end());
    std::vector<Entry>().swap(worker.entries);
    result_.flat += worker.flat.size();
    AddFirst(worker.flat, result_.first_flat);
    AddFirst(worker.undecodable, result_.first_undecodable);
    result_.huge += worker.huge.size();
    AddFirst(worker.huge, result_.first_huge);
  }
  result_.hashed = entries.size();
  tbb::parallel_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.hash, a.row) < std::tie(b.hash, b.row);
  });
  std::sort(messages_.begin(), messages_.end());
  messages_.resize(std::min(messages_.size(), UnreadSamples::kMostMessages));
  for (auto& [row, message] : messages_) result_.unread.messages.push_back(std::move(message));
  return entries;
}

// Whether all images are equal byte for byte, by the index.
absl::StatusOr<bool> AllEqual(const SampleRows& rows, const std::vector<uint64_t>& group) {
  ASSIGN_OR_RETURN(const RowFacts first, rows.Facts(group[0]));
  for (const uint64_t row : group) {
    ASSIGN_OR_RETURN(const RowFacts facts, rows.Facts(row));
    if (facts.hash != first.hash || facts.bytes != first.bytes) return false;
  }
  return true;
}

// `members`: hash and row.
absl::Status AddGroup(const SampleRows& rows, std::vector<Entry> members, NearCopies& result) {
  std::sort(members.begin(), members.end(),
            [](const Entry& a, const Entry& b) { return a.row < b.row; });
  NearGroup near;
  for (const Entry& member : members) {
    near.group.rows.push_back(member.row);
    near.distances.push_back(std::popcount(member.hash ^ members[0].hash));
  }
  ASSIGN_OR_RETURN(const bool equal, AllEqual(rows, near.group.rows));
  if (equal) return absl::OkStatus();
  RETURN_IF_ERROR(MarkGroup(rows, near.group));
  result.groups.push_back(std::move(near));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<NearCopies> FindNearCopies(const SampleRows& rows, const NearOptions& options,
                                          NearProgress& progress, const std::atomic<int>& stop) {
  NearCopies result;
  ASSIGN_OR_RETURN(const std::vector<Entry> entries, Hashing(rows, progress, stop, result).Run());
  std::vector<uint64_t> hashes;
  std::vector<size_t> first;  // of each hash, in `entries`
  for (size_t i = 0; i < entries.size(); ++i) {
    if (!hashes.empty() && hashes.back() == entries[i].hash) continue;
    hashes.push_back(entries[i].hash);
    first.push_back(i);
  }
  first.push_back(entries.size());
  Sets sets(hashes.size());
  const bool done = FindNearPairs(hashes, options.distance, stop, [&](const NearPair& pair) {
    sets.Join(pair.first, pair.second);
  });
  if (!done) return absl::CancelledError("stopped");
  // The hashes of each set, one set after the other.
  std::vector<std::pair<uint32_t, uint32_t>> members;
  for (uint32_t i = 0; i < hashes.size(); ++i) members.emplace_back(sets.Find(i), i);
  std::sort(members.begin(), members.end());
  for (size_t begin = 0, end = 0; begin < members.size(); begin = end) {
    std::vector<Entry> group;
    for (; end < members.size() && members[end].first == members[begin].first; ++end) {
      const uint32_t hash = members[end].second;
      group.insert(group.end(), entries.begin() + static_cast<ptrdiff_t>(first[hash]),
                   entries.begin() + static_cast<ptrdiff_t>(first[hash + 1]));
    }
    if (group.size() > 1) RETURN_IF_ERROR(AddGroup(rows, std::move(group), result));
  }
  std::sort(result.groups.begin(), result.groups.end(), [](const NearGroup& a, const NearGroup& b) {
    const auto order = [](const CopyGroup& group) {
      return std::make_tuple(!group.label_conflict, !group.leak, group.rows[0]);
    };
    return order(a.group) < order(b.group);
  });
  return result;
}

}  // namespace shardpack
