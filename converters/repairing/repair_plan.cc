// Rebuilds from the source, by planning again; also rebuilds the indexes of shards indexed in
// place.
#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "converters/building/build.h"
#include "converters/building/sample_chunk.h"
#include "converters/listing/skip_answers.h"
#include "converters/planning/record_order.h"
#include "converters/publishing/commit.h"
#include "converters/publishing/journal.h"
#include "converters/repairing/repair_work.h"
#include "formats/io/status_macros.h"
#include "images/transform/transform.h"
#include "readers/dataset/foreign_shard.h"

namespace shardpack {
namespace {

constexpr std::string_view kBuildName = "build";  // in the staging area

// The samples of the plan that are in no shard, checked again: those that the builder left out.
absl::StatusOr<std::vector<Skip>> SkipsAgain(const RepairWork& work, const Replanned& again) {
  const Plan& plan = again.plan;
  ASSIGN_OR_RETURN(std::vector<Skip> skips, AllSkips(plan, {}));
  ASSIGN_OR_RETURN(
      ImageTransform transform,
      ImageTransform::Create(plan.options().pixels, {.max_pixels = plan.options().max_pixels}));
  TransformScratch scratch;
  SampleChunk chunk(plan);
  std::string key;
  for (uint32_t n = 0; n < plan.shards().size(); ++n) {
    if (n >= work.manifest.shards.size()) return absl::NotFoundError("the plan has more shards");
    ASSIGN_OR_RETURN(const ShardIndex* index, work.OwnIndex(n));
    if (index == nullptr) return absl::NotFoundError("an index is still missing");
    const PlannedShard& shard = plan.shards()[n];
    if (index->records() == shard.count) continue;
    absl::flat_hash_set<std::string_view> packed;
    for (uint64_t record = 0; record < index->records(); ++record)
      packed.insert(index->key(record));
    for (uint64_t position = shard.first; position < shard.first + shard.count; ++position) {
      key.clear();
      plan.AppendKey(position, key);
      if (packed.contains(key)) continue;
      RETURN_IF_ERROR(work.CheckStop());
      chunk.Reset();
      chunk.Load(*again.source, position, 1);
      RETURN_IF_ERROR(chunk.status());
      chunk.Probe();
      if (!plan.options().pixels.identity()) {
        while (const PreparedSample* sample = chunk.next()) {
          chunk.TransformNext(transform, transform.Decide(sample->fields[0].bytes, sample->image),
                              scratch);
        }
      }
      skips.insert(skips.end(), chunk.skips().begin(), chunk.skips().end());
    }
  }
  std::sort(skips.begin(), skips.end(), [](const Skip& a, const Skip& b) { return a.row < b.row; });
  return skips;
}

class PlanRepair {
 public:
  PlanRepair(RepairWork& work, const Replanned& again, const RepairSource& source)
      : work_(work), again_(again), name_(source.name), searched_(!source.folder.empty()) {
    // With the same plan, they were left out when it was packed, too.
    if (!SamePlan()) unlisted_ = Unread(again.plan.listing().skips);
    for (uint32_t n = 0; n < again.plan.shards().size(); ++n)
      numbers_[again.plan.shards()[n].name] = n;
  }

  absl::Status Run() {
    std::vector<std::pair<uint32_t, uint32_t>> lost;  // index in the plan, index in the manifest
    for (uint32_t n = 0; n < work_.manifest.shards.size(); ++n) {
      if (work_.LostShard(n) == nullptr && work_.LostIndex(n) == nullptr) continue;
      const auto planned = numbers_.find(work_.manifest.shards[n].name);
      if (planned != numbers_.end()) {
        lost.emplace_back(planned->second, n);
      } else {
        Refuse(n, Changed("the source gives a plan without this shard"));
      }
    }
    if (work_.options.dry_run) {
      // Equal plans give equal shards from equal bytes; the result is compared at the end.
      for (const auto& [planned, n] : lost) {
        RETURN_IF_ERROR(Say(n));
      }
    } else {
      for (size_t begin = 0, end = 0; begin < lost.size(); begin = end) {
        for (end = begin + 1; end < lost.size() && lost[end].first == lost[end - 1].first + 1;)
          ++end;
        RETURN_IF_ERROR(BuildRange(std::span(lost).subspan(begin, end - begin)));
      }
    }
    return OtherFiles();
  }

