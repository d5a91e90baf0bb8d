#include <array>
#include <charconv>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "converters/planning/plan.h"

namespace shardpack {
namespace {

// The shortest text that reads back as the same number.
std::string Number(double value) {
  std::array<char, 32> text;
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
  return std::string(text.data(), end);
}

std::string OnOff(bool on) { return on ? "on" : "off"; }

template <typename Enum, size_t kCount>
std::string Word(const std::array<std::string_view, kCount>& words, Enum value) {
  return std::string(words[static_cast<size_t>(value)]);
}

constexpr std::array<std::string_view, 4> kSplitBy = {"hash", "random", "stratified", "dir"};
constexpr std::array<std::string_view, 3> kKey = {"auto", "path", "index"};
constexpr std::array<std::string_view, 4> kOnDuplicate = {"auto", "error", "suffix", "skip"};
constexpr std::array<std::string_view, 3> kDedupe = {"off", "report", "drop"};
constexpr std::array<std::string_view, 2> kVerify = {"header", "structure"};

}  // namespace

std::map<std::string, std::string> PlanOptions::ToMap() const {
  std::map<std::string, std::string> map = source;
  map["layout"] = layout;
  if (!image_field.empty()) map["image-field"] = image_field;
  if (with_metadata) map["with-json"] = "on";
  if (shards > 0) {
    map["shards"] = absl::StrCat(shards);
  } else if (samples_per_shard > 0) {
    map["samples-per-shard"] = absl::StrCat(samples_per_shard);
  } else {
    map["shard-size"] = shard_bytes == 0 ? "auto" : absl::StrCat(shard_bytes);
  }
  if (!splits.empty()) {
    map["split"] = absl::StrJoin(splits, ",", [](std::string* out, const auto& split) {
      absl::StrAppend(out, split.first, "=", Number(split.second));
    });
  }
  if (!splits.empty() || split_by == SplitBy::kDir) map["split-by"] = Word(kSplitBy, split_by);
  map["shuffle"] = OnOff(shuffle);
  map["seed"] = absl::StrCat(seed);
  map["key"] = Word(kKey, key);
  map["on-duplicate-key"] = Word(kOnDuplicate, on_duplicate);
  if (limit > 0) map["limit"] = absl::StrCat(limit);
  map["verify"] = Word(kVerify, verify);
  map["allow-truncated"] = OnOff(allow_truncated);
  map["max-pixels"] = absl::StrCat(max_pixels);
  map["max-file-size"] = absl::StrCat(max_file_bytes);
  if (min_side > 0) map["min-size"] = absl::StrCat(min_side);
  if (max_aspect > 0) map["max-aspect"] = Number(max_aspect);
  if (dedupe != Dedupe::kOff) map["dedupe"] = Word(kDedupe, dedupe);
  map.merge(pixels.ToMap());
  if (compute_stats) map["compute-stats"] = "on";
  if (sha256) map["sha256"] = "on";
  if (!sidecar_indexes.empty()) map["sidecar-index"] = absl::StrJoin(sidecar_indexes, ",");
  return map;
}

}  // namespace shardpack
