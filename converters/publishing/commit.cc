#include "converters/publishing/commit.h"

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "converters/listing/first_few.h"
#include "converters/planning/record_order.h"
#include "converters/publishing/replacement.h"
#include "converters/publishing/shard_results.h"
#include "converters/publishing/skip_budget.h"
#include "formats/core/shard_index.h"
#include "formats/io/escape.h"
#include "formats/io/status_macros.h"
#include "images/pixels/pixel_sums.h"

namespace shardpack {
namespace {

constexpr size_t kNamedFiles = 3;

ManifestCounts CountAll(const Plan& plan, std::span<const ShardResult> results,
                        std::span<const Skip> skips) {
  ManifestCounts counts;
  counts.seen = plan.listing().rows() + plan.listing().left_out;
  for (const ShardResult& result : results) counts.packed += result.records;
  counts.filtered = plan.filtered() + plan.listing().left_out;
  counts.failed =
      static_cast<uint64_t>(std::count_if(skips.begin(), skips.end(), [](const Skip& skip) {
        return skip.reason == SkipReason::kDecodeFailed;
      }));
  counts.skipped = skips.size() - counts.failed;
  counts.ignored = plan.listing().ignored;
  return counts;
}

class Publisher {
 public:
  Publisher(const Plan& plan, std::span<const ShardResult> results, OutputDir& out)
      : plan_(plan), results_(results), out_(out) {}

  absl::StatusOr<Manifest> Make(const CommitOptions& options) {
    ASSIGN_OR_RETURN(const std::vector<Skip> skips, AllSkips(plan_, results_));
    // Record order and copies are of all rows.
    const bool all_rows = plan_.is_reordered() || plan_.options().dedupe == Dedupe::kDrop;
    if (all_rows) RETURN_IF_ERROR(plan_.CheckAllSlices());
    manifest_.counts = CountAll(plan_, results_, skips);
    absl::Status status = CheckSkips(plan_, results_, manifest_.counts, skips, options, out_);
    if (!status.ok()) return status;
    Describe(options);
    if (const absl::Status other = CheckIdentity(manifest_, options.expect); !other.ok()) {
      return absl::DataLossError(
          absl::StrCat(std::string(other.message()), "; nothing was published"));
    }
    if (std::string lines = SkippedLines(plan_, skips); !lines.empty())
      Add({std::string(kSkippedName), std::move(lines)});
    if (plan_.options().sha256) Add({std::string(kSha256Name), Sha256Lines(manifest_)});
    if (plan_.is_reordered()) Add({std::string(kRecordOrderName), RecordOrderBytes(plan_, skips)});
    if (status.ok()) status = AddSidecars();
    if (status.ok()) status = CheckNames();
    if (status.ok()) status = RefuseStrangers();
    if (status.ok()) status = WriteExtras();
    if (!status.ok()) return status;
    std::sort(manifest_.files.begin(), manifest_.files.end(),
              [](const FileEntry& a, const FileEntry& b) { return a.name < b.name; });
    return std::move(manifest_);
  }

 private:
  void Add(NamedBytes file) { extras_.push_back(std::move(file)); }

  void Describe(const CommitOptions& options) {
    const Listing& listing = plan_.listing();
    manifest_.format = plan_.format().name;
    manifest_.layout = plan_.layout();
    manifest_.label_base = FindLayout(plan_.format(), plan_.layout())->label_base;
    manifest_.tool = options.tool;
    manifest_.options = plan_.options().ToMap();
    std::string canonical;
    for (const auto& [name, value] : manifest_.options)
      absl::StrAppend(&canonical, name, "=", value, "\n");
    manifest_.options_digest = Xxh3_128(AsBytes(canonical));
    manifest_.plan_digest = plan_.digest();
    manifest_.source_root = listing.root;
    manifest_.source_times = plan_.times_digest().ToHex();
    manifest_.source_files = listing.rows();
    manifest_.source_bytes = plan_.source_bytes();
    manifest_.listing_digest = plan_.listing_digest();
    manifest_.classes = listing.classes;
    for (const ShardResult& result : results_) {
      const std::string& split = plan_.splits()[plan_.shards()[result.shard].split];
      manifest_.splits[split] += result.records;
      manifest_.shards.push_back({plan_.shards()[result.shard].name, split, result.file.bytes,
                                  result.records, result.file.xxh3_128, result.index,
                                  result.sha256});
      manifest_.shards.back().planned = PlannedOf(result);
      manifest_.files.push_back(result.file);
      manifest_.files.push_back(result.index);
      MergeFacts(result.facts, manifest_.facts);
    }
    if (plan_.options().compute_stats) DescribePixels();
  }

  // See ManifestShard::planned.
  std::map<std::string, uint64_t> PlannedOf(const ShardResult& result) const {
    std::map<std::string, uint64_t> planned;
    const uint64_t records = plan_.shards()[result.shard].count;
    if (result.records == records) return planned;
    planned[std::string(kPlannedRecords)] = records;
    // If sizes change, the writer gets the totals of the packed samples.
    if (plan_.sizes_change() && FindLayout(plan_.format(), plan_.layout())->needs_totals)
      return planned;
    for (const FieldTotal& field : plan_.Spec(result.shard).fields) {
      planned[absl::StrCat(std::string(kPlannedBytesOf), field.name)] = field.max_bytes;
    }
    return planned;
  }