 private:
  void Refuse(uint32_t n, const std::string& why) {
    for (RepairTarget* target : {work_.LostShard(n), work_.LostIndex(n)}) {
      if (target != nullptr) target->why_not.insert(why);
    }
  }

  // Inputs without read permission are not known to have changed; "" if there are none.
  std::string Unread(std::span<const Skip> skips) const {
    std::string text;
    uint64_t count = 0;
    for (const Skip& skip : skips) {
      if (skip.reason != SkipReason::kPermission && skip.reason != SkipReason::kIoError) continue;
      if (count++ == 0) text = SkipText(again_.plan.listing().Path(skip.row), skip);
    }
    if (count == 0) return "";
    return absl::StrCat(count, count == 1 ? " input of " : " inputs of ", EscapeForTerminal(name_),
                        count == 1 ? " cannot be read: " : " cannot be read, the first: ", text);
  }

  std::string Changed(const std::string& text) const {
    return unlisted_.empty() ? text : unlisted_;
  }

  bool SamePlan() const { return again_.plan.digest() == work_.manifest.plan_digest; }

  std::string Unrecorded() const {
    if (SamePlan() || again_.unrecorded.empty()) return "";
    return absl::StrCat(". ", again_.unrecorded);
  }

  // Then a builder packs only the unchanged bytes of files.
  bool TakesFilesAsTheyAre() const {
    const std::vector<ListedField>& fields = again_.plan.listing().fields;
    return again_.plan.options().pixels.identity() &&
           !work_.manifest.options.contains("with-json") &&
           std::all_of(fields.begin(), fields.end(),
                       [](const ListedField& field) { return !field.suffix.empty(); });
  }

  absl::Status Say(uint32_t n) {
    if (!SamePlan()) {
      Refuse(n, Changed(absl::StrCat(
                    name_, " has changed since it was packed, so that it gives another plan",
                    Unrecorded())));
      return absl::OkStatus();
    }
    // Bytes that were searched for there and not found are missing for a builder, too.
    if (searched_ && work_.LostIndex(n) == nullptr && TakesFilesAsTheyAre() &&
        !work_.LostShard(n)->why_not.empty())
      return absl::OkStatus();
    for (RepairTarget* target : {work_.LostShard(n), work_.LostIndex(n)}) {
      RETURN_IF_ERROR(target == nullptr ? absl::OkStatus() : work_.Publish(*target, "", name_));
    }
    return absl::OkStatus();
  }

