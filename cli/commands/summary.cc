#include "cli/commands/summary.h"

#include <stdlib.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/terminal/units.h"
#include "converters/listing/hidden_entries.h"
#include "converters/listing/skip_answers.h"
#include "converters/planning/class_gaps.h"
#include "converters/publishing/commit.h"
#include "converters/publishing/output_dir.h"
#include "formats/formats.h"
#include "formats/io/escape.h"
#include "formats/io/file.h"
#include "formats/io/resources.h"

namespace shardpack::cli {
namespace {

using absl::StrAppend;
using absl::StrCat;

constexpr size_t kSummarizedClasses = 8;
constexpr size_t kShownSkips = 3;
constexpr size_t kShownPartSkips = 10;

std::map<std::string, uint64_t> SkipsByReason(const RunReport& report) {
  std::map<std::string, uint64_t> counts;
  for (const Skip& skip : report.skips) ++counts[std::string(SkipReasonName(skip.reason))];
  return counts;
}

void SaySkips(const FinishedRun& run, Terminal& terminal) {
  const uint64_t skipped = run.report.already_complete ? run.report.manifest.counts.skipped +
                                                             run.report.manifest.counts.failed
                                                       : run.report.skips.size();
  if (skipped == 0) return;
  std::vector<std::string> reasons;
  for (const auto& [reason, count] : SkipsByReason(run.report))
    reasons.push_back(StrCat(FormatCount(count), " ", reason));
  const std::string named = reasons.empty() ? "" : StrCat(" (", absl::StrJoin(reasons, ", "), ")");
  SayRow("skipped",
         StrCat(Counted(skipped, "file", "files"), named, ", listed in ",
                EscapeForTerminal(run.out + "/skipped.jsonl"),
                run.part ? "" : "; --strict refuses them"),
         terminal);
  size_t shown = 0;
  for (const Skip& skip : run.report.skips) {
    if (shown++ == kShownSkips) break;
    terminal.Say(StrCat("          ", EscapeForTerminal(run.plan.listing().Path(skip.row)), ": ",
                        std::string(SkipReasonName(skip.reason)),
                        skip.detail.empty() ? "" : StrCat(", ", EscapeForTerminal(skip.detail))));
  }
  if (run.report.skips.size() > kShownSkips) {
    terminal.Say(
        StrCat("          and ", FormatCount(run.report.skips.size() - kShownSkips), " more"));
  }
  if (const std::string answers = SkipAnswers(run.report.skips, run.plan_is_given);
      !answers.empty())
    terminal.Say(StrCat("          ", answers));
}

// The smallest upper bound for the size of all samples in another format that can hold them.
std::pair<std::string, uint64_t> SmallestOther(const Plan& plan) {
  const Listing& listing = plan.listing();
  std::pair<std::string, uint64_t> smallest;
  for (const Format* format : AllFormats()) {
    const LayoutSpec& layout = format->layouts.front();
    if (format == &plan.format() || layout.fixed_shape || !layout.extra_fields) continue;
    const ShardSpec spec{.layout = layout.name, .classes = listing.classes};
    uint64_t bytes = plan.shards().size() * format->traits.shard_overhead_bytes;
    for (uint64_t row = 0; row < listing.rows(); ++row) {
      const uint64_t image = listing.SampleBytes(row);
      const size_t name =
          listing.folders[listing.folder[row]].size() + listing.Name(row).size() + 1;
      const int32_t label = listing.label[row];
      bytes += format->record_bound(
          spec,
          {.number = row,
           .key_bytes = name,
           .source_path_bytes = name,
           .class_name_bytes = label < 0 ? 0 : listing.classes[static_cast<size_t>(label)].size(),
           .has_label = label >= 0,
           .field_bytes = {&image, 1}});
    }
    if (smallest.first.empty() || bytes < smallest.second)
      smallest = {std::string(format->name), bytes};
  }
  return smallest;
}

// If the container adds as much as the images take, suggest a format that does not.
void SaySize(const FinishedRun& run, Terminal& terminal) {
  const Manifest& manifest = run.report.manifest;
  const uint64_t images = manifest.facts.image_bytes, shards = ShardBytes(manifest);
  if (images == 0 || shards < images + images / 2 || !run.plan.options().pixels.identity() ||
      !run.plan.listing().fields.empty() || !run.plan.CheckAllSlices().ok()) {
    return;
  }
  const auto [format, bytes] = SmallestOther(run.plan);
  if (bytes == 0 || bytes > shards - shards / 5) return;
  SayRow("size",
         StrCat(FormatBytes(shards), " for ", FormatBytes(images), " of images; -f ", format,
                " would take about ", FormatBytes(bytes)),
         terminal);
}

// "kept as they are 12; re-encoded 88: resized 88, orientation 3"
void SayPixels(const std::map<std::string, uint64_t>& pixels, Terminal& terminal) {
  if (pixels.empty()) return;
  uint64_t kept = 0, encoded = 0;
  std::vector<std::string> whys;
  for (const auto& [what, count] : pixels) {
    if (what == "kept") {
      kept = count;
    } else if (what == "re-encoded") {
      encoded = count;
    } else {
      whys.push_back(StrCat(what, " ", FormatCount(count)));
    }
  }
  SayRow("pixels",
         StrCat(FormatCount(kept), " kept as-is, ", FormatCount(encoded), " re-encoded",
                whys.empty() ? "" : StrCat(": ", absl::StrJoin(whys, ", "))),
         terminal);
}

void SayIgnored(const ManifestCounts& counts, Terminal& terminal) {
  uint64_t files = 0, hidden = 0;
  std::vector<std::string> kinds;
  for (const auto& [extension, count] : counts.ignored) {
    files += count;
    if (extension == kHiddenFiles) hidden = count;
    kinds.push_back(StrCat(FormatCount(count), " ",
                           extension.empty()           ? "without"
                           : extension == kHiddenFiles ? extension
                                                       : "." + EscapeForTerminal(extension)));
  }
  if (files == 0) return;
  if (kinds.size() > kSummarizedClasses) {
    kinds.resize(kSummarizedClasses);
    kinds.emplace_back("...");
  }
  SayRow("ignored",
         StrCat(Counted(files, "file", "files"), " by extension: ", absl::StrJoin(kinds, ", "),
                files > hidden ? "; --ext any packs them" : ""),
         terminal);
}

// Suggests only flags that can be typed and that help.
std::string WhyNoClasses(const Plan& plan) {
  const std::map<std::string, std::string>& source = plan.options().source;
  const std::vector<std::string>& folders = plan.listing().folders;
  const bool of_folders = !source.contains("input-format") && !source.contains("label-from");
  const bool flat = std::all_of(folders.begin(), folders.end(),
                                [](const std::string& folder) { return folder.empty(); });
  return of_folders && flat ? "; the folders below the source would name them, and it has none"
                            : "";
}

void SayClasses(const FinishedRun& run, Terminal& terminal) {
  const Manifest& manifest = run.report.manifest;
  if (manifest.classes.empty()) {
    SayRow("classes", StrCat("none: the samples have no label", WhyNoClasses(run.plan)), terminal);
    return;
  }
  std::vector<std::string> names;
  for (const std::string& name : manifest.classes) {
    if (names.size() == kSummarizedClasses) break;
    names.push_back(EscapeForTerminal(name));
  }
  SayRow("classes",
         StrCat(FormatCount(manifest.classes.size()), ": ", absl::StrJoin(names, ", "),
                names.size() < manifest.classes.size() ? ", ..." : ""),
         terminal);
}

void SayOrder(const FinishedRun& run, Terminal& terminal) {
  const PlanOptions& options = run.plan.options();
  if (options.shuffle) {
    SayRow(
        "order",
        StrCat("shuffled with seed ", options.seed, "; --no-shuffle keeps the order of the source"),
        terminal);
  } else if (options.source.contains("input-format")) {
    SayRow("order", "as in the source; --shuffle mixes the samples", terminal);
  } else {
    SayRow("order", "as the paths; --shuffle mixes the classes, which trains better", terminal);
  }
}

nlohmann::json Counts(const Manifest& manifest) {
  const ManifestCounts& counts = manifest.counts;
  nlohmann::json ignored = nlohmann::json::object();
  for (const auto& [extension, count] : counts.ignored) ignored[PercentEscape(extension)] = count;
  return {{"seen", counts.seen},       {"packed", counts.packed}, {"filtered", counts.filtered},
          {"skipped", counts.skipped}, {"failed", counts.failed}, {"ignored", ignored}};
}

void AddRun(const RunReport& report, const std::string& out, double seconds, uint64_t bytes_in,
            nlohmann::json* json) {
  (*json)["out"] = PercentEscape(out);
  (*json)["built_shards"] = report.built_shards;
  (*json)["kept_shards"] = report.kept_shards;
  (*json)["skipped_by_reason"] = SkipsByReason(report);
  (*json)["seconds"] = seconds;
  (*json)["bytes_read"] = bytes_in;
  (*json)["peak_memory_bytes"] = PeakMemoryBytes();
}

// Readers that infer a schema from the first samples (Hugging Face datasets) refuse such shards.
void WarnOfMixedFields(const FinishedRun& run, Terminal& terminal) {
  const auto& formats = run.report.manifest.facts.image_formats;
  if (formats.size() < 2 || !run.plan.format().traits.image_field_follows_content ||
      !run.plan.options().image_field.empty()) {
    return;
  }
  std::vector<std::string> names;
  for (const auto& [name, count] : formats) names.push_back(StrCat(name, " ", FormatCount(count)));
  terminal.Warn(StrCat("the images are of several formats (", absl::StrJoin(names, ", "),
                       "), so their field has several names, which some readers refuse; "
                       "--image-field img gives all of them one"));
}

// For skips that nothing else lists yet.
void WarnOfPartsSkips(const FinishedRun& run, Terminal& terminal) {
  const std::vector<Skip>& skips = run.report.skips;
  if (skips.empty()) return;
  std::string text =
      StrCat("of this part ", Counted(skips.size(), "input", "inputs"), " cannot be packed:");
  for (size_t i = 0; i < std::min(skips.size(), kShownPartSkips); ++i) {
    StrAppend(&text, "\n  ", EscapeForTerminal(run.plan.listing().Path(skips[i].row)), ": ",
              std::string(SkipReasonName(skips[i].reason)),
              skips[i].detail.empty() ? "" : StrCat(", ", EscapeForTerminal(skips[i].detail)));
  }
  if (skips.size() > kShownPartSkips)
    StrAppend(&text, "\n  and ", FormatCount(skips.size() - kShownPartSkips), " more");
  terminal.Warn(StrCat(text, "\npack commit lists all in skipped.jsonl"));
}

// Of a dataset that is complete; " (--overwrite ...)" or "". A worker overwrites nothing.
std::string HowToLookAgain(const FinishedRun& run, bool tree) {
  std::vector<std::string> ways;
  if (!run.part) ways.push_back("--overwrite builds it again");
  if (tree && !run.report.compared) {
    ways.push_back(StrCat("bytes are compared by ", TypedProgram(), " validate ",
                          ShellQuoted(run.out), " --against ",
                          ShellQuoted(run.source.empty() ? run.plan.listing().root : run.source)));
  }
  return ways.empty() ? "" : StrCat(" (", absl::StrJoin(ways, "; "), ")");
}

}  // namespace

uint64_t ShardBytes(const Manifest& manifest) {
  uint64_t bytes = 0;
  for (const ManifestShard& shard : manifest.shards) bytes += shard.bytes;
  return bytes;
}

void SayRow(std::string_view word, std::string_view text, Terminal& terminal) {
  std::string padded(word);
  padded.resize(std::max<size_t>(10, padded.size() + 1), ' ');
  terminal.Say(StrCat(terminal.Styled(Style::kBold, padded), std::string(text)));
}

void SaySummary(const FinishedRun& run, Terminal& terminal) {
  if (!run.report.notice.empty()) terminal.Warn(run.report.notice);
  WarnOfMixedFields(run, terminal);
  // A plan whose rows are damaged says nothing of classes; the dataset is what its workers checked.
  if (const auto gaps = ClassGaps(run.plan, run.report.skips); gaps.ok())
    for (const std::string& line : *gaps) terminal.Warn(line);
  const Manifest& manifest = run.report.manifest;
  const ManifestCounts& counts = manifest.counts;
  const std::string shown_out = EscapeForTerminal(run.out);
  std::string packed =
      StrCat(FormatCount(counts.packed), " of ", Counted(counts.seen, "image", "images"), " into ",
             Counted(manifest.shards.size(), "shard", "shards"), " of ", manifest.format, " in ",
             shown_out, ", ", FormatBytes(ShardBytes(manifest)));
  if (run.report.already_complete) {
    const auto kind = run.plan.options().source.find("input-format");
    const bool lost = counts.skipped + counts.failed > 0;
    const bool tree = kind == run.plan.options().source.end() || kind->second == "archive";
    terminal.Say(
        StrCat(shown_out, " is complete: ",
               Counted(manifest.files.size(), "file has its size", "files have their sizes"),
               run.report.compared
                   ? ", and every byte of the source is the one that was packed"
                   : StrCat(", and so have the source's files", run.part ? " of these shards" : "",
                            lost ? " that were packed" : "", ", and their times"),
               "; nothing to do", HowToLookAgain(run, tree)));
    if (OutputDir::HoldsUnfinished(run.out)) {
      terminal.Warn(
          StrCat(EscapeForTerminal(OutputDir::BesideOf(run.out)),
                 " holds what an interrupted --overwrite has built: the same command goes "
                 "on with it; to give up, remove that folder"));
    }
  } else {
    StrAppend(&packed, ", in ", FormatDuration(run.seconds));
    // A run that kept shards of an earlier one has no meaningful rate.
    if (run.seconds > 0 && run.report.kept_shards == 0) {
      StrAppend(
          &packed, " (",
          FormatCount(static_cast<uint64_t>(static_cast<double>(counts.packed) / run.seconds)),
          " images/s, ",
          FormatBytes(static_cast<uint64_t>(static_cast<double>(run.bytes_in) / run.seconds)),
          "/s in)");
    }
    StrAppend(&packed, ", peak memory ", FormatBytes(PeakMemoryBytes()));
  }
  SayRow(run.report.already_complete ? "holds" : "packed", packed, terminal);
  if (run.report.kept_shards > 0 && !run.report.already_complete) {
    SayRow(
        "reused",
        StrCat(Counted(run.report.kept_shards, "finished shard", "finished shards"), " (verified)"),
        terminal);
  }
  if (counts.filtered > 0) {
    SayRow("filtered", StrCat(Counted(counts.filtered, "image", "images"), " left out as asked"),
           terminal);
  }
  SaySize(run, terminal);
  SayPixels(manifest.facts.pixels, terminal);
  SaySkips(run, terminal);
  SayIgnored(counts, terminal);
  SayClasses(run, terminal);
  std::vector<std::string> splits;
  for (const auto& [name, records] : manifest.splits)
    splits.push_back(StrCat(name, " ", FormatCount(records)));
  SayRow("splits", absl::StrJoin(splits, ", "), terminal);
  SayOrder(run, terminal);
  SayRow("next", StrCat(TypedProgram(), " validate ", ShellQuoted(run.out)), terminal);
}

std::string SummaryJson(const RunReport& report, const std::string& out, double seconds,
                        uint64_t bytes_in, const PublishedPage& page) {
  const Manifest& manifest = report.manifest;
  nlohmann::json json = {{"schema", "shardpack.build/1"},
                         {"dataset", IdentityText(manifest.Identity())},
                         {"format", manifest.format},
                         {"layout", manifest.layout},
                         {"already_complete", report.already_complete},
                         {"shards", manifest.shards.size()},
                         {"bytes", ShardBytes(manifest)},
                         {"classes", manifest.classes.size()},
                         {"splits", manifest.splits},
                         {"counts", Counts(manifest)},
                         {"pixels", manifest.facts.pixels}};
  // Shards indexed in place have no options.
  if (const auto shuffle = manifest.options.find("shuffle"); shuffle != manifest.options.end()) {
    json["shuffle"] = shuffle->second == "on";
  }
  if (const auto seed = manifest.options.find("seed"); seed != manifest.options.end()) {
    json["seed"] = std::strtoull(seed->second.c_str(), nullptr, 10);
  }
  AddRun(report, out, seconds, bytes_in, &json);
  page.AddTo(json);
  return json.dump() + "\n";
}

void SayPart(const FinishedRun& run, Terminal& terminal) {
  WarnOfPartsSkips(run, terminal);
  SayRow("built",
         StrCat(Counted(run.report.built_shards, "shard", "shards"), " in ",
                EscapeForTerminal(run.out), ", in ", FormatDuration(run.seconds), ", peak memory ",
                FormatBytes(PeakMemoryBytes())),
         terminal);
  if (run.report.kept_shards > 0) {
    SayRow(
        "reused",
        StrCat(Counted(run.report.kept_shards, "finished shard", "finished shards"), " (verified)"),
        terminal);
  }
  if (run.report.others_shards > 0) {
    SayRow("left",
           StrCat(Counted(run.report.others_shards, "shard", "shards"),
                  " to other workers, which have built them"),
           terminal);
  }
  SayRow("next",
         StrCat("when all workers are done: ", TypedProgram(), " commit ", ShellQuoted(run.out)),
         terminal);
}

std::string PartJson(const FinishedRun& run) {
  nlohmann::json json = {{"schema", "shardpack.part/1"},
                         {"format", run.plan.format().name},
                         {"layout", run.plan.layout()}};
  AddRun(run.report, run.out, run.seconds, run.bytes_in, &json);
  return json.dump() + "\n";
}

}  // namespace shardpack::cli
