#include "converters/building/build.h"

#include <algorithm>
#include <exception>
#include <functional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "converters/building/build_exception.h"
#include "converters/building/compare_source.h"
#include "converters/building/shard_scheduler.h"
#include "converters/publishing/commit.h"
#include "converters/publishing/published.h"
#include "converters/publishing/skip_budget.h"
#include "formats/io/escape.h"
#include "formats/io/resources.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

// Listing, plan and indexes need room, too.
constexpr double kShareForSamples = 0.5;

RunReport AlreadyComplete(Manifest manifest) {
  RunReport report;
  report.already_complete = true;
  report.kept_shards = manifest.shards.size();
  report.manifest = std::move(manifest);
  return report;
}

// OUT holds the whole dataset: nothing is built.
absl::StatusOr<RunReport> ReportComplete(OutputDir& out, const Plan& plan,
                                         const SampleSource& source, const BuildOptions& options,
                                         IoPool& pool, BuildProgress& progress,
                                         const std::atomic<int>& stop) {
  ASSIGN_OR_RETURN(Manifest manifest, Manifest::Read(out.path()));
  RETURN_IF_ERROR(CheckIdentity(manifest, options.expect));
  if (options.output.compare) {
    RETURN_IF_ERROR(CompareWithSource(out.path(), manifest, plan, source, pool, progress, stop));
    ASSIGN_OR_RETURN(manifest, out.TakeSourceTimes(plan));
  }
  RunReport report = AlreadyComplete(std::move(manifest));
  report.compared = options.output.compare;
  report.notice = out.notice();
  return report;
}

absl::Status BuildShards(std::vector<uint32_t> shards, OutputDir& out, const Plan& plan,
                         const SampleSource& source, const BuildOptions& options, IoPool& pool,
                         BuildProgress& progress, const std::atomic<int>& stop,
                         const std::function<void(ShardResult)>& done) {
  const TransformOptions& pixels = plan.options().pixels;
  ASSIGN_OR_RETURN(const ImageTransform transform,
                   ImageTransform::Create(pixels, {.max_pixels = plan.options().max_pixels}));
  if (shards.empty()) return absl::OkStatus();
  const uint64_t memory =
      options.memory_bytes > 0 ? options.memory_bytes : AvailableMemoryBytes() / 4;
  const SchedulerOptions limits{
      .jobs = options.jobs > 0 ? options.jobs : AvailableCores(),
      .memory_bytes = static_cast<uint64_t>(static_cast<double>(memory) * kShareForSamples)};
  const bool looks_at_pixels = !pixels.identity() || plan.options().compute_stats;
  ShardScheduler scheduler(plan, source, out, limits, looks_at_pixels ? &transform : nullptr, pool,
                           progress);
  return scheduler.Run(std::move(shards), stop, done);
}

absl::StatusOr<RunReport> BuildOrThrow(const Plan& plan, const SampleSource& source,
                                       const BuildOptions& options, IoPool& pool,
                                       BuildProgress& progress, const std::atomic<int>& stop) {
  OutputOptions output = options.output;
  output.stop = &stop;
  ASSIGN_OR_RETURN(OutputDir out, OutputDir::Open(options.out, plan, output, pool));
  progress.replacing = out.replaces();
  if (out.complete()) return ReportComplete(out, plan, source, options, pool, progress, stop);
  std::vector<ShardResult> results = out.finished();
  RunReport report;
  report.kept_shards = results.size();
  std::set<uint32_t> finished;
  for (const ShardResult& result : results) {
    finished.insert(result.shard);
    progress.done_rows += plan.shards()[result.shard].count;
    progress.skipped_rows += result.skips.size();
  }
  std::vector<uint32_t> to_build;
  for (const uint32_t n : out.wanted()) {
    progress.total_rows += plan.shards()[n].count;
    if (finished.count(n) == 0) to_build.push_back(n);
  }
  const std::string& given = options.output.planned_source;
  if (!given.empty()) {
    RETURN_IF_ERROR(CheckSourceFits(plan, given, to_build));
    // Not what many others have built: each worker would look at every file.
    const bool answers = !options.output.shares() || options.output.worker->named;
    const std::vector<uint32_t> built(finished.begin(), finished.end());
    if (answers) RETURN_IF_ERROR(CheckBuiltFrom(out.path(), plan, given, built, pool));
  }
  progress.total_shards = out.wanted().size();
  progress.kept_shards = report.kept_shards;
  progress.done_shards = report.kept_shards;

  std::vector<ShardResult> mine;  // built by this run
  absl::Status built = BuildShards(std::move(to_build), out, plan, source, options, pool, progress,
                                   stop, [&](ShardResult result) {
                                     const bool by_other =
                                         !result.journal.empty();  // read from there
                                     results.push_back(std::move(result));
                                     ++(by_other ? report.others_shards : report.built_shards);
                                     if (!by_other) mine.push_back(results.back());
                                   });
  // Also where nothing was left to build: the plan that was there may be lost.
  if (built.ok() || absl::IsAborted(built)) {
    if (absl::Status planned = out.AwaitPlan(); !planned.ok()) built = std::move(planned);
  }
  if (!built.ok() && options.output.worker && out.PublishedByOther(plan)) {
    // Overtaken: what this worker was building is published, and the staging area is gone.
    absl::StatusOr<Manifest> manifest = Manifest::Read(out.path());
    if (manifest.ok()) return AlreadyComplete(*std::move(manifest));
  }
  // Also at the end: a worker knows shards that were finished in a folder that is gone.
  if ((!built.ok() || options.output.worker) && !out.IsThere() && !out.PublishedByOther(plan)) {
    progress.removed = true;
    return absl::UnavailableError(
        absl::StrCat(EscapeForTerminal(out.path()),
                     " was removed or replaced while this run built in it; what it has built there "
                     "is gone",
                     built.ok() ? "" : absl::StrCat(" (", std::string(built.message()), ")")));
  }
  const bool held = absl::IsAborted(built) && options.output.worker;
  if (held) report.held = built;
  if (!built.ok() && !held) return built;
  // What others have left out they name themselves: they may have had another source.
  if (options.output.worker) results = std::move(mine);
  std::sort(results.begin(), results.end(),
            [](const ShardResult& a, const ShardResult& b) { return a.shard < b.shard; });
  ASSIGN_OR_RETURN(std::vector<Skip> skips, AllSkips(plan, results));
  report.skips = SkipsOfToday(plan, given.empty() ? plan.listing().root : given, std::move(skips));
  if (options.output.worker) return report;  // `pack commit` publishes
  ASSIGN_OR_RETURN(report.manifest,
                   Commit(plan, results, out,
                          {options.max_skip, options.tool, options.expect, options.plan_is_given}));
  report.notice = out.notice();
  return report;
}

}  // namespace

absl::StatusOr<RunReport> Build(const Plan& plan, const SampleSource& source,
                                const BuildOptions& options, IoPool& pool, BuildProgress& progress,
                                const std::atomic<int>& stop) {
  try {
    return BuildOrThrow(plan, source, options, pool, progress, stop);
  } catch (...) {
    return BuildExceptionStatus(std::current_exception());
  }
}

}  // namespace shardpack
