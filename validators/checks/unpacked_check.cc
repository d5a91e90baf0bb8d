#include "validators/checks/unpacked_check.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "formats/core/class_name.h"
#include "formats/core/shard_index.h"
#include "formats/io/escape.h"
#include "formats/io/file.h"
#include "formats/io/hash.h"
#include "formats/io/status_macros.h"
#include "images/probe/probe.h"

namespace shardpack {
namespace {

constexpr std::string_view kSkippedName = "skipped.jsonl";
constexpr uint64_t kMaxSkippedBytes = uint64_t{4} << 30;
constexpr size_t kMaxMoved = 100'000;
// Reasons in skipped.jsonl that can change with the file. Other reasons depend on the whole source
// (keys, labels) or on the transform.
constexpr std::array<std::string_view, 14> kFileReasons = {
    "empty",        "not-an-image", "truncated", "bad-crc", "pixel-limit",
    "not-regular",  "permission",   "io-error",  "changed", "vanished",
    "symlink-loop", "outside-root", "dangling",  "unpaired"};

// " as cat, now dog"
std::string AsAndNow(std::string_view packed, std::string_view now) {
  const auto shown = [](std::string_view name) {
    return name.empty() ? std::string("of no class") : std::string(name);
  };
  return absl::StrCat(" as ", shown(packed), ", now ", shown(now));
}

std::string_view BaseName(std::string_view path) { return path.substr(path.rfind('/') + 1); }

class UnpackedCheck {
 public:
  UnpackedCheck(const std::string& dataset, const Manifest& manifest, const CheckRun& run,
                FindingTally& findings)
      : dataset_(dataset), manifest_(manifest), run_(run), findings_(findings) {}

  absl::Status Read();
  void Compare(const SourceVisit& visit);
  // Cancelled if the run was stopped; files that were not checked are then not reported.
  absl::Status ReportUnpacked(std::vector<std::string>& not_checked);

 private:
  struct Known {
    int64_t label = kNoLabel;
    bool skipped = false, seen = false;
    bool may_be_usable = false;  // skipped for a reason that lay in the file
  };
  struct Gone {
    std::string path;
    int64_t label;
  };
  using Content = std::tuple<std::string, uint64_t, uint64_t>;  // file name, bytes, hash
  absl::StatusOr<ShardIndex> Open(const ManifestShard& shard) const {
    return ShardIndex::Open(absl::StrCat(dataset_, "/", shard.index.name), shard.bytes,
                            shard.index.xxh3_128);
  }
  absl::Status ReadSkipped();
  bool IsUsable(const std::string& path) const;
  void FindGone();
  std::optional<Gone> TakeGone(const std::string& path);
  bool ReportMoved(const std::string& path, const std::string& class_name);
  absl::Status CheckStop() const {
    return run_.Stopped() ? absl::CancelledError("stopped") : absl::OkStatus();
  }
  void Report(FindingId id, const std::string& detail) const {
    Finding finding = MakeFinding(id, kManifestName);
    finding.detail = detail;
    findings_.Report(std::move(finding));
  }

