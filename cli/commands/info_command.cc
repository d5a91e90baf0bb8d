#include <algorithm>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cli/commands/commands.h"
#include "cli/commands/selection.h"
#include "cli/flags/failure.h"
#include "cli/terminal/units.h"
#include "converters/planning/plan.h"
#include "converters/planning/plan_differences.h"
#include "cuda/dynload/gpu_probe.h"
#include "formats/io/escape.h"
#include "formats/io/file.h"
#include "formats/io/status_macros.h"
#include "jobs/open_input.h"
#include "validators/looking/shard_loop.h"

namespace shardpack::cli {
namespace {

using absl::StrAppend;
using absl::StrCat;

constexpr size_t kShownClasses = 10, kShownFolders = 5;
// Of a larger dataset the indexes, which are read whole, are gigabytes.
constexpr uint64_t kMostCounted = 10'000'000;

struct Facts {
  uint64_t bytes = 0;
  std::map<std::string, uint64_t> splits;  // records
  std::vector<std::string> fields;
  // Samples per class; empty if there are no names, an index cannot be read, or `too_many`.
  std::vector<uint64_t> class_counts;
  bool too_many = false;                   // samples to count
  absl::Status uncounted;                  // why, in the latter case
  int64_t min_label = -1, max_label = -1;  // of third-party shards
};

void CountClasses(const Dataset& dataset, Facts& facts) {
  std::mutex mutex;
  std::vector<uint64_t>& counts = facts.class_counts;
  counts.resize(dataset.classes().size());
  facts.uncounted = ForEachShard(dataset, [&](uint32_t, const ShardIndex& index) {
    std::map<int64_t, uint64_t> of_shard;
    for (const int64_t label : NumbersOf<int64_t>(index, IndexColumn::kLabels)) ++of_shard[label];
    const std::lock_guard lock(mutex);
    for (const auto& [label, count] : of_shard) {
      if (label >= 0 && static_cast<uint64_t>(label) < counts.size())
        counts[static_cast<size_t>(label)] += count;
    }
    return absl::OkStatus();
  });
  if (!facts.uncounted.ok()) counts.clear();
}

absl::StatusOr<Facts> Gather(const Dataset& dataset) {
  Facts facts;
  const auto shards = dataset.shards();
  for (uint32_t n = 0; n < shards.size(); ++n) {
    facts.bytes += shards[n].bytes;
    if (!shards[n].split.empty()) facts.splits[shards[n].split] += shards[n].records;
    // A dataset's manifest describes all of its shards; the indexes of third-party shards are open
    // anyway.
    if (dataset.manifest() != nullptr && n > 0) continue;
    ASSIGN_OR_RETURN(ShardIndex index, dataset.index(n));
    for (size_t field = 0; field < index.fields(); ++field) {
      const std::string name(index.field_name(field));
      if (std::find(facts.fields.begin(), facts.fields.end(), name) == facts.fields.end())
        facts.fields.push_back(name);
    }
    for (uint64_t record = 0; record < index.records() && dataset.manifest() == nullptr; ++record) {
      const int64_t label = index.label(record);
      if (label < 0) continue;
      facts.min_label = facts.min_label < 0 ? label : std::min(facts.min_label, label);
      facts.max_label = std::max(facts.max_label, label);
    }
  }
  facts.too_many = !dataset.classes().empty() && dataset.size() > kMostCounted;
  if (!dataset.classes().empty() && !facts.too_many) CountClasses(dataset, facts);
  return facts;
}

std::string Range(uint64_t low, uint64_t high) {
  return low == high ? StrCat(low) : StrCat(low, "-", high);
}

// "1.2 MB" followed by the exact number.
std::string Size(uint64_t bytes) {
  return bytes < 1000 ? FormatBytes(bytes)
                      : StrCat(FormatBytes(bytes), " (", FormatCount(bytes), " bytes)");
}

void AppendVersion(const Manifest& manifest, std::string* out) {
  const auto version = manifest.tool.find("version");
  if (version != manifest.tool.end())
    StrAppend(out, "made by   shardpack ", EscapeForTerminal(version->second), "\n");
}

// A dataset indexed in place may point anywhere, so show where.
std::string WhereShardsLie(const Manifest& manifest) {
  std::map<std::string, uint64_t> folders;
  for (const ManifestShard& shard : manifest.shards) {
    if (shard.location.empty()) continue;
    const size_t slash = shard.location.rfind('/');
    ++folders[slash == std::string::npos ? "." : shard.location.substr(0, slash + 1)];
  }
  std::string text;
  size_t shown = 0;
  for (const auto& [folder, count] : folders) {
    if (shown++ == kShownFolders) return StrCat(text, ", ...");
    StrAppend(&text, text.empty() ? "; " : ", ", FormatCount(count), " in ",
              EscapeForTerminal(folder));
  }
  return text;
}

// Rounds "0.486717631,0.461519810" to three places each; --json has the full numbers.
std::string Rounded(const std::string& numbers) {
  return absl::StrJoin(
      absl::StrSplit(numbers, ','), ", ", [](std::string* out, absl::string_view number) {
        double value = 0;
        absl::StrAppend(out, absl::SimpleAtod(number, &value) ? absl::StrFormat("%.3f", value)
                                                              : std::string(number));
      });
}

void AppendManifest(const Manifest& manifest, std::string* out) {
  const DatasetFacts& facts = manifest.facts;
  std::vector<std::string> kinds;
  for (const auto& [name, count] : facts.image_formats)
    kinds.push_back(StrCat(FormatCount(count), " ", name));
  StrAppend(out, "images    ", absl::StrJoin(kinds, ", "), "; ",
            Range(facts.min_width, facts.max_width), " x ",
            Range(facts.min_height, facts.max_height), " pixels; ", FormatBytes(facts.image_bytes),
            ", the largest ", FormatBytes(facts.max_image_bytes), "\n");
  if (!facts.pixel_stats.empty()) {
    StrAppend(out, "pixels   ");
    for (const auto& [name, value] : facts.pixel_stats)
      StrAppend(out, " ", name, " ", Rounded(value));
    StrAppend(out, "\n");
  }
  if (manifest.indexed_in_place()) {
    StrAppend(out, "source    third-party shards, indexed in place", WhereShardsLie(manifest),
              "\n");
    return AppendVersion(manifest, out);
  }
  const ManifestCounts& counts = manifest.counts;
  StrAppend(out, "source    ", EscapeForTerminal(manifest.source_root), ": ",
            FormatCount(counts.seen), " seen, ", FormatCount(counts.packed), " packed, ",
            FormatCount(counts.filtered), " filtered, ", FormatCount(counts.skipped), " skipped\n");
  std::vector<std::string> options;
  const std::map<std::string, std::string> defaults = DefaultOptions();
  for (const auto& [name, value] : manifest.options) {
    // The layout is printed above; libraries are not an option.
    if (name == "layout" || name == "pixel-libraries") continue;
    const auto fallback = defaults.find(name);
    if (fallback != defaults.end() && fallback->second == value) continue;
    if (name == "resize" && value == "off") continue;  // printed together with other pixel changes
    options.push_back(
        value == "off"
            ? StrCat("--no-", name)
            : StrCat("--", name, value == "on" ? "" : StrCat(" ", EscapeForTerminal(value))));
  }
  if (!options.empty()) StrAppend(out, "options   ", absl::StrJoin(options, " "), "\n");
  AppendVersion(manifest, out);
}

std::string Text(const Dataset& dataset, const Facts& facts) {
  const Manifest* manifest = dataset.manifest();
  std::string out = StrCat("format    ", dataset.format());
  if (manifest != nullptr && !manifest->layout.empty())
    StrAppend(&out, ", layout ", manifest->layout);
  StrAppend(&out, manifest == nullptr ? " (no manifest: scanned)" : "", "\nsamples   ",
            FormatCount(dataset.size()), " in ",
            Counted(dataset.shards().size(), "shard", "shards"), "\nsize      ", Size(facts.bytes),
            "\n");
  std::vector<std::string> splits;
  for (const auto& [name, count] : facts.splits)
    splits.push_back(StrCat(name, " ", FormatCount(count)));
  if (!splits.empty()) StrAppend(&out, "splits    ", absl::StrJoin(splits, ", "), "\n");
  std::vector<std::string> names;
  for (const std::string& name : dataset.classes()) {
    if (names.size() == kShownClasses) break;
    const size_t place = names.size();
    names.push_back(EscapeForTerminal(name));
    if (place < facts.class_counts.size())
      StrAppend(&names.back(), " ", FormatCount(facts.class_counts[place]));
  }
  if (!names.empty()) {
    StrAppend(&out, "classes   ", FormatCount(dataset.classes().size()), ": ",
              absl::StrJoin(names, ", "), names.size() < dataset.classes().size() ? ", ..." : "",
              facts.too_many ? "; pack stats counts them" : "", "\n");
  } else if (facts.max_label >= 0) {
    StrAppend(&out, "labels    ",
              Range(static_cast<uint64_t>(facts.min_label), static_cast<uint64_t>(facts.max_label)),
              "\n");
  }
  std::vector<std::string> fields;
  for (const std::string& name : facts.fields) fields.push_back(EscapeForTerminal(name));
  StrAppend(&out, "fields    ", absl::StrJoin(fields, ", "), "\n");
  if (manifest != nullptr) AppendManifest(*manifest, &out);
  return StrCat(out, "identity  ", IdentityText(dataset.identity()), "\n");
}

std::string Json(const Dataset& dataset, const Facts& facts) {
  nlohmann::json shards = nlohmann::json::array();
  for (const DatasetShard& shard : dataset.shards()) {
    shards.push_back({{"name", PercentEscape(shard.name)},
                      {"file", PercentEscape(shard.data_path)},
                      {"split", shard.split},
                      {"bytes", shard.bytes},
                      {"records", shard.records}});
  }
  std::vector<std::string> classes, fields;
  for (const std::string& name : dataset.classes()) classes.push_back(PercentEscape(name));
  for (const std::string& name : facts.fields) fields.push_back(PercentEscape(name));
  nlohmann::json json = {
      {"schema", "shardpack.info/1"},
      {"format", dataset.format()},
      {"dataset", IdentityText(dataset.identity())},
      {"manifest", dataset.manifest() != nullptr},
      {"records", dataset.size()},
      {"bytes", facts.bytes},
      {"splits", facts.splits},
      {"classes", classes},
      {"class_counts", facts.too_many ? nlohmann::json() : nlohmann::json(facts.class_counts)},
      {"fields", fields},
      {"shards", shards}};
  if (const Manifest* manifest = dataset.manifest()) {
    const DatasetFacts& images = manifest->facts;
    json["layout"] = manifest->layout;
    json["source"] = PercentEscape(manifest->source_root);
    json["adopted"] = manifest->indexed_in_place();
    json["counts"] = {{"seen", manifest->counts.seen},
                      {"packed", manifest->counts.packed},
                      {"filtered", manifest->counts.filtered},
                      {"skipped", manifest->counts.skipped},
                      {"failed", manifest->counts.failed}};
    json["options"] = nlohmann::json::object();
    for (const auto& [name, value] : manifest->options)
      json["options"][PercentEscape(name)] = PercentEscape(value);
    json["pixel_stats"] = images.pixel_stats;
    json["images"] = {{"formats", images.image_formats},        {"bytes", images.image_bytes},
                      {"min_width", images.min_width},          {"max_width", images.max_width},
                      {"min_height", images.min_height},        {"max_height", images.max_height},
                      {"largest_bytes", images.max_image_bytes}};
  }
  return json.dump() + "\n";
}

// One line per GPU, then the other facts about CUDA.
std::string GpuText(const GpuProbe& probe) {
  std::string out;
  for (size_t i = 0; i < probe.gpus.size(); ++i) {
    const GpuFacts& gpu = probe.gpus[i];
    StrAppend(&out, "gpu ", i, "     ", EscapeForTerminal(gpu.name), ", ",
              FormatBytes(gpu.memory_bytes), ", compute capability ", gpu.major, ".", gpu.minor,
              ", ", Counted(static_cast<uint64_t>(gpu.copy_engines), "copy engine", "copy engines"),
              gpu.pci_bus_id.empty() ? "" : StrCat(", ", EscapeForTerminal(gpu.pci_bus_id)), "\n");
  }
  if (probe.gpus.empty())
    StrAppend(&out, "gpu       none: ", EscapeForTerminal(probe.why_none),
              "; loaders run with the device \"cpu\" alone\n");
  if (!probe.driver.empty() || probe.driver_cuda > 0) {
    StrAppend(&out, "driver    ", EscapeForTerminal(probe.driver),
              probe.driver_cuda > 0
                  ? StrCat(", CUDA ", probe.driver_cuda / 1000, ".", probe.driver_cuda % 1000 / 10)
                  : "",
              probe.why_unusable.empty() ? "" : "; too old: ", probe.why_unusable, "\n");
  }
  StrAppend(&out, "cuda      ",
            probe.built_with_cuda
                ? StrCat("kernels and runtime ", probe.runtime / 1000, ".",
                         probe.runtime % 1000 / 10, " are built into //cuda (statically)",
                         probe.needed_driver.empty() ? "" : ", for driver ", probe.needed_driver,
                         probe.needed_driver.empty() ? "" : " or newer")
                : "this build found no toolkit: //cuda has no kernels",
            "\nnvjpeg    ",
            EscapeForTerminal(probe.nvjpeg.empty()
                                  ? StrCat("none, the CPU decodes: ", probe.why_no_nvjpeg)
                                  : probe.nvjpeg),
            "\n");
  return out;
}

nlohmann::json GpuJson(const GpuProbe& probe) {
  nlohmann::json gpus = nlohmann::json::array();
  for (const GpuFacts& gpu : probe.gpus) {
    gpus.push_back({{"name", PercentEscape(gpu.name)},
                    {"memory_bytes", gpu.memory_bytes},
                    {"compute_capability", StrCat(gpu.major, ".", gpu.minor)},
                    {"copy_engines", gpu.copy_engines},
                    {"pci_bus_id", gpu.pci_bus_id}});
  }
  return {{"schema", "shardpack.gpu/1"},
          {"gpus", gpus},
          {"why_none", PercentEscape(probe.why_none)},
          {"driver", probe.driver},
          {"driver_cuda", probe.driver_cuda},
          {"built_with_cuda", probe.built_with_cuda},
          {"runtime", probe.runtime},
          {"needed_driver", probe.needed_driver},
          {"why_unusable", probe.why_unusable},
          {"nvjpeg", PercentEscape(probe.nvjpeg)},
          {"why_no_nvjpeg", PercentEscape(probe.why_no_nvjpeg)}};
}

}  // namespace

ExitCode RunInfo(const CommandLine& line, Terminal& terminal) {
  std::string gpu;
  if (line.samples().gpu) {
    const GpuProbe probe = ProbeGpus();
    gpu = line.json ? GpuJson(probe).dump() + "\n" : GpuText(probe);
  }
  if (line.arguments.empty()) return PrintResult(gpu, terminal);
  absl::StatusOr<Dataset> dataset = OpenShown(line.arguments, /*same_labels=*/false, terminal);
  if (!dataset.ok()) return Fail(dataset.status(), terminal);
  absl::StatusOr<Facts> facts = Gather(*dataset);
  if (!facts.ok()) return Fail(facts.status(), terminal);
  // Quietly: whether it can be opened.
  std::string text = line.json ? Json(*dataset, *facts) : "";
  if (!line.json && !line.quiet) text = Text(*dataset, *facts);
  const ExitCode printed = PrintResult(text + gpu, terminal);
  // All else comes from the manifest, which is whole.
  if (facts->uncounted.ok()) return printed;
  return Worse(printed, Fail(facts->uncounted, terminal));
}

}  // namespace shardpack::cli
