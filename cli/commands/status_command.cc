#include <errno.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/commands/commands.h"
#include "cli/flags/failure.h"
#include "cli/flags/given_file.h"
#include "cli/terminal/seconds_since.h"
#include "cli/terminal/stop_signal.h"
#include "cli/terminal/units.h"
#include "converters/publishing/output_dir.h"
#include "converters/publishing/pack_names.h"
#include "converters/publishing/published.h"
#include "converters/publishing/shard_results.h"
#include "converters/publishing/workers_state.h"
#include "formats/core/manifest.h"
#include "formats/formats.h"
#include "formats/io/escape.h"
#include "formats/io/exists.h"
#include "formats/io/file.h"
#include "formats/io/list_folder.h"
#include "formats/io/shell_quoted.h"
#include "formats/io/status_macros.h"
#include "jobs/shared_list.h"

namespace shardpack::cli {
namespace {

using absl::StrAppend;
using absl::StrCat;

constexpr double kStaleSeconds = 60;
// Between two looks: many times as long as one took, which is most for large plans.
constexpr double kLeastPollSeconds = 0.5, kMostPollSeconds = 10, kPollShare = 20;
// A shard that takes so many times as long as others is named.
constexpr double kSlow = 3;
constexpr size_t kNamed = 5;
constexpr int kIoDepth = 32;

struct StatusReport {
  bool published = false, begun = false;
  WorkersState state;

  bool done() const { return published || (begun && state.done.size() == state.shards); }
  // Nobody will finish them unasked.
  bool hopeless() const {
    const auto left_alone =
        std::count_if(state.failed.begin(), state.failed.end(),
                      [](const auto& each) { return each.second.is_left_alone(); });
    return left_alone > 0 && state.done.size() + static_cast<size_t>(left_alone) == state.shards;
  }
};

// What is in OUT, as it goes on. With --plan, it must be of that plan.
class Watcher {
 public:
  Watcher(std::string out, std::string plan_file)
      : out_(std::move(out)), plan_file_(std::move(plan_file)), pool_(kIoDepth) {}

  // `first` is false for later looks, which know shards that were done.
  absl::StatusOr<StatusReport> Look(bool may_be_missing, bool first) {
    if (!plan_file_.empty() && !given_) RETURN_IF_ERROR(ReadGiven());
    StatusReport report;
    const absl::StatusOr<Manifest> manifest = Manifest::Read(out_);
    if (!manifest.ok() && !absl::IsNotFound(manifest.status())) return manifest.status();
    if (manifest.ok()) {
      if (given_ && manifest->plan_digest != *given_)
        return Differs("is a dataset of", DifferencesFrom(out_, *manifest, *plan_));
      RETURN_IF_ERROR(CheckPublishedFiles(out_, *manifest));
      report.published = true;
      report.state.shards = manifest->shards.size();
      for (uint32_t n = 0; n < report.state.shards; ++n) report.state.done.insert(n);
      return report;
    }
    RETURN_IF_ERROR(FindPlan(may_be_missing));
    if (!plan_) return report;
    report.begun = true;
    ASSIGN_OR_RETURN(report.state, ReadWorkersState(out_, *plan_, kStaleSeconds, pool_,
                                                    first ? std::set<uint32_t>() : done_));
    done_ = report.state.done;
    return report;
  }

  // Whether there was a build in OUT at any look.
  bool sees_build() const { return begun_; }

 private:
  absl::Status Differs(const std::string& what, const std::vector<std::string>& lines) const {
    return absl::FailedPreconditionError(
        StrCat(EscapeForTerminal(out_), " ", what, " another plan than ",
               EscapeForTerminal(plan_file_), ":\n  ", absl::StrJoin(lines, "\n  ")));
  }

  absl::Status ReadGiven() {
    ASSIGN_OR_RETURN(PlanFile file, MapGivenPlan(plan_file_));
    ASSIGN_OR_RETURN(Plan plan, Plan::Open(std::move(file), FindFormat));
    plan_ = std::make_unique<Plan>(std::move(plan));
    given_ = plan_->digest();
    return absl::OkStatus();
  }

