#include "converters/publishing/shard_claims.h"

#include <errno.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "converters/publishing/leases.h"
#include "converters/publishing/pack_names.h"
#include "formats/io/file.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

constexpr std::string_view kStagedLease = "lease";
// More generations than any number of dead holders leaves.
constexpr uint32_t kMaxGenerations = 1'000'000;
// Looks at a lease that exists and cannot be opened.
constexpr int kMaxUnopened = 10;

}  // namespace

absl::StatusOr<std::unique_ptr<ShardClaims>> ShardClaims::Create(const std::string& dataset,
                                                                 const RunStage& stage,
                                                                 const WorkerOptions& options,
                                                                 size_t shards) {
  ASSIGN_OR_RETURN(OwnedFolder folder, OwnedFolder::Open(dataset));
  // All at once: a late worker must not create a folder again that the commit has removed.
  for (const std::string_view name : {kOwnersFolder, kLeaseFolder, kFailedFolder}) {
    RETURN_IF_ERROR(MakeDirectory(folder.PathOf(name)));
  }
  std::string last;
  for (size_t n = 0; n < shards; ++n) {
    const std::string name = LeaseFolderName(static_cast<uint32_t>(n));
    if (name == last) continue;
    RETURN_IF_ERROR(MakeDirectory(folder.PathOf(name)));
    last = name;
  }
  auto claims = std::unique_ptr<ShardClaims>(new ShardClaims(std::move(folder), stage, options));
  RETURN_IF_ERROR(claims->WriteName());
  ASSIGN_OR_RETURN(claims->beats_, Beats::Start(dataset, stage, options.stale_seconds,
                                                [each = claims.get()] { return each->Facts(); }));
  return claims;
}

// The file that leases are links to: none of them is ever seen half written.
absl::Status ShardClaims::WriteName() const {
  const std::string name = stage_.NameOf(kStagedLease);
  RETURN_IF_ERROR(folder_.RemoveFile(name));
  ASSIGN_OR_RETURN(File file, File::CreateExclusive(folder_.PathOf(name)));
  RETURN_IF_ERROR(file.Write(std::array{AsBytes(stage_.owner())}));
  return file.Close();
}

absl::StatusOr<bool> ShardClaims::Create(uint32_t shard, uint32_t generation) const {
  const std::string path = folder_.PathOf(LeaseName(shard, generation)),
                    name = stage_.PathOf(kStagedLease);
  if (::link(name.c_str(), path.c_str()) == 0) return true;
  if (errno == EMLINK) {  // that file has as many names as it may have
    RETURN_IF_ERROR(WriteName());
    if (::link(name.c_str(), path.c_str()) == 0) return true;
  }
  if (errno != EEXIST) return IoStatus("link", path, errno);
  return false;
}

absl::StatusOr<std::optional<std::string>> ShardClaims::ReadOwner(uint32_t shard,
                                                                  uint32_t generation) {
  absl::StatusOr<std::string> owner = folder_.Read(LeaseName(shard, generation), kMaxOwnerBytes);
  const bool late = absl::IsNotFound(owner.status()) || absl::IsUnavailable(owner.status());
  if (late && ++unopened_[shard] < kMaxUnopened) return std::nullopt;
  if (!owner.ok()) return owner.status();
  unopened_.erase(shard);
  if (IsRunName(*owner)) return std::optional(*std::move(owner));
  return std::optional(absl::StrCat("unknown-", shard, ".", generation));
}

absl::StatusOr<bool> ShardClaims::Claim(uint32_t shard, bool again) {
  Known& known = known_[shard];
  while (known.generation < kMaxGenerations) {
    const bool free = known.generation == 0;
    if (!free && known.owner == stage_.owner()) {
      SetHeld(shard);
      return true;
    }
    const bool takes_over =
        !free && (options_.take_over || again) && taken_over_.insert(shard).second;
    if (!free && !takes_over && !beats_->IsDead(known.owner)) return false;
    const uint32_t next = known.generation + 1;
    ASSIGN_OR_RETURN(const bool created, Create(shard, next));
    // The reply to a creation may be lost; then the file tells whose it is.
    std::optional<std::string> owner = stage_.owner();
    if (!created) {
      ASSIGN_OR_RETURN(owner, ReadOwner(shard, next));
    }
    // Not the holder that was to be replaced, but one that has come before this worker.
    if (takes_over && !created) taken_over_.erase(shard);
    if (!owner) return false;
    known = {next, *std::move(owner)};
  }
  return absl::InternalError(absl::StrCat("shard ", shard, " has too many leases"));
}

void ShardClaims::SetHeld(uint32_t shard) {
  const std::lock_guard lock(mutex_);
  building_.try_emplace(shard, Clock::now());
}

void ShardClaims::SetFinished(uint32_t shard, uint64_t rows) {
  const std::lock_guard lock(mutex_);
  const auto found = building_.find(shard);
  if (found == building_.end()) return;
  ++shards_;
  rows_ += rows;
  shard_seconds_ += std::chrono::duration<double>(Clock::now() - found->second).count();
  building_.erase(found);
}

BeatFacts ShardClaims::Facts() const {
  const std::lock_guard lock(mutex_);
  BeatFacts facts{.shards = shards_, .rows = rows_, .shard_seconds = shard_seconds_};
  for (const auto& [shard, since] : building_) {
    facts.building.push_back({shard, std::chrono::duration<double>(Clock::now() - since).count()});
  }
  return facts;
}

absl::Status ShardClaims::NoteFailure(uint32_t shard, const absl::Status& why) {
  const std::string name = FailureName(shard, stage_.owner());
  RETURN_IF_ERROR(folder_.RemoveFile(name));
  ASSIGN_OR_RETURN(File file, File::CreateExclusive(folder_.PathOf(name)));
  const std::string text(why.message());
  RETURN_IF_ERROR(file.Write(std::array{AsBytes(text)}));
  return file.Close();
}

absl::StatusOr<std::map<uint32_t, ShardFailure>> ShardClaims::Failures() const {
  if (options_.named) return std::map<uint32_t, ShardFailure>();
  ASSIGN_OR_RETURN(auto failures, ReadShardFailures(folder_));
  std::erase_if(failures, [](const auto& each) { return !each.second.is_left_alone(); });
  return failures;
}

}  // namespace shardpack
