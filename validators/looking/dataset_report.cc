#include "validators/looking/dataset_report.h"

#include <tbb/task_arena.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "formats/io/resources.h"
#include "formats/io/status_macros.h"
#include "validators/looking/contact_sheet.h"
#include "validators/looking/copies_report.h"
#include "validators/looking/dataset_stats.h"
#include "validators/looking/html_writer.h"
#include "validators/looking/report_sections.h"
#include "validators/looking/report_style.h"

namespace shardpack {
namespace {

using namespace report_sections;  // NOLINT: these are its parts

// Nothing may be loaded and no script run, whatever the names in the page.
constexpr char kPolicy[] = "default-src 'none'; img-src data:; style-src 'unsafe-inline'";
// Room for what is written after the pictures were chosen.
constexpr uint64_t kReserveBytes = 4096;

std::string Written(const auto& write) {
  HtmlWriter page;
  write(page);
  return std::move(page).Take();
}

void WriteTop(HtmlWriter& page, const std::string& name) {
  page.Open("head");
  page.Empty("meta", {{"charset", "utf-8"}});
  page.Empty("meta", {{"http-equiv", "Content-Security-Policy"}, {"content", kPolicy}});
  page.Empty("meta", {{"name", "viewport"}, {"content", "width=device-width, initial-scale=1"}});
  page.Element("title", absl::StrCat(name.empty() ? "dataset" : Shortened(name), " - shardpack"));
  page.Open("style");
  page.Trusted(kReportStyle);
  page.Close();
  page.Close();
  page.NewLine();
}

// `sections`: what HtmlWriters have written.
std::string Page(const std::string& name, const std::vector<std::string>& sections) {
  std::string html = "<!DOCTYPE html>\n<html lang=\"en\">\n";
  html += Written([&](HtmlWriter& page) { WriteTop(page, name); });
  html += "<body>\n<main>\n";
  for (const std::string& section : sections) html += section;
  html += "</main>\n";
  html += Written([](HtmlWriter& page) {
    page.Open("footer");
    page.Element("p",
                 "Written by pack report. Sizes are pixels as stored, before an EXIF "
                 "orientation is applied; shares are those of all samples.",
                 {{"class", "soft"}});
    page.Close();
  });
  return html + "\n</body>\n</html>\n";
}

uint64_t SizeOf(const std::vector<std::string>& sections) {
  uint64_t size = 0;
  for (const std::string& section : sections) size += section.size();
  return size;
}

absl::StatusOr<DatasetReport> Make(const Dataset& dataset, const ReportOptions& options,
                                   NearProgress& progress, const std::atomic<int>& stop) {
  ASSIGN_OR_RETURN(const DatasetStats stats,
                   GatherStats(dataset, {.folder = options.folder, .in_spite_of_damage = true}));
  const bool damaged = !stats.not_looked_at.empty();
  std::vector<std::string> before = {Written([&](HtmlWriter& page) {
    WriteHead(page, options.name, stats);
    WriteDamage(page, stats);
    if (options.validation) WriteValidation(page, *options.validation, stats.identity);
    WriteNotes(page, stats);
    WriteClasses(page, stats);
    WriteSizes(page, stats);
  })};
  std::vector<std::string> after = {Written([&](HtmlWriter& page) {
    WriteSkipped(page, stats);
    WriteShards(page, stats);
    WriteFacts(page, stats, dataset.manifest());
  })};
  const SampleRows rows({&dataset, 1});
  const uint64_t text =
      SizeOf(before) + SizeOf(after) + Page(options.name, {}).size() + kReserveBytes;
  uint64_t left = options.max_bytes - std::min(options.max_bytes, text);
  // Copies cannot be found where indexes are missing.
  if (!damaged) {
    ASSIGN_OR_RETURN(
        const CopiesReport copies,
        FindCopies({&dataset, 1},
                   {.near = options.near, .distance = options.distance, .jobs = options.jobs},
                   progress, stop));
    after.insert(after.begin(), Written([&](HtmlWriter& page) {
                   WriteCopies(page, copies, options.thumbs == 0 ? 0 : left / 4);
                 }));
    left -= std::min<uint64_t>(left, after.front().size());
  }
  if (stop.load() != 0) return absl::CancelledError("stopped");
  const ContactSheet sheet = MakeContactSheet(rows, {.each = options.thumbs, .budget_bytes = left});
  const absl::StatusOr<Thumbnail> mean = ThumbnailMaker().OfMean(sheet.mean);
  const std::vector<std::string> classes(dataset.classes().begin(), dataset.classes().end());
  before.push_back(Written([&](HtmlWriter& page) {
    WriteSheet(page, sheet, mean.ok() ? *mean : Thumbnail(), classes);
  }));
  before.insert(before.end(), after.begin(), after.end());
  return DatasetReport{Page(options.name, before), damaged};
}

}  // namespace

absl::StatusOr<DatasetReport> MakeReport(const Dataset& dataset, const ReportOptions& options,
                                         NearProgress& progress, const std::atomic<int>& stop) {
  tbb::task_arena arena(options.jobs > 0 ? options.jobs : AvailableCores());
  return arena.execute([&] { return Make(dataset, options, progress, stop); });
}

DatasetReport MakeReportOfManifest(const Manifest& manifest, const std::string& why,
                                   const ReportOptions& options) {
  DatasetStats stats;
  stats.format = manifest.format;
  stats.layout = manifest.layout;
  stats.identity = IdentityText(manifest.Identity());
  stats.has_manifest = true;
  stats.shards = manifest.shards.size();
  stats.formats = manifest.facts.image_formats;
  stats.filtered = manifest.counts.filtered;
  stats.pixel_stats = manifest.facts.pixel_stats;
  stats.not_looked_at.push_back(why);
  for (const ManifestShard& shard : manifest.shards) {
    stats.samples += shard.records;
    stats.shard_bytes += shard.bytes;
    auto split = std::find_if(stats.splits.begin(), stats.splits.end(),
                              [&](const SplitStats& each) { return each.name == shard.split; });
    if (split == stats.splits.end()) {
      split = stats.splits.insert(split, SplitStats{});
      split->name = shard.split;
      split->min_shard_samples = shard.records;
      split->min_shard_bytes = shard.bytes;
    }
    split->samples += shard.records;
    split->shard_bytes += shard.bytes;
    ++split->shards;
    split->min_shard_samples = std::min(split->min_shard_samples, shard.records);
    split->max_shard_samples = std::max(split->max_shard_samples, shard.records);
    split->min_shard_bytes = std::min(split->min_shard_bytes, shard.bytes);
    split->max_shard_bytes = std::max(split->max_shard_bytes, shard.bytes);
  }
  const std::string sections = Written([&](HtmlWriter& page) {
    WriteHead(page, options.name, stats);
    WriteDamage(page, stats);
    if (options.validation) WriteValidation(page, *options.validation, stats.identity);
    WriteShards(page, stats);
    WriteFacts(page, stats, &manifest);
  });
  return {Page(options.name, {sections}), true};
}

}  // namespace shardpack
