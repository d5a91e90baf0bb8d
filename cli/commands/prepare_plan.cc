#include "cli/commands/prepare_plan.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/commands/open_source.h"
#include "cli/flags/failure.h"
#include "cli/flags/flags.h"
#include "cli/flags/given_file.h"
#include "cli/flags/suggest.h"
#include "cli/terminal/progress.h"
#include "converters/listing/class_names.h"
#include "converters/listing/common_shape.h"
#include "converters/listing/labels.h"
#include "converters/listing/probe_pass.h"
#include "converters/listing/sidecars.h"
#include "converters/planning/target_trial.h"
#include "converters/publishing/output_dir.h"
#include "converters/sources/dataset_source.h"
#include "formats/formats.h"
#include "formats/io/file.h"
#include "formats/io/status_macros.h"

namespace shardpack::cli {
namespace {

using absl::InvalidArgumentError;
using absl::StrCat;

constexpr uint64_t kMaxClassesBytes = uint64_t{64} << 20;
constexpr uint64_t kMaxPlanBytes = uint64_t{64} << 30;

absl::StatusOr<std::vector<std::string>> ReadClasses(const std::string& path) {
  ASSIGN_OR_RETURN(std::string text, ReadGivenFile("--classes", path, kMaxClassesBytes));
  return ParseClasses(text, path);
}

absl::Status CheckPixels(const CommandLine& line) {
  absl::Status status = CheckTransformOptions(line.plan.pixels);
  if (!status.ok() || !line.plan.pixels.identity()) return status;
  for (const std::string flag : {"quality", "exact", "interpolation"}) {
    if (!line.Given(flag)) continue;
    return InvalidArgumentError(StrCat("--", flag,
                                       " is for images that are encoded anew, but no option "
                                       "changes any; give --resize or --encode"));
  }
  return absl::OkStatus();
}

absl::Status CheckCombinations(const CommandLine& line, const Format& format) {
  const std::string name(format.name);
  if (line.Given("shards") && line.Given("samples-per-shard")) {
    return InvalidArgumentError(
        "--shards and --samples-per-shard both set the number of shards; give one of them");
  }
  if (line.plan.split_by == SplitBy::kDir && !line.plan.splits.empty()) {
    return InvalidArgumentError(
        "--split-by dir takes the splits from the folders; leave --split out");
  }
  if (line.one_split && !line.plan.splits.empty()) {
    return InvalidArgumentError(
        "--split-by none makes one split; leave it out, or choose what --split divides by: hash, "
        "random or stratified");
  }
  RETURN_IF_ERROR(CheckPixels(line));
  if (FindLayout(format, line.plan.layout) == nullptr) {
    std::vector<std::string> names;
    for (const LayoutSpec& layout : format.layouts) names.emplace_back(layout.name);
    std::string known;
    for (const std::string& each : names) absl::StrAppend(&known, known.empty() ? "" : ", ", each);
    return InvalidArgumentError(
        StrCat("--layout ", line.plan.layout, ": the layouts of ", name, " are ", known));
  }
  for (const std::string& sidecar : line.plan.sidecar_indexes) {
    const auto same = [&](const SidecarSpec& spec) { return spec.name == sidecar; };
    if (std::none_of(format.sidecars.begin(), format.sidecars.end(), same)) {
      return InvalidArgumentError(StrCat("--sidecar-index ", sidecar, ": not for ", name));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Listing> List(SampleSource& source, Terminal& terminal) {
  Progress progress(terminal);
  progress.Watch(
      [&] { return ProgressView{.stage = "listing", .unit = "files", .done = source.listed()}; });
  return source.List();
}

absl::Status Probe(const SampleSource& source, const PlanOptions& options, IoPool& pool,
                   Terminal& terminal, Listing* listing) {
  std::atomic<uint64_t> probed = 0;
  Progress progress(terminal);
  const uint64_t rows = listing->rows();
  progress.Watch(
      [&, rows] { return ProgressView{.stage = "looking at", .done = probed, .total = rows}; });
  const ProbeOptions probe = {options.verify, options.max_pixels, options.allow_truncated};
  return RunProbePass(source, probe, pool, *listing, probed);
}

// Law: what the target cannot hold is said before work starts.
absl::Status FitFields(const CommandLine& line, const Format& format, PlanOptions* options,
                       Listing* listing, Terminal& terminal) {
  ASSIGN_OR_RETURN(const std::vector<RefusedField> refused,
                   RefusedFields(format, *options, *listing));
  if (refused.empty()) return absl::OkStatus();
  std::vector<bool> drop(listing->fields.size(), false);
  std::string names, whys;
  for (const RefusedField& each : refused) {
    drop[each.field] = true;
    const std::string name = EscapeForTerminal(listing->fields[each.field].name);
    absl::StrAppend(&names, names.empty() ? "" : ",", name);
    absl::StrAppend(&whys, "\n  ", name, ": ", each.why);
  }
  if (!line.drop_fields) {
    return InvalidArgumentError(StrCat(std::string(format.name), " cannot hold ",
                                       refused.size() == 1 ? "a field" : "fields",
                                       " of these samples; --drop-fields leaves them out:", whys));
  }
  DropFields(drop, *listing);
  options->source["drop-fields"] = names;
  terminal.Warn(StrCat("left out, because ", std::string(format.name), " cannot hold it: ", names));
  return absl::OkStatus();
}

void ShowWarnings(const std::vector<std::string>& warnings, Terminal& terminal) {
  for (const std::string& warning : warnings) terminal.Warn(warning);
}

}  // namespace

absl::StatusOr<Prepared> PreparePlan(const CommandLine& line, IoPool& pool, Terminal& terminal) {
  const Format* format = line.format.empty() ? AllFormats().front() : FindFormat(line.format);
  absl::Status status = CheckCombinations(line, *format);
  if (!status.ok()) return status;
  FolderSourceOptions options = line.source;
  if (!line.classes_file.empty()) {
    ASSIGN_OR_RETURN(std::vector<std::string> classes, ReadClasses(line.classes_file));
    options.classes = std::move(classes);
  }
  ASSIGN_OR_RETURN(OpenedSource opened, OpenSource(line, options, pool));
  absl::StatusOr<Listing> listing = List(*opened.source, terminal);
  if (!listing.ok()) return WithCommands(listing.status(), line);
  for (const std::string& note : listing->notes) terminal.Say(StrCat("note: ", note));
  ShowWarnings(listing->warnings, terminal);
  if (!opened.dataset || !line.label_from.empty())
    ShowWarnings(DoubtfulClassNames(listing->classes), terminal);

  PlanOptions plan_options = line.plan;
  plan_options.source = std::move(opened.options);
  if (opened.dataset) InheritOptions(*opened.dataset, *format, line.given, &plan_options);
  status = FitFields(line, *format, &plan_options, &*listing, terminal);
  if (!status.ok()) return status;
  const bool finds_shape = FindLayout(*format, plan_options.layout)->fixed_shape &&
                           plan_options.pixels.encode == EncodeAs::kRaw &&
                           plan_options.pixels.resize == ResizeMode::kOff;
  if (finds_shape || plan_options.NeedsProbe())
    status = Probe(*opened.source, plan_options, pool, terminal, &*listing);
  if (status.ok() && finds_shape) status = UseCommonShape(*listing, &plan_options.pixels);
  if (!status.ok()) return status;
  ASSIGN_OR_RETURN(Plan plan, Plan::Make(*std::move(listing), plan_options, *format));
  ShowWarnings(plan.notes(), terminal);
  if (opened.dataset || !plan.listing().fields.empty()) {
    status = TrySamples(plan, *opened.source);
    if (!status.ok()) return status;
  }
  return Prepared{std::move(opened.source), std::move(plan)};
}

absl::StatusOr<Prepared> ReadPlan(const CommandLine& line, IoPool& pool, Terminal& terminal) {
  for (const Flag* flag : FlagsOf(Verb::kPlan)) {
    const bool decides = flag->group != "Run" && flag->name != "out";
    if (decides && line.Given(std::string(flag->name))) {
      return InvalidArgumentError(StrCat("--", std::string(flag->name),
                                         " is decided by the plan; give it to pack plan --write"));
    }
  }
  ASSIGN_OR_RETURN(std::string bytes, ReadGivenFile("--plan", line.plan_file, kMaxPlanBytes));
  ASSIGN_OR_RETURN(Plan plan, Plan::FromBytes(bytes, FindFormat));
  RETURN_IF_ERROR(CheckShardsRange(plan, line.output));
  const std::string root = line.arguments.empty() ? plan.listing().root : line.arguments[0];
  ASSIGN_OR_RETURN(std::unique_ptr<SampleSource> source, OpenPlannedSource(plan, root, pool));
  ShowWarnings(plan.notes(), terminal);
  const std::map<std::string, std::string>& words = plan.options().source;
  const auto kind = words.find("input-format");
  const bool of_files =
      kind == words.end() || kind->second != "dataset";  // a dataset has its identity
  return Prepared{std::move(source), std::move(plan), of_files ? root : ""};
}

}  // namespace shardpack::cli