  // Takes the plan of the folder as soon as there is one.
  absl::Status FindPlan(bool may_be_missing) {
    if (begun_) return absl::OkStatus();
    if (given_) {
      const absl::StatusOr<bool> begun = Exists(StrCat(out_, "/", std::string(kPlanName)));
      if (!begun.ok() || !*begun) return begun.status();
    }
    absl::StatusOr<Plan> plan = OutputDir::OpenPlan(out_, FindFormat);
    if (absl::IsInvalidArgument(plan.status()) && may_be_missing) {
      const absl::StatusOr<bool> planned = Exists(StrCat(out_, "/", std::string(kPlanName)));
      if (planned.ok() && !*planned) return absl::OkStatus();
    }
    if (!plan.ok()) return plan.status();
    if (given_ && plan->digest() != *given_)
      return Differs("is built by", Plan::Differences(*plan, *plan_));
    plan_ = std::make_unique<Plan>(*std::move(plan));
    begun_ = true;
    return absl::OkStatus();
  }

  const std::string out_, plan_file_;
  IoPool pool_;
  std::unique_ptr<Plan> plan_;
  std::optional<Digest> given_;  // of --plan
  bool begun_ = false;           // plan_ is the folder's
  std::set<uint32_t> done_;
};

// The part of an owner's name that a person knows it by: host and process.
std::string ShortName(const std::string& owner) {
  std::string name = owner.substr(0, owner.rfind('-'));
  const size_t process = name.rfind('-');
  const size_t boot = process == std::string::npos ? process : name.rfind('-', process - 1);
  if (boot != std::string::npos) name.erase(boot, process - boot);
  return name;
}

std::string Eta(const WorkersState& state) {
  const double rate = state.ShardsPerSecond();
  if (rate <= 0 || state.done.size() == state.shards) return "";
  const double left = static_cast<double>(state.shards - state.done.size()) / rate;
  return absl::StrFormat("   %s shards/s, ETA %s", FormatNumber(rate), FormatClock(left));
}

void AppendStale(const WorkersState& state, std::string& out) {
  size_t named = 0;
  for (const auto& stale : state.stale) {  // clang 14 captures no structured binding
    if (named++ == kNamed) break;
    const auto& name = stale.second;
    const auto owner = std::find_if(state.owners.begin(), state.owners.end(),
                                    [&](const OwnerState& each) { return each.name == name; });
    const bool gone = owner == state.owners.end() || owner->gone;
    StrAppend(&out, "stale    ", stale.first, "  ", ShortName(name), ", ",
              gone ? std::string("which has ended")
                   : StrCat("no beat for ", FormatDuration(owner->behind_seconds)),
              "\n");
  }
  if (state.stale.size() > kNamed)
    StrAppend(&out, "stale    ", state.stale.size() - kNamed, " more\n");
}

void AppendSlow(const WorkersState& state, std::string& out) {
  const double usual = state.SecondsPerShard();
  if (usual <= 0) return;
  size_t named = 0;
  for (const OwnerState& owner : state.owners) {
    for (const BeatFacts::Building& each : owner.facts.building) {
      if (owner.gone || each.seconds < kSlow * usual || named++ >= kNamed) continue;
      StrAppend(&out, "slow     ", each.shard, "  ", ShortName(owner.name), ", ",
                FormatNumber(each.seconds / usual), " x as long as others\n");
    }
  }
}

std::string Text(const StatusReport& report, const std::string& out) {
  const WorkersState& state = report.state;
  if (report.published) {
    return StrCat("shards   ", FormatCount(state.shards), " of ", FormatCount(state.shards),
                  " done; ", EscapeForTerminal(out), " is published\n");
  }
  if (!report.begun) return StrCat(EscapeForTerminal(out), " holds no plan yet\n");
  std::string text =
      StrCat("shards   ", FormatCount(state.done.size()), " of ", FormatCount(state.shards),
             " done, ", FormatCount(state.held.size() + state.stale.size()), " held, ",
             FormatCount(state.free()), " free", Eta(state), "\n");
  AppendStale(state, text);
  AppendSlow(state, text);
  size_t named = 0;
  for (const auto& [shard, failure] : state.failed) {
    if (named++ < kNamed) StrAppend(&text, "failed   ", shard, "  ", failure.Text(), "\n");
  }
  if (report.done())
    StrAppend(&text, "next     ", TypedProgram(), " commit ", ShellQuoted(out), "\n");
  return text;
}

nlohmann::json Pairs(const std::map<uint32_t, std::string>& shards) {
  nlohmann::json json = nlohmann::json::array();
  for (const auto& [shard, text] : shards)
    json.push_back({{"shard", shard}, {"owner", PercentEscape(text)}});
  return json;
}

std::string Json(const StatusReport& report) {
  const WorkersState& state = report.state;
  nlohmann::json owners = nlohmann::json::array(), failed = nlohmann::json::array();
  for (const OwnerState& owner : state.owners) {
    owners.push_back({{"name", owner.name},
                      {"beat", owner.facts.beat},
                      {"seconds", owner.facts.seconds},
                      {"shards", owner.facts.shards},
                      {"rows", owner.facts.rows},
                      {"behind_seconds", owner.behind_seconds},
                      {"gone", owner.gone}});
  }
  for (const auto& [shard, failure] : state.failed) {
    failed.push_back(
        {{"shard", shard}, {"workers", failure.workers}, {"why", PercentEscape(failure.why)}});
  }
  const double rate = state.ShardsPerSecond();
  const nlohmann::json json = {
      {"schema", "shardpack.status/1"},
      {"published", report.published},
      {"shards", state.shards},
      {"done", state.done.size()},
      {"unfinished", report.published ? std::set<uint32_t>() : state.Unfinished()},
      {"held", Pairs(state.held)},
      {"stale", Pairs(state.stale)},
      {"failed", failed},
      {"owners", owners},
      {"shards_per_second", rate},
      {"eta_seconds",
       rate > 0 ? nlohmann::json(static_cast<double>(state.shards - state.done.size()) / rate)
                : nlohmann::json()}};
  return json.dump() + "\n";
}

// Before --wait waits for a build to begin in OUT: InvalidArgument if none ever can; else what is
// waited for.
absl::StatusOr<std::string> AwaitedBuild(const std::string& out) {
  const std::string shown = EscapeForTerminal(out);
  struct stat facts;
  if (::stat(out.c_str(), &facts) != 0) {
    const absl::Status failed = IoStatus("look at", out, errno);
    if (errno == ENOENT) return StrCat("waiting for ", shown, ", which does not exist yet");
    return IsAboutThePath(failed) ? absl::InvalidArgumentError(std::string(failed.message()))
                                  : failed;
  }
  if (!S_ISDIR(facts.st_mode)) {
    return absl::InvalidArgumentError(
        StrCat(shown, " is not a folder; name the OUT of the workers"));
  }
  ASSIGN_OR_RETURN(const bool list, HoldsList(out));
  if (list) {
    return absl::InvalidArgumentError(
        StrCat(shown, " holds a list of pack list, and no build; name the OUT of the workers"));
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListFolder(out));
  // Workers make `.pack` first; the commit, which removes it last, has written a manifest by then.
  const bool may_be =
      names.empty() || std::any_of(names.begin(), names.end(), [](const auto& name) {
        return name == kPackFolder || name == kManifestName;
      });
  if (may_be) return StrCat("waiting for ", shown, ", where no worker has begun yet");
  return absl::InvalidArgumentError(
      StrCat(shown, " holds no build, and none can begin there: it is not empty (first entry: ",
             EscapeForTerminal(names.front()), "); name the OUT of the workers"));
}

}  // namespace

ExitCode RunStatus(const CommandLine& line, Terminal& terminal) {
  const std::string& out = line.arguments[0];
  const bool waits = line.status().wait;
  Watcher watcher(out, line.status().plan_file);
  std::string awaited;
  for (bool first = true;; first = false) {
    const auto begin = std::chrono::steady_clock::now();
    absl::StatusOr<StatusReport> report = watcher.Look(/*may_be_missing=*/waits, first);
    // What was done at earlier looks may have been removed since.
    if (!first && report.ok() && report->done())
      report = watcher.Look(/*may_be_missing=*/waits, /*first=*/true);
    if (!report.ok()) return Fail(report.status(), terminal);
    if (waits && !watcher.sees_build() && !report->published) {
      absl::StatusOr<std::string> now = AwaitedBuild(out);
      if (!now.ok()) return Fail(now.status(), terminal);
      if (*now != awaited) terminal.Say(*now);
      awaited = *std::move(now);
    }
    if (waits && !report->done() && !report->hopeless()) {
      // A signal ends the process at once.
      const double seconds =
          std::clamp(kPollShare * SecondsSince(begin), kLeastPollSeconds, kMostPollSeconds);
      std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
      continue;
    }
    Results results;
    if (line.json || !line.quiet) results.Write(line.json ? Json(*report) : Text(*report, out));
    return FinishResults(results, report->done() ? ExitCode::kDone : ExitCode::kHeld, terminal);
  }
}

}  // namespace shardpack::cli
