#include "validators/checks/unpacked_check.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "formats/core/shard_index.h"
#include "formats/io/escape.h"
#include "formats/io/file.h"
#include "formats/io/hash.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

constexpr std::string_view kSkippedName = "skipped.jsonl";
constexpr uint64_t kMaxSkippedBytes = uint64_t{4} << 30;
constexpr size_t kMaxMoved = 100'000;

std::string_view BaseName(std::string_view path) { return path.substr(path.rfind('/') + 1); }

class UnpackedCheck {
 public:
  UnpackedCheck(const std::string& dataset, const Manifest& manifest, const std::string& root,
                FindingSink& findings)
      : dataset_(dataset), manifest_(manifest), root_(root), findings_(findings) {}

  absl::Status Read();
  void Compare(const SourceVisit& visit);
  void ReportUnpacked(std::vector<std::string>& not_checked);

 private:
  struct Known {
    int64_t label = kNoLabel;
    bool skipped = false, seen = false;
  };
  struct Gone {
    std::string path;
    int64_t label;
    uint64_t bytes, hash;
  };
  absl::StatusOr<ShardIndex> Open(const ManifestShard& shard) const {
    return ShardIndex::Open(absl::StrCat(dataset_, "/", shard.index.name), shard.bytes,
                            shard.index.xxh3_128);
  }
  absl::Status ReadSkipped();
  std::string ClassOf(int64_t label) const;
  void FindGone();
  bool ReportMoved(const std::string& path, const std::string& class_name);
  void Report(const std::string& detail) const {
    Finding finding = MakeFinding(FindingId::kSourceMismatch, kManifestName);
    finding.detail = detail;
    findings_.Report(std::move(finding));
  }

  const std::string& dataset_;
  const Manifest& manifest_;
  const std::string& root_;
  FindingSink& findings_;
  absl::flat_hash_map<uint64_t, Known> known_;  // by hash of the path: a dataset may have many
  uint64_t listed_as_filtered_ = 0;
  std::vector<std::pair<std::string, std::string>> unpacked_;  // path and class
  std::multimap<std::string, Gone, std::less<>> gone_;         // by file name
};

std::string UnpackedCheck::ClassOf(int64_t label) const {
  if (label == kNoLabel) return "";
  const auto place = static_cast<size_t>(label);
  return label >= 0 && place < manifest_.classes.size() ? manifest_.classes[place]
                                                        : absl::StrCat(label);
}

absl::Status UnpackedCheck::Read() {
  for (const ManifestShard& shard : manifest_.shards) {
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
    if (path) known_[Xxh3_64(AsBytes(*path))] = {.skipped = true};
  }
  return absl::OkStatus();
}

void UnpackedCheck::Compare(const SourceVisit& visit) {
  visit([&](std::string_view path, std::string_view class_name) {
    const auto found = known_.find(Xxh3_64(AsBytes(path)));
    if (found == known_.end()) {
      unpacked_.emplace_back(path, class_name);
      return;
    }
    found->second.seen = true;
    if (found->second.skipped) return;
    const std::string packed = ClassOf(found->second.label);
    if (packed != class_name) {
      Report(absl::StrCat(std::string(path), ": packed as ",
                          packed.empty() ? "of no class" : packed, ", now ",
                          class_name.empty() ? "of no class" : std::string(class_name)));
    }
  });
}

// The records whose files the source no longer has.
void UnpackedCheck::FindGone() {
  for (const ManifestShard& shard : manifest_.shards) {
    const absl::StatusOr<ShardIndex> index = Open(shard);
    if (!index.ok()) return;  // was read before
    for (uint64_t record = 0; record < index->records() && gone_.size() < kMaxMoved; ++record) {
      const std::string_view path = index->source_path(record);
      const auto known = known_.find(Xxh3_64(AsBytes(path)));
      if (known == known_.end() || known->second.seen || index->fields() == 0) continue;
      gone_.emplace(std::string(BaseName(path)),
                    Gone{std::string(path), index->label(record), index->field(record, 0).length,
                         index->hash(record, 0)});
    }
  }
}

bool UnpackedCheck::ReportMoved(const std::string& path, const std::string& class_name) {
  const auto [begin, end] = gone_.equal_range(BaseName(path));
  for (auto each = begin; each != end; ++each) {
    const Gone& gone = each->second;
    const absl::StatusOr<std::string> text =
        ReadWholeFile(absl::StrCat(root_, "/", path), gone.bytes);
    if (!text.ok() || text->size() != gone.bytes || Xxh3_64(AsBytes(*text)) != gone.hash) continue;
    const std::string packed = ClassOf(gone.label);
    if (packed == class_name) {
      Report(absl::StrCat(path, ": packed from ", gone.path));
    } else {
      Report(absl::StrCat(path, ": packed from ", gone.path, " as ",
                          packed.empty() ? "of no class" : packed, ", now ",
                          class_name.empty() ? "of no class" : class_name));
    }
    gone_.erase(each);
    return true;
  }
  return false;
}

void UnpackedCheck::ReportUnpacked(std::vector<std::string>& not_checked) {
  if (unpacked_.empty()) return;
  FindGone();
  std::erase_if(unpacked_, [&](const auto& each) { return ReportMoved(each.first, each.second); });
  const uint64_t filtered = manifest_.counts.filtered;
  const uint64_t unlisted = filtered - std::min(filtered, listed_as_filtered_);
  if (unlisted == 0) {
    for (const auto& [path, class_name] : unpacked_)
      Report(absl::StrCat(path, ": not in the dataset"));
  } else if (unpacked_.size() > unlisted) {
    Report(absl::StrCat(unpacked_.size(), " files are not in the dataset, of which only ", unlisted,
                        " were left out as asked; the first is ", unpacked_[0].first));
  } else if (!unpacked_.empty()) {
    not_checked.push_back(absl::StrCat(
        "whether the ", unpacked_.size(),
        " files of the source that are not in the dataset are those that were left out as "
        "asked; the first is ",
        EscapeForTerminal(unpacked_[0].first)));
  }
}

}  // namespace

void CheckForUnpacked(const std::string& dataset, const Manifest& manifest, const std::string& root,
                      const SourceVisit& visit, FindingSink& findings,
                      std::vector<std::string>& not_checked) {
  UnpackedCheck check(dataset, manifest, root, findings);
  if (const absl::Status read = check.Read(); !read.ok()) {
    not_checked.push_back(absl::StrCat("which files of the source are not in the dataset: ",
                                       std::string(read.message())));
    return;
  }
  check.Compare(visit);
  check.ReportUnpacked(not_checked);
}

}  // namespace shardpack