  // Gray only if all images are.
  void DescribePixels() {
    DatasetFacts& facts = manifest_.facts;
    PixelSums sums;
    sums.pixels = facts.pixel_sums["pixels"];
    // Their sums may have wrapped around: better none than wrong ones.
    constexpr uint64_t kMostPixels = UINT64_MAX / (255 * 255);  // images/pixels/pixel_sums.h
    if (sums.pixels > kMostPixels) {
      std::erase_if(facts.pixel_sums, [](const auto& sum) {
        return sum.first.starts_with("sum_") || sum.first.starts_with("squares_");
      });
      return;
    }
    for (size_t c = 0; c < sums.sum.size(); ++c) {
      sums.sum[c] = facts.pixel_sums[absl::StrCat("sum_", c)];
      sums.squares[c] = facts.pixel_sums[absl::StrCat("squares_", c)];
    }
    const size_t channels = plan_.RawImage().channels == 1 ? 1 : sums.sum.size();
    const auto text = [&](const std::array<double, 3>& values) {
      return absl::StrJoin(
          std::span(values).first(channels), ",",
          [](std::string* out, double value) { absl::StrAppendFormat(out, "%.9f", value); });
    };
    facts.pixel_stats = {{"mean", text(sums.Mean())}, {"std", text(sums.Deviation())}};
  }

  absl::Status AddSidecars() {
    const absl::StatusOr<std::vector<FileMaker>> makers =
        FileMakersOf(plan_.format(), *FindLayout(plan_.format(), plan_.layout()),
                     plan_.options().sidecar_indexes);
    if (!makers.ok() || makers->empty()) return makers.status();
    std::vector<ShardIndex> indexes;
    for (const ShardResult& result : results_) {
      ASSIGN_OR_RETURN(ShardIndex index,
                       ShardIndex::Open(out_.PathOf(result.index.name), result.file.bytes,
                                        result.index.xxh3_128));
      indexes.push_back(std::move(index));
    }
    const std::string scratch = out_.StageFolder();
    const SidecarInput input{out_.path(), manifest_, indexes, scratch};
    for (const FileMaker make : *makers) {
      ASSIGN_OR_RETURN(std::vector<NamedBytes> files, make(input));
      for (NamedBytes& file : files) Add(std::move(file));
    }
    return absl::OkStatus();
  }

  // Index files may be named after splits, whose names come from users.
  absl::Status CheckNames() const {
    std::set<std::string_view> names = {kManifestName};
    for (const FileEntry& file : manifest_.files) names.insert(file.name);
    for (const NamedBytes& file : extras_) {
      if (IsDatasetFileName(file.name) && names.insert(file.name).second) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("two files would be called ", EscapeForTerminal(file.name),
                       "; nothing was published. Rename the split, or leave "
                       "--sidecar-index out"));
    }
    return absl::OkStatus();
  }

  absl::Status WriteExtras() {
    std::vector<std::pair<std::string, std::string_view>> files;
    for (const NamedBytes& file : extras_) files.emplace_back(file.name, file.bytes);
    RETURN_IF_ERROR(files.empty() ? absl::OkStatus() : out_.ClaimExtras(files));
    for (const NamedBytes& file : extras_) {
      ASSIGN_OR_RETURN(FileEntry entry, out_.WriteFile(file.name, file.bytes));
      manifest_.files.push_back(std::move(entry));
    }
    return absl::OkStatus();
  }

  absl::Status RefuseStrangers() const {
    std::set<std::string> ours = FilesOf(manifest_);
    for (const NamedBytes& file : extras_) ours.insert(file.name);
    // The manifest is written last; an existing one is not ours, except beside OUT.
    if (!out_.replaces()) ours.erase(std::string(kManifestName));
    return CheckHoldsOnly(out_.path(), ours,
                          "it is not part of this dataset; move it away and run again");
  }

  const Plan& plan_;
  const std::span<const ShardResult> results_;
  OutputDir& out_;
  Manifest manifest_;
  std::vector<NamedBytes> extras_;
};

// Others may have removed or cut what this run has built.
absl::Status CheckAllThere(std::span<const ShardResult> results, const OutputDir& out) {
  std::vector<std::string> whys;
  for (const ShardResult& result : results) {
    for (const FileEntry* file : {&result.file, &result.index}) {
      std::string why;
      ASSIGN_OR_RETURN(const bool there, Matches(out.PathOf(file->name), *file, ShardLook::kSize,
                                                 &why, out.options().stop));
      if (!there) whys.push_back(std::move(why));
    }
  }
  if (whys.empty()) return absl::OkStatus();
  const size_t count = whys.size();
  whys.resize(std::min(count, kNamedFiles));
  return absl::DataLossError(absl::StrCat(
      EscapeForTerminal(out.path()), " was changed while this run built in it: ",
      AndMore(whys, count), "; nothing was published. The same command builds these shards again"));
}

}  // namespace

