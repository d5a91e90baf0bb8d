#include "cli/commands/worker_part.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "cli/terminal/units.h"
#include "formats/io/status_macros.h"

namespace shardpack::cli {
namespace {

using absl::InvalidArgumentError;
using absl::StrCat;

// The variables of one scheduler.
struct Scheduler {
  const char* index;
  const char* first;  // nullptr: `base`
  const char* last;   // nullptr: not told
  const char* count;  // nullptr: not told
  const char* step;   // nullptr: not told
  uint64_t base;      // of the first index, where no variable tells it
};

// Kubernetes and PBS do not tell the number of tasks.
constexpr char kWorkers[] = "SHARDPACK_WORKERS";
constexpr Scheduler kSchedulers[] = {
    {"SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_MAX",
     "SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_STEP", 0},
    {"JOB_COMPLETION_INDEX", nullptr, nullptr, kWorkers, nullptr, 0},
    {"PBS_ARRAY_INDEX", nullptr, nullptr, kWorkers, nullptr, 1},
    {"SGE_TASK_ID", "SGE_TASK_FIRST", "SGE_TASK_LAST", nullptr, "SGE_TASK_STEPSIZE", 1},
    {"LSB_JOBINDEX", nullptr, "LSB_JOBINDEX_END", nullptr, "LSB_JOBINDEX_STEP", 1},
    {"OMPI_COMM_WORLD_RANK", nullptr, nullptr, "OMPI_COMM_WORLD_SIZE", nullptr, 0},
};

std::optional<std::string> ValueOf(const Environment& environment, const char* name) {
  const char* text = name == nullptr ? nullptr : environment(name);
  if (text == nullptr || *text == '\0') return std::nullopt;
  return std::string(text);
}

// Grid Engine says "undefined", and LSF 0, outside of an array.
bool IsTask(const Scheduler& scheduler, const std::string& index) {
  return index != "undefined" &&
         !(index == "0" && std::string_view(scheduler.index) == "LSB_JOBINDEX");
}

absl::StatusOr<std::optional<uint64_t>> Number(const Environment& environment, const char* name) {
  const std::optional<std::string> text = ValueOf(environment, name);
  if (!text) return std::nullopt;
  const absl::StatusOr<uint64_t> number = ParseCount(*text);
  if (number.ok()) return *number;
  return InvalidArgumentError(
      StrCat("--worker auto: the variable ", name, " is not a number: ", *text));
}

absl::StatusOr<TaskPart> PartOf(const Scheduler& scheduler, const Environment& environment) {
  ASSIGN_OR_RETURN(const std::optional<uint64_t> index, Number(environment, scheduler.index));
  ASSIGN_OR_RETURN(const std::optional<uint64_t> first, Number(environment, scheduler.first));
  ASSIGN_OR_RETURN(const std::optional<uint64_t> last, Number(environment, scheduler.last));
  ASSIGN_OR_RETURN(const std::optional<uint64_t> count, Number(environment, scheduler.count));
  ASSIGN_OR_RETURN(const std::optional<uint64_t> step, Number(environment, scheduler.step));
  const uint64_t begin = first.value_or(scheduler.base);
  if (!count && !last) {
    return InvalidArgumentError(StrCat(
        "--worker auto: ", scheduler.index, " is set, but not how many tasks there are; set ",
        scheduler.count != nullptr ? scheduler.count : scheduler.last,
        ", or use --join in place of --worker auto"));
  }
  const uint64_t parts = count ? *count : *last + 1 - std::min(begin, *last + 1);
  const bool dense =
      step.value_or(1) == 1 && (!last || (*last >= begin && *last - begin + 1 == parts));
  if (!dense || *index < begin || *index - begin >= parts) {
    return InvalidArgumentError(StrCat(
        "--worker auto: the indices of this array are not ", begin, " to ", begin + parts - 1, " (",
        scheduler.index, " is ", *index,
        "), so that parts would be left out; use --join in place of --worker auto: each task "
        "then builds what is left"));
  }
  return TaskPart{*index - begin + 1, parts};
}

// "9-7", whose range is at fault, not its form.
bool IsTwoNumbers(std::string_view part) {
  const size_t dash = part.find('-');
  return dash != std::string_view::npos && ParseCount(part.substr(0, dash)).ok() &&
         ParseCount(part.substr(dash + 1)).ok();
}

}  // namespace

absl::StatusOr<TaskPart> PartOfTask(const Environment& environment) {
  std::string names;
  for (const Scheduler& scheduler : kSchedulers) {
    const std::optional<std::string> index = ValueOf(environment, scheduler.index);
    if (index && IsTask(scheduler, *index)) return PartOf(scheduler, environment);
    absl::StrAppend(&names, names.empty() ? "" : ", ", scheduler.index);
  }
  return InvalidArgumentError(
      StrCat("--worker auto: this is not a task of a known job array (none of ", names,
             " is set); give --worker I/N, or use --join in its place"));
}

absl::StatusOr<std::vector<std::pair<size_t, size_t>>> ParseShardList(const std::string& text) {
  std::vector<std::pair<size_t, size_t>> ranges;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view part = std::string_view(text).substr(begin, end - begin);
    const auto range = ParseShardRange(part);
    if (!range.ok()) {
      return InvalidArgumentError(
          StrCat("--shards ", text, ": ",
                 IsTwoNumbers(part) ? std::string(range.status().message())
                                    : "expected numbers and ranges of shards, as in 3,7-9"));
    }
    ranges.push_back(*range);
    begin = end + 1;
  }
  std::sort(ranges.begin(), ranges.end());
  std::vector<std::pair<size_t, size_t>> merged;
  for (const auto& [first, last] : ranges) {
    if (!merged.empty() && first <= merged.back().second) {
      merged.back().second = std::max(merged.back().second, last);
    } else {
      merged.emplace_back(first, last);
    }
  }
  return merged;
}

absl::StatusOr<WorkerOptions> WorkerOf(const WorkerFlags& flags, size_t shards,
                                       const Environment& environment) {
  WorkerOptions worker;
  worker.join = flags.join;
  worker.wait = flags.wait;
  worker.take_over = flags.take_over;
  worker.stale_seconds = flags.stale_seconds;
  if (!flags.part.empty()) {
    TaskPart part;
    if (flags.part == "auto") {
      ASSIGN_OR_RETURN(part, PartOfTask(environment));
    } else {
      const size_t slash = flags.part.find('/');
      ASSIGN_OR_RETURN(part.part, ParseCount(flags.part.substr(0, slash)));
      ASSIGN_OR_RETURN(part.parts, ParseCount(flags.part.substr(slash + 1)));
    }
    const auto begin_of = [&](uint64_t n) { return static_cast<size_t>(n * shards / part.parts); };
    worker.ranges = {{begin_of(part.part - 1), begin_of(part.part)}};
  } else if (!flags.shards.empty()) {
    ASSIGN_OR_RETURN(worker.ranges, ParseShardList(flags.shards));
    worker.named = true;
  } else if (flags.range) {
    worker.ranges = {*flags.range};
    worker.named = true;
  }
  return worker;
}

}  // namespace shardpack::cli
