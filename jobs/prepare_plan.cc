#include "jobs/prepare_plan.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "converters/listing/class_names.h"
#include "converters/listing/common_shape.h"
#include "converters/listing/probe_pass.h"
#include "converters/listing/sidecars.h"
#include "converters/planning/target_trial.h"
#include "converters/sources/dataset_source.h"
#include "formats/formats.h"
#include "formats/io/file.h"
#include "formats/io/status_macros.h"
#include "jobs/open_source.h"

namespace shardpack {
namespace {

using absl::InvalidArgumentError;
using absl::StrCat;

absl::Status CheckPixels(const PackRequest& request) {
  absl::Status status = CheckTransformOptions(request.plan.pixels);
  if (!status.ok() || !request.plan.pixels.identity()) return status;
  for (const std::string flag : {"quality", "exact", "interpolation"}) {
    if (!request.Given(flag)) continue;
    return InvalidArgumentError(StrCat("--", flag,
                                       " is for images that are re-encoded, but no option "
                                       "changes any; give --resize or --encode"));
  }
  return absl::OkStatus();
}

absl::Status CheckCombinations(const PackRequest& request, const Format& format) {
  const std::string name(format.name);
  if (request.Given("shards") && request.Given("samples-per-shard")) {
    return InvalidArgumentError(
        "--shards and --samples-per-shard both set the number of shards; give one of them");
  }
  if (request.plan.split_by == SplitBy::kDir && !request.plan.splits.empty()) {
    return InvalidArgumentError(
        "--split-by dir takes the splits from the folders; leave --split out");
  }
  const bool divides =
      request.plan.split_by == SplitBy::kRandom || request.plan.split_by == SplitBy::kStratified;
  if (request.Given("split-by") && divides && request.plan.splits.empty()) {
    return InvalidArgumentError(
        "--split-by says how --split divides, which is not given, as in train=0.9,val=0.1");
  }
  if (request.one_split && !request.plan.splits.empty()) {
    return InvalidArgumentError(
        "--split-by none makes one split; leave it out, or choose what --split divides by: hash, "
        "random or stratified");
  }
  RETURN_IF_ERROR(CheckPixels(request));
  if (FindLayout(format, request.plan.layout) == nullptr) {
    std::vector<std::string> names;
    for (const LayoutSpec& layout : format.layouts) names.emplace_back(layout.name);
    std::string known;
    for (const std::string& each : names) absl::StrAppend(&known, known.empty() ? "" : ", ", each);
    return InvalidArgumentError(
        StrCat("--layout ", request.plan.layout, ": the layouts of ", name, " are ", known));
  }
  for (const std::string& sidecar : request.plan.sidecar_indexes) {
    const auto same = [&](const SidecarSpec& spec) { return spec.name == sidecar; };
    if (std::none_of(format.sidecars.begin(), format.sidecars.end(), same)) {
      return InvalidArgumentError(StrCat("--sidecar-index ", sidecar, ": not for ", name));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Listing> List(SampleSource& source, PlanObserver& observer) {
  observer.BeginStage(
      "listing", [&source] { return source.listed(); }, 0);
  absl::StatusOr<Listing> listing = source.List();
  observer.EndStage();
  return listing;
}

absl::Status Probe(const SampleSource& source, const PlanOptions& options, IoPool& pool,
                   PlanObserver& observer, Listing* listing) {
  std::atomic<uint64_t> probed = 0;
  observer.BeginStage(
      "looking at", [&probed] { return probed.load(); }, listing->rows());
  const ProbeOptions probe = {options.verify, options.max_pixels, options.allow_truncated};
  const absl::Status status = RunProbePass(source, probe, pool, *listing, probed);
  observer.EndStage();
  return status;
}

// Errors about what the target cannot hold must come before work starts.
absl::Status FitFields(const PackRequest& request, const Format& format, PlanOptions* options,
                       Listing* listing, PlanObserver& observer) {
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
  if (!request.drop_fields) {
    return InvalidArgumentError(StrCat(std::string(format.name), " cannot hold ",
                                       refused.size() == 1 ? "a field" : "fields",
                                       " of these samples; --drop-fields leaves them out:", whys));
  }
  DropFields(drop, *listing);
  options->source["drop-fields"] = names;
  observer.Warn(StrCat("left out, because ", std::string(format.name), " cannot hold it: ", names));
  return absl::OkStatus();
}

void ShowWarnings(const std::vector<std::string>& warnings, PlanObserver& observer) {
  for (const std::string& warning : warnings) observer.Warn(warning);
}

// A loader scales objects whose JSON says the size of their image, if that has kept its shape.
void WarnOfOldCoordinates(const std::map<std::string, std::string>& source, ResizeMode resize,
                          PlanObserver& observer) {
  const auto is = [&](const char* name, std::string_view value) {
    const auto found = source.find(name);
    return found != source.end() && found->second == value;
  };
  const bool keeps_shape = resize == ResizeMode::kShortest || resize == ResizeMode::kLongest;
  if (resize == ResizeMode::kOff || !is("input-format", "coco")) return;
  if (keeps_shape && is("coco", "full")) return;
  observer.Warn(
      "--resize changes the images and not the coordinates of their boxes, polygons and keypoints, "
      "which are packed as they are: resize when loading, which moves both");
}

}  // namespace

absl::StatusOr<Prepared> PreparePlan(const PackRequest& request, IoPool& pool,
                                     PlanObserver& observer) {
  const Format* format = request.format.empty() ? AllFormats().front() : FindFormat(request.format);
  if (format == nullptr) {
    return InvalidArgumentError(
        StrCat("--format ", EscapeForTerminal(request.format), ": there is no such format"));
  }
  absl::Status status = CheckCombinations(request, *format);
  if (!status.ok()) return status;
  ASSIGN_OR_RETURN(OpenedSource opened, OpenSource(request, pool));
  ASSIGN_OR_RETURN(Listing listing, List(*opened.source, observer));
  for (const std::string& note : listing.notes) observer.Note(note);
  ShowWarnings(listing.warnings, observer);
  if (!opened.dataset || !request.label_from.empty())
    ShowWarnings(DoubtfulClassNames(listing.classes), observer);

  PlanOptions plan_options = request.plan;
  plan_options.source = std::move(opened.options);
  if (opened.dataset) InheritOptions(*opened.dataset, *format, request.given, &plan_options);
  status = FitFields(request, *format, &plan_options, &listing, observer);
  if (!status.ok()) return status;
  const bool recorded = opened.dataset && opened.dataset->manifest() != nullptr;
  WarnOfOldCoordinates(recorded ? opened.dataset->manifest()->options : plan_options.source,
                       plan_options.pixels.resize, observer);
  const bool finds_shape = FindLayout(*format, plan_options.layout)->fixed_shape &&
                           plan_options.pixels.encode == EncodeAs::kRaw &&
                           plan_options.pixels.resize == ResizeMode::kOff;
  if (finds_shape || plan_options.NeedsProbe())
    status = Probe(*opened.source, plan_options, pool, observer, &listing);
  if (status.ok() && finds_shape) status = UseCommonShape(listing, &plan_options.pixels);
  if (!status.ok()) return status;
  ASSIGN_OR_RETURN(Plan plan, Plan::Make(std::move(listing), plan_options, *format));
  ShowWarnings(plan.notes(), observer);
  if (opened.dataset || !plan.listing().fields.empty()) {
    status = TrySamples(plan, *opened.source);
    if (!status.ok()) return status;
  }
  return Prepared{std::move(opened.source), std::move(plan)};
}

absl::StatusOr<Prepared> PreparePlanned(Plan plan, const std::string& root, IoPool& pool,
                                        PlanObserver& observer) {
  const std::string place = root.empty() ? plan.listing().root : root;
  ASSIGN_OR_RETURN(std::unique_ptr<SampleSource> source, OpenPlannedSource(plan, place, pool));
  ShowWarnings(plan.notes(), observer);
  const std::map<std::string, std::string>& words = plan.options().source;
  const auto kind = words.find("input-format");
  const bool of_files =
      kind == words.end() || kind->second != "dataset";  // a dataset already has an identity
  return Prepared{std::move(source), std::move(plan), of_files ? place : ""};
}

}  // namespace shardpack
