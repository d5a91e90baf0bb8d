#include "formats/tfrecord/tfds_files.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "formats/core/manifest.h"
#include "formats/io/file.h"
#include "formats/tfrecord/record_framing.h"
#include "formats/tfrecord/tfrecord_layout.h"

namespace shardpack {
namespace {

using Json = nlohmann::json;

constexpr char kName[] = "dataset", kVersion[] = "1.0.0";
constexpr char kTemplate[] = "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}";
constexpr std::string_view kSpace = " \t\n\v\f\r";

std::string FeatureClass(const char* name) {
  return absl::StrCat("tensorflow_datasets.core.features.", name);
}

// The format of all images, or "" if they differ; readers inspect the content anyway.
std::string EncodingFormat(const DatasetFacts& facts) {
  if (facts.image_formats.size() != 1) return "";
  const std::string& format = facts.image_formats.begin()->first;
  return format == "jpg" ? "jpeg" : format == "png" ? "png" : "";
}

// Proto JSON: 64-bit numbers are strings; -1 means unknown.
Json Features(const Manifest& manifest) {
  Json image = {{"shape", {{"dimensions", {"-1", "-1", "3"}}}}, {"dtype", "uint8"}};
  const std::string encoding = EncodingFormat(manifest.facts);
  if (!encoding.empty()) image["encodingFormat"] = encoding;
  Json features = Json::object();
  features[kFeatureTfdsImage] = {{"pythonClassName", FeatureClass("image_feature.Image")},
                                 {"image", std::move(image)}};
  features[kFeatureFilename] = {{"pythonClassName", FeatureClass("text_feature.Text")},
                                {"text", Json::object()}};
  if (!manifest.classes.empty()) {
    const Json label = {{"numClasses", absl::StrCat(manifest.classes.size())}};
    features[kFeatureTfdsLabel] = {
        {"pythonClassName", FeatureClass("class_label_feature.ClassLabel")}, {"classLabel", label}};
  }
  return {{"pythonClassName", FeatureClass("features_dict.FeaturesDict")},
          {"featuresDict", {{"features", std::move(features)}}}};
}

Json DatasetInfo(const Manifest& manifest) {
  struct Split {
    Json shard_lengths = Json::array();
    uint64_t bytes = 0;
  };
  std::map<std::string, Split> splits;
  for (const ManifestShard& shard : manifest.shards) {
    Split& split = splits[shard.split];
    split.shard_lengths.push_back(absl::StrCat(shard.records));
    split.bytes += shard.bytes - std::min(shard.bytes, shard.records * kRecordOverheadBytes);
  }
  Json list = Json::array();
  for (auto& [name, split] : splits) {
    list.push_back({{"name", name},
                    {"shardLengths", std::move(split.shard_lengths)},
                    {"numBytes", absl::StrCat(split.bytes)},
                    {"filepathTemplate", kTemplate}});
  }
  return {{"name", kName}, {"version", kVersion}, {"fileFormat", "tfrecord"}, {"splits", list}};
}

std::string LabelLine(const std::string& name) {
  const size_t begin = std::min(name.find_first_not_of(kSpace), name.size());
  const size_t end = begin == name.size() ? begin : name.find_last_not_of(kSpace) + 1;
  std::string line;
  for (size_t i = 0; i < begin; ++i) absl::StrAppendFormat(&line, "\\x%02x", name[i]);
  line.append(EscapeForTerminal(std::string_view(name).substr(begin, end - begin)));
  for (size_t i = end; i < name.size(); ++i) absl::StrAppendFormat(&line, "\\x%02x", name[i]);
  return line + "\n";
}

}  // namespace

std::string TfdsShardName(std::string_view split, uint32_t number, uint32_t total) {
  const bool possible = !split.empty() && std::all_of(split.begin(), split.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  });
  if (!possible) return "";
  return absl::StrFormat("%s-%s.tfrecord-%05d-of-%05d", kName, std::string(split), number, total);
}

absl::StatusOr<std::vector<NamedBytes>> MakeTfdsFiles(const SidecarInput& input) {
  const Manifest& manifest = input.manifest;
  std::vector<NamedBytes> files = {{"dataset_info.json", DatasetInfo(manifest).dump(1) + "\n"},
                                   {"features.json", Features(manifest).dump(1) + "\n"}};
  if (manifest.classes.empty()) return files;
  std::string labels;
  for (const std::string& name : manifest.classes) labels += LabelLine(name);
  files.push_back({"label.labels.txt", std::move(labels)});
  return files;
}

}  // namespace shardpack
