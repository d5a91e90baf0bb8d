#include "cli/commands/packing.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "cli/flags/failure.h"
#include "cli/flags/flags.h"
#include "cli/flags/given_file.h"
#include "converters/listing/key_list.h"
#include "converters/listing/labels.h"
#include "converters/planning/plan.h"
#include "converters/publishing/output_dir.h"
#include "formats/formats.h"
#include "formats/io/file.h"
#include "formats/io/status_macros.h"
#include "jobs/shared_list.h"

namespace shardpack::cli {
namespace {

constexpr uint64_t kMaxClassesBytes = uint64_t{64} << 20;
constexpr uint64_t kMaxKeysBytes = uint64_t{4} << 30;

absl::StatusOr<PackRequest> RequestOf(const CommandLine& line) {
  PackRequest request = line.pack().request;
  request.paths = line.arguments;
  request.given = line.given;
  if (!line.pack().classes_file.empty()) {
    ASSIGN_OR_RETURN(request.source.classes, ReadClasses(line.pack().classes_file));
  }
  if (const std::string& file = line.pack().exclude_keys_file; !file.empty()) {
    ASSIGN_OR_RETURN(const std::string text, ReadGivenFile("--exclude-keys", file, kMaxKeysBytes));
    absl::StatusOr<KeyList> list = ParseKeyList(text, file);
    if (!list.ok()) {
      return absl::Status(list.status().code(),
                          absl::StrCat("--exclude-keys ", std::string(list.status().message())));
    }
    request.exclude_keys = *std::move(list);
  }
  if (!line.pack().lists.empty()) RETURN_IF_ERROR(UseSharedList(line.pack().lists, request));
  return request;
}

absl::Status NotThisPlan(const std::string& path, const absl::Status& why) {
  return absl::Status(
      why.code(),
      absl::StrCat("--plan ", EscapeForTerminal(path), ": ", std::string(why.message()),
                   absl::IsDataLoss(why) ? "; take it from a copy, or make it again with the same "
                                           "pack plan command"
                                         : ""));
}

absl::StatusOr<Prepared> PrepareGivenPlan(const CommandLine& line, IoPool& pool,
                                          PlanObserver& observer) {
  for (const Flag* flag : FlagsOf(Verb::kPlan)) {
    const bool decides = flag->group != "Run" && flag->name != "out";
    // With --plan, --shards names shards.
    if (decides && flag->name != "shards" && line.Given(std::string(flag->name))) {
      return absl::InvalidArgumentError(
          absl::StrCat(AsTyped(line, std::string(flag->name)),
                       " is decided by the plan; give it to pack plan --write"));
    }
  }
  const PackFlags& flags = line.pack();
  ASSIGN_OR_RETURN(PlanFile file, MapGivenPlan(flags.plan_file));
  const std::string root = line.arguments.empty() ? "" : line.arguments[0];
  absl::StatusOr<Plan> plan = Plan::Open(std::move(file), FindFormat);
  // A worker reads what it builds.
  if (plan.ok() && !flags.IsWorker()) plan = plan->Whole();
  if (!plan.ok()) return NotThisPlan(flags.plan_file, plan.status());
  return PreparePlanned(*std::move(plan), root, pool, observer);
}

}  // namespace

void ShownPlanning::Note(const std::string& text) { terminal_.Say(absl::StrCat("note: ", text)); }

void ShownPlanning::Warn(const std::string& text) { terminal_.Warn(text); }

void ShownPlanning::BeginStage(const std::string& stage, std::function<uint64_t()> done,
                               uint64_t total) {
  progress_.Watch([stage, done = std::move(done), total] {
    return ProgressView{
        .stage = stage, .unit = total == 0 ? "files" : "images", .done = done(), .total = total};
  });
}

void ShownPlanning::EndStage() { progress_.End(); }

absl::StatusOr<std::vector<std::string>> ReadClasses(const std::string& file) {
  ASSIGN_OR_RETURN(const std::string text, ReadGivenFile("--classes", file, kMaxClassesBytes));
  return ParseClasses(text, file);
}

absl::StatusOr<Prepared> Prepare(const CommandLine& line, IoPool& pool, Terminal& terminal) {
  ShownPlanning shown(terminal);
  if (!line.pack().plan_file.empty()) return PrepareGivenPlan(line, pool, shown);
  ASSIGN_OR_RETURN(const PackRequest request, RequestOf(line));
  absl::StatusOr<Prepared> prepared = PreparePlan(request, pool, shown);
  return prepared.ok() ? std::move(prepared) : WithCommands(prepared.status(), line);
}

}  // namespace shardpack::cli
