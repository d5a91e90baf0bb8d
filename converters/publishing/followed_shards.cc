#include "converters/publishing/followed_shards.h"

#include <utility>

#include "converters/publishing/leases.h"
#include "converters/publishing/pack_names.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

constexpr size_t kFewShards = 100;

}  // namespace

// A worker that helps many others knows of their shards what a look at sizes needs. The worker that
// builds a shard holds a lease of it: a worker for which few shards were named need not read what
// was journalled of all others.
FollowedShards::FollowedShards(const OutputOptions& options, const OwnedFolder& folder,
                               size_t wanted)
    : folder_(folder),
      rereads_(!options.shares() || options.worker->named),
      reader_(folder.PathOf(kPackFolder), "", rereads_ ? JournalParts::kAll : JournalParts::kFiles),
      reads_few_(options.shares() && options.worker->named && wanted <= kFewShards),
      journals_({std::string(NameInFolder(kJournalName))}) {}

// Leases that were read before are not read again.
absl::Status FollowedShards::AddJournals(std::span<const uint32_t> shards) {
  for (const uint32_t shard : shards) {
    if (!reads_few_) return absl::OkStatus();
    for (uint32_t& known = generations_[shard];; ++known) {
      const absl::StatusOr<std::string> owner =
          folder_.Read(LeaseName(shard, known + 1), kMaxOwnerBytes);
      // Also a handle that grew stale: the next call looks again.
      if (absl::IsNotFound(owner.status()) || absl::IsUnavailable(owner.status())) break;
      if (!owner.ok()) return owner.status();
      reads_few_ = IsRunName(*owner);  // a torn one may be anybody's
      if (!reads_few_) break;
      journals_.insert(std::string(NameInFolder(WorkersJournal(*owner))));
    }
  }
  return absl::OkStatus();
}

absl::Status FollowedShards::ReadNew(std::span<const uint32_t> shards,
                                     const std::function<void(ShardResult&)>& take) {
  RETURN_IF_ERROR(AddJournals(shards));
  return reader_.ReadEachNew(take, reads_few_ ? &journals_ : nullptr);
}

absl::StatusOr<std::vector<ShardResult>> FollowedShards::ReadUnlisted(
    const std::set<uint32_t>& done) {
  ASSIGN_OR_RETURN(const Leases leases, Leases::Read(folder_, done));
  const std::set<std::string> journals = leases.Journals();
  return reader_.ReadNew(&journals);
}

void FollowedShards::Keep(ShardResult line) {
  if (!line.pending && !(rereads_ && LacksWhatMayBeBack(line)))
    lines_[line.shard].push_back(std::move(line));
}

void FollowedShards::Follow(const std::string& own_journal, std::span<const uint32_t> wanted,
                            std::span<const ShardResult> finished) {
  reader_.Leave(own_journal);
  wanted_.insert(wanted.begin(), wanted.end());
  for (const ShardResult& result : finished) wanted_.erase(result.shard);
  for (auto& [shard, lines] : lines_) {
    const bool known = !wanted_.contains(shard);
    std::erase_if(lines,
                  [&](const ShardResult& line) { return known || line.journal == own_journal; });
  }
  std::erase_if(lines_, [](const auto& each) { return each.second.empty(); });
}

absl::StatusOr<std::set<uint32_t>> FollowedShards::FindNew(const Plan& plan,
                                                           std::span<const uint32_t> shards) {
  const std::lock_guard lock(mutex_);
  const absl::Status read = ReadNew(shards, [&](ShardResult& line) {
    if (wanted_.contains(line.shard) && FitsPlan(line, plan)) Keep(std::move(line));
  });
  if (!read.ok() && !absl::IsNotFound(read)) return read;  // published: .pack is gone
  std::set<uint32_t> journalled;
  for (const auto& [shard, lines] : lines_) journalled.insert(journalled.end(), shard);
  return journalled;
}

absl::StatusOr<std::optional<ShardResult>> FollowedShards::Take(uint32_t shard) {
  std::vector<ShardResult> lines;
  {
    const std::lock_guard lock(mutex_);
    const auto found = lines_.find(shard);
    if (found != lines_.end()) lines = found->second;
  }
  for (ShardResult& line : lines) {
    ASSIGN_OR_RETURN(const bool file, Matches(folder_.PathOf(line.file.name), line.file, look()));
    if (!file) continue;
    ASSIGN_OR_RETURN(const bool index,
                     Matches(folder_.PathOf(line.index.name), line.index, look()));
    if (!index) continue;
    const std::lock_guard lock(mutex_);
    lines_.erase(shard);
    wanted_.erase(shard);
    return std::optional<ShardResult>(std::move(line));
  }
  return std::nullopt;
}

}  // namespace shardpack