  const std::string& dataset_;
  const Manifest& manifest_;
  const CheckRun& run_;
  FindingTally& findings_;
  absl::flat_hash_map<uint64_t, Known> known_;  // by hash of the path: a dataset may have many
  uint64_t listed_as_filtered_ = 0;
  std::vector<std::pair<std::string, std::string>> unpacked_;  // path and class
  std::multimap<Content, Gone> gone_;
};

absl::Status UnpackedCheck::Read() {
  for (const ManifestShard& shard : manifest_.shards) {
    RETURN_IF_ERROR(CheckStop());
    ASSIGN_OR_RETURN(const ShardIndex index, Open(shard));
    for (uint64_t record = 0; record < index.records(); ++record)
      known_[Xxh3_64(AsBytes(index.source_path(record)))] = {.label = index.label(record)};
  }
  return ReadSkipped();
}

absl::Status UnpackedCheck::ReadSkipped() {
  const bool there = std::any_of(manifest_.files.begin(), manifest_.files.end(),
                                 [](const FileEntry& file) { return file.name == kSkippedName; });
  if (!there) return absl::OkStatus();
  ASSIGN_OR_RETURN(
      std::string text,
      ReadWholeFile(absl::StrCat(dataset_, "/", std::string(kSkippedName)), kMaxSkippedBytes));
  for (std::string_view rest = text; !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const auto line = nlohmann::json::parse(rest.substr(0, end), nullptr, false);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (!line.is_object() || !line.contains("path") || !line["path"].is_string()) continue;
    if (line.contains("reason") && line["reason"] == "duplicate") ++listed_as_filtered_;
    const auto path = PercentUnescape(line["path"].get_ref<const std::string&>());
    const bool of_file =
        line.contains("reason") &&
        std::find(kFileReasons.begin(), kFileReasons.end(), line["reason"]) != kFileReasons.end();
    if (path) known_[Xxh3_64(AsBytes(*path))] = {.skipped = true, .may_be_usable = of_file};
  }
  return absl::OkStatus();
}

void UnpackedCheck::Compare(const SourceVisit& visit) {
  visit([&](std::string_view path, std::string_view class_name) {
    if (run_.Stopped()) return;
    const auto found = known_.find(Xxh3_64(AsBytes(path)));
    if (found == known_.end()) {
      unpacked_.emplace_back(path, class_name);
      return;
    }
    found->second.seen = true;
    if (found->second.may_be_usable && IsUsable(std::string(path))) {
      Report(FindingId::kSourceExtra,
             absl::StrCat(std::string(path), ": skipped when it was packed, and usable now"));
    }
    if (found->second.skipped) return;
    const std::string packed = ClassName(manifest_.classes, found->second.label);
    if (packed != class_name) {
      Report(FindingId::kSourceClassMismatch,
             absl::StrCat(std::string(path), ": packed", AsAndNow(packed, class_name)));
    }
  });
}

// Applies the rules of a build with the manifest's options.
bool UnpackedCheck::IsUsable(const std::string& path) const {
  const auto option = [&](const char* name) {
    const auto found = manifest_.options.find(name);
    return found == manifest_.options.end() ? std::string() : found->second;
  };
  uint64_t most = 0;
  ProbeOptions probe;
  probe.level = option("verify") == "header" ? ProbeLevel::kHeader : ProbeLevel::kStructure;
  probe.allow_truncated = option("allow-truncated") == "on";
  if (!absl::SimpleAtoi(option("max-pixels"), &probe.max_pixels) ||
      !absl::SimpleAtoi(option("max-file-size"), &most) || !run_.open_source)
    return false;
  const absl::StatusOr<SourceFile> file = run_.open_source(path);
  if (!file.ok() || file->bytes > most) return false;
  std::vector<std::byte> bytes(file->bytes);
  const absl::StatusOr<size_t> got = file->ReadAt(0, bytes);
  return got.ok() && *got == bytes.size() && ProbeImage(bytes, probe).verdict == ProbeVerdict::kOk;
}

// Finds the records whose files are no longer in the source.
void UnpackedCheck::FindGone() {
  for (const ManifestShard& shard : manifest_.shards) {
    if (run_.Stopped()) return;
    const absl::StatusOr<ShardIndex> index = Open(shard);
    if (!index.ok()) return;  // has been read before
    for (uint64_t record = 0; record < index->records() && gone_.size() < kMaxMoved; ++record) {
      const std::string_view path = index->source_path(record);
      const auto known = known_.find(Xxh3_64(AsBytes(path)));
      if (known == known_.end() || known->second.seen || index->fields() == 0) continue;
      gone_.emplace(Content(BaseName(path), index->field(record, 0).length, index->hash(record, 0)),
                    Gone{std::string(path), index->label(record)});
    }
  }
}

// The first missing record that had this name and these bytes. Reads the file once, and only if its
// size matches one of them.
std::optional<UnpackedCheck::Gone> UnpackedCheck::TakeGone(const std::string& path) {
  const std::string name(BaseName(path));
  const auto named = gone_.lower_bound({name, 0, 0});
  if (named == gone_.end() || std::get<0>(named->first) != name || !run_.open_source)
    return std::nullopt;
  const absl::StatusOr<SourceFile> file = run_.open_source(path);
  if (!file.ok()) return std::nullopt;
  const auto alike = gone_.lower_bound({name, file->bytes, 0});
  if (alike == gone_.end() || std::get<0>(alike->first) != name ||
      std::get<1>(alike->first) != file->bytes)
    return std::nullopt;
  std::string text(file->bytes, '\0');
  const absl::StatusOr<size_t> got =
      file->ReadAt(0, std::as_writable_bytes(std::span(text.data(), text.size())));
  if (!got.ok() || *got != text.size()) return std::nullopt;
  const Content content(name, text.size(), Xxh3_64(AsBytes(text)));
  const auto found = gone_.lower_bound(content);
  if (found == gone_.end() || found->first != content) return std::nullopt;
  Gone gone = std::move(found->second);
  gone_.erase(found);
  return gone;
}

bool UnpackedCheck::ReportMoved(const std::string& path, const std::string& class_name) {
  const std::optional<Gone> gone = TakeGone(path);
  if (!gone) return false;
  const std::string packed = ClassName(manifest_.classes, gone->label);
  const bool same = packed == class_name;
  Report(
      same ? FindingId::kSourceMoved : FindingId::kSourceClassMismatch,
      absl::StrCat(path, ": packed from ", gone->path, same ? "" : AsAndNow(packed, class_name)));
  return true;
}

absl::Status UnpackedCheck::ReportUnpacked(std::vector<std::string>& not_checked) {
  RETURN_IF_ERROR(CheckStop());
  if (unpacked_.empty()) return absl::OkStatus();
  FindGone();
  const uint64_t filtered = manifest_.counts.filtered;
  const uint64_t unlisted = filtered - std::min(filtered, listed_as_filtered_);
  uint64_t lacking = 0;
  std::string first;
  for (const auto& [path, class_name] : unpacked_) {
    RETURN_IF_ERROR(CheckStop());
    if (ReportMoved(path, class_name)) continue;
    if (lacking++ == 0) first = path;
    if (unlisted == 0) Report(FindingId::kSourceExtra, path);
  }
  if (unlisted == 0 || lacking == 0) return absl::OkStatus();
  if (lacking > unlisted) {
    Report(FindingId::kSourceExtra, absl::StrCat(lacking, " files, of which only ", unlisted,
                                                 " were left out as asked; the first is ", first));
  } else {
    not_checked.push_back(absl::StrCat(
        "whether the ", lacking,
        " files of the source that are not in the dataset are those that were left out as "
        "asked; the first is ",
        EscapeForTerminal(first)));
  }
  return absl::OkStatus();
}

}  // namespace

void CheckForUnpacked(const std::string& dataset, const Manifest& manifest,
                      const SourceVisit& visit, const CheckRun& run, FindingTally& findings,
                      std::vector<std::string>& not_checked) {
  UnpackedCheck check(dataset, manifest, run, findings);
  absl::Status status = check.Read();
  if (status.ok()) check.Compare(visit);
  if (status.ok()) status = check.ReportUnpacked(not_checked);
  if (status.ok()) return;
  not_checked.push_back(absl::StrCat("which files of the source are not in the dataset: ",
                                     std::string(status.message())));
}

}  // namespace shardpack