std::string SkippedLines(const Plan& plan, std::span<const Skip> skips) {
  const Listing& listing = plan.listing();
  std::string text;
  const auto add = [&](uint64_t row, std::string_view reason, const std::string& detail) {
    const nlohmann::json line = {{"path", PercentEscape(listing.Path(row))},
                                 {"reason", std::string(reason)},
                                 {"detail", PercentEscape(detail)}};
    absl::StrAppend(&text, line.dump(), "\n");
  };
  for (const Skip& skip : skips) add(skip.row, SkipReasonName(skip.reason), skip.detail);
  for (const Copy& copy : plan.DroppedCopies()) {
    const bool conflict = listing.label[copy.row] != listing.label[copy.original];
    add(copy.row, kDuplicateReason,
        absl::StrCat("the same bytes as ", listing.Path(copy.original),
                     conflict ? ", which has another label" : ""));
  }
  return text;
}

absl::StatusOr<std::vector<Skip>> AllSkips(const Plan& plan, std::span<const ShardResult> results) {
  std::vector<Skip> skips = plan.listing().skips;
  skips.insert(skips.end(), plan.skips().begin(), plan.skips().end());
  if (!skips.empty()) RETURN_IF_ERROR(plan.CheckSlice(plan.shards().size()));
  for (const ShardResult& result : results) {
    if (result.skips.empty()) continue;
    const PlannedShard& shard = plan.shards()[result.shard];
    RETURN_IF_ERROR(plan.CheckSlice(result.shard));
    std::map<uint64_t, uint64_t> rows;
    for (const Skip& skip : result.skips) rows[skip.row] = 0;
    size_t found = 0;
    for (uint64_t p = shard.first; p < shard.first + shard.count; ++p) {
      const auto row = rows.find(plan.source_row(plan.row(p)));
      if (row == rows.end()) continue;
      row->second = plan.row(p);
      ++found;
    }
    if (found < rows.size()) {
      return absl::DataLossError(absl::StrCat("the journal ", EscapeForTerminal(result.journal),
                                              " has skipped inputs of shard ", result.shard,
                                              " that the plan does not have in it"));
    }
    for (const Skip& skip : result.skips)
      skips.push_back({rows[skip.row], skip.reason, skip.detail});
  }
  std::sort(skips.begin(), skips.end(), [&](const Skip& a, const Skip& b) {
    return plan.source_row(a.row) < plan.source_row(b.row);
  });
  return skips;
}

std::string Sha256Lines(const Manifest& manifest) {
  std::string text;
  for (const ManifestShard& shard : manifest.shards) {
    absl::StrAppend(&text, shard.sha256, "  ", manifest.DataFileOf(shard), "\n");
  }
  return text;
}

absl::StatusOr<std::vector<FileMaker>> FileMakersOf(const Format& format, const LayoutSpec& layout,
                                                    std::span<const std::string> kinds) {
  std::vector<FileMaker> makers;
  if (layout.files != nullptr) makers.push_back(layout.files);
  for (const std::string& kind : kinds) {
    const auto spec = std::find_if(format.sidecars.begin(), format.sidecars.end(),
                                   [&](const SidecarSpec& each) { return each.name == kind; });
    if (spec == format.sidecars.end()) {
      return absl::InvalidArgumentError(absl::StrCat("format ", std::string(format.name),
                                                     " has no --sidecar-index ",
                                                     EscapeForTerminal(kind)));
    }
    makers.push_back(spec->make);
  }
  return makers;
}

absl::Status CheckIdentity(const Manifest& manifest, const std::optional<Digest>& expected) {
  if (!expected || *expected == manifest.Identity()) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("this dataset is ", IdentityText(manifest.Identity()),
                                          ", --expect says ", IdentityText(*expected)));
}

absl::StatusOr<Manifest> Commit(const Plan& plan, std::span<const ShardResult> results,
                                OutputDir& out, const CommitOptions& options) {
  if (results.size() != plan.shards().size()) {
    std::set<uint32_t> done;
    for (const ShardResult& result : results) done.insert(result.shard);
    uint32_t missing = 0;
    while (done.count(missing) > 0) ++missing;
    return absl::FailedPreconditionError(
        absl::StrCat(plan.shards().size() - results.size(), " of ", plan.shards().size(),
                     " shards are not built yet, the first is number ", missing, " (",
                     plan.shards()[missing].name, ")"));
  }
  ASSIGN_OR_RETURN(Manifest manifest, Publisher(plan, results, out).Make(options));
  absl::Status status = out.SyncFolder();
  if (status.ok()) status = out.CheckFinishedUnchanged();
  if (status.ok()) status = CheckAllThere(results, out);
  if (status.ok() && out.options().stopped()) status = absl::CancelledError("stopped by a signal");
  absl::StatusOr<FileEntry> written = absl::InternalError("not written");
  if (status.ok()) {
    written = out.WriteFile(std::string(kManifestName), manifest.ToJson());
    status = written.status();
  }
  if (status.ok()) status = out.SyncFolder();
  if (status.ok()) status = out.Close();
  if (!status.ok()) return status;
  return manifest;
}

}  // namespace shardpack