  // Builds these shards, which are consecutive in the plan, beside the dataset.
  absl::Status BuildRange(std::span<const std::pair<uint32_t, uint32_t>> shards) {
    const std::string scratch = work_.folder->StagePath(kBuildName);
    absl::Status cleared = work_.folder->Discard(kBuildName);  // of a range that could not be built
    if (!cleared.ok()) return cleared;
    BuildProgress progress;
    BuildOptions options;
    options.out = scratch;
    options.jobs = work_.options.jobs;
    options.memory_bytes = work_.options.memory_bytes;
    options.output.fsync = false;  // done on publishing
    options.output.worker =
        WorkerOptions{.ranges = {{shards.front().first, shards.back().first + 1}}, .alone = true};
    const absl::StatusOr<RunReport> report =
        Build(again_.plan, *again_.source, options, work_.pool, progress, work_.stop);
    if (!report.ok() && !IsOfOneFile(report.status())) return report.status();
    if (!report.ok()) {
      for (const auto& [planned, n] : shards) Refuse(n, std::string(report.status().message()));
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(const std::vector<ShardResult> results, ReadJournals(scratch + "/.pack"));
    for (const ShardResult& result : results) {
      const auto built = std::find_if(shards.begin(), shards.end(), [&](const auto& shard) {
        return shard.first == result.shard;
      });
      if (built == shards.end()) continue;
      RETURN_IF_ERROR(PublishResult(built->second, result));
    }
    return work_.folder->Discard(kBuildName);
  }

  absl::Status PublishResult(uint32_t n, const ShardResult& result) {
    if (result.file.xxh3_128 != work_.manifest.shards[n].xxh3_128) {
      const std::string lacking =
          result.records < work_.manifest.shards[n].records
              ? absl::StrCat(": ", work_.manifest.shards[n].records - result.records,
                             " of its images are gone or bad")
              : "";
      const std::string unread = Unread(result.skips);
      Refuse(n, !unread.empty() ? unread
                                : Changed(absl::StrCat(name_, " has changed since it was packed",
                                                       lacking, Unrecorded())));
      return absl::OkStatus();
    }
    RepairTarget* const shard = work_.LostShard(n);
    RepairTarget* const index = work_.LostIndex(n);
    absl::Status status;
    const std::string built = absl::StrCat(std::string(kBuildName), "/");
    if (shard != nullptr) status = work_.Publish(*shard, built + result.file.name, name_);
    if (status.ok() && index != nullptr)
      status = work_.Publish(*index, built + result.index.name, name_);
    return status;
  }

  absl::Status OtherFiles() {
    RepairTarget* skipped = nullptr;
    RepairTarget* order = nullptr;
    for (RepairTarget* target : work_.Lost()) {
      if (target->file.name == kSkippedName) skipped = target;
      if (target->file.name == kRecordOrderName) order = target;
    }
    if (skipped == nullptr && order == nullptr) return absl::OkStatus();
    const absl::StatusOr<std::vector<Skip>> skips = SkipsAgain(work_, again_);
    if (!skips.ok() && !IsOfOneFile(skips.status())) return skips.status();
    absl::Status status;
    for (RepairTarget* target : {skipped, order}) {
      if (target == nullptr || !status.ok()) continue;
      if (!skips.ok() && work_.options.dry_run && SamePlan()) {
        status = work_.Publish(*target, "", name_);
      } else if (!skips.ok()) {
        target->why_not.insert(std::string(skips.status().message()));
      } else {
        status = work_.PublishBytes(*target,
                                    target == skipped ? SkippedLines(again_.plan, *skips)
                                                      : RecordOrderBytes(again_.plan, *skips),
                                    name_);
      }
    }
    return status;
  }

  RepairWork& work_;
  const Replanned& again_;
  const std::string& name_;
  const bool searched_;   // for the bytes of the shards that have an index
  std::string unlisted_;  // parts of the source that could not be listed; "" = none
  std::map<std::string_view, uint32_t> numbers_;
};

// Whether a plan can help: it gives shards, indexes and the files derived from its rows.
bool PlanHelps(RepairWork& work) {
  for (const RepairTarget* target : work.Lost()) {
    if (target->kind != RepairTarget::Kind::kOther || target->file.name == kSkippedName ||
        target->file.name == kRecordOrderName) {
      return true;
    }
  }
  return false;
}

}  // namespace

absl::Status RebuildByPlan(RepairWork& work) {
  if (work.manifest.indexed_in_place()) return absl::OkStatus();
  absl::Status failed;
  for (const RepairSource& source : work.sources) {
    if (!source.replan || !PlanHelps(work)) continue;
    const absl::StatusOr<Replanned> again = source.replan();
    if (EndsTheRun(again.status())) return again.status();
    if (!again.ok()) {
      for (RepairTarget* target : work.Lost())
        target->why_not.insert(std::string(again.status().message()));
      continue;
    }
    const absl::Status run = PlanRepair(work, *again, source).Run();
    if (EndsTheRun(run)) return run;
    if (run.ok()) continue;
    failed.Update(run);  // may concern this source only
    for (RepairTarget* target : work.Lost()) target->why_not.insert(std::string(run.message()));
  }
  return PlanHelps(work) ? failed : absl::OkStatus();
}

absl::Status RebuildIndexesOfShardsInPlace(RepairWork& work) {
  if (!work.manifest.indexed_in_place()) return absl::OkStatus();
  for (uint32_t n = 0; n < work.manifest.shards.size(); ++n) {
    RepairTarget* const target = work.LostIndex(n);
    if (target == nullptr) continue;
    RETURN_IF_ERROR(work.CheckStop());
    const Format* const formats[] = {&work.format};
    const absl::StatusOr<ForeignShard> scanned = ScanForeignShard(
        work.own.DataPath(n), formats, {.label_base = work.manifest.label_base, .probe = true});
    if (EndsTheRun(scanned.status())) return scanned.status();
    if (!scanned.ok()) {
      target->why_not.insert(std::string(scanned.status().message()));
      continue;
    }
    RETURN_IF_ERROR(work.PublishBytes(*target, AsText(scanned->index.bytes()), "its shard"));
  }
  return absl::OkStatus();
}

}  // namespace shardpack
