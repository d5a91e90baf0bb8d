#include "converters/extracting/extractor.h"

#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "converters/extracting/extract_path.h"
#include "converters/listing/sidecars.h"
#include "converters/sources/dataset_source.h"
#include "formats/core/sample.h"
#include "formats/io/bytes.h"
#include "formats/io/status_macros.h"
#include "readers/dataset/foreign_shard.h"

namespace shardpack {
namespace {

std::string KeyOf(const SampleRow& row) {
  const std::string_view key = row.index.key(row.record);
  return key.empty() ? absl::StrCat(row.shard.name, "-", row.record) : std::string(key);
}

std::string PathOf(const SampleRow& row) {
  const std::string_view source = row.index.source_path(row.record);
  return source.empty() ? KeyOf(row) : std::string(source);
}

}  // namespace

Extractor::Extractor(const Dataset& dataset, OutputTree& out, LabelReader read_label,
                     ExtractObserver& observer)
    : dataset_(dataset),
      out_(out),
      read_label_(std::move(read_label)),
      observer_(observer),
      suffixes_(SidecarSuffixes(dataset)),
      made_json_(HasMadeJson(dataset)) {}

absl::Status Extractor::Extract(const SampleRow& row) {
  const SampleLocation at = dataset_.Locate(row.id);
  bool any = false;
  for (size_t f = 0; f < row.index.fields(); ++f) {
    if (!row.index.has_field(row.record, f)) continue;
    any = true;
    const std::string field(row.index.field_name(f));
    // --with-json made it from facts about the image; the source had no such file.
    if (made_json_ && field == kMetadataField) continue;
    content_.resize(row.index.field(row.record, f).length);
    const absl::Status read =
        dataset_.ReadField(at, f, std::as_writable_bytes(std::span(content_)));
    if (absl::IsDataLoss(read)) {
      observer_.OnWithheld(row.index.key(row.record),
                           absl::StrCat(std::string(read.message()),
                                        "; pack validate says what is wrong with the shard"));
      continue;
    }
    if (!read.ok()) return read;
    Add(field, NameOf(row, field));
  }
  if (!any) observer_.OnWithheld(row.index.key(row.record), "the sample has no field");
  bool label_file = false;
  // WebDataset shards store the label as a separate file, which is not a field.
  if (row.index.source_path(row.record).empty() && dataset_.format() == kLabelTextFormat) {
    ASSIGN_OR_RETURN(std::optional<std::string> label, LabelFile(row));
    if (label) {
      label_file = true;
      content_ = *std::move(label);
      Add(std::string(kLabelTextField),
          {KeyOf(row), absl::StrCat(".", std::string(kLabelTextField))});
    }
  }
  observer_.OnSample(PathOf(row), row.index.label(row.record), label_file);
  return WriteAll(row, label_file);
}

// The label as written in the shard, such as "007" or "-1"; a number would not keep the spelling.
absl::StatusOr<std::optional<std::string>> Extractor::LabelFile(const SampleRow& row) {
  const std::optional<size_t> field = row.index.FindField(kLabelTextField);
  if (field && row.index.has_field(row.record, *field))
    return std::nullopt;  // a text field, which is written anyway
  if (row.shard.data_path != shard_.path()) {
    ASSIGN_OR_RETURN(File shard, File::OpenRead(row.shard.data_path));
    shard_ = std::move(shard);
  }
  const Extent record = row.index.record(row.record);
  return read_label_(shard_, record.offset, record.length);
}

// If pixels were changed, the image may have another format than its source.
std::string Extractor::WithItsEnding(std::string_view path, ImageFormat format) const {
  if (dataset_.manifest() == nullptr || dataset_.manifest()->facts.pixels.count("format") == 0)
    return std::string(path);
  return NamedAs(std::string(path), format);
}

// The name of the field whose bytes are in content_.
Extractor::FileName Extractor::NameOf(const SampleRow& row, const std::string& field) const {
  const std::string_view source = row.index.source_path(row.record);
  const std::string stem = source.empty() ? KeyOf(row) : std::string(PathStem(source));
  if (field != kImageField) {
    const auto suffix = suffixes_.find(field);
    return {stem, absl::StrCat(".", suffix == suffixes_.end() ? field : suffix->second)};
  }
  const ImageFormat format = ImageOf(row, AsBytes(content_)).format;
  if (source.empty()) return {stem, absl::StrCat(".", std::string(ImageExtension(format)))};
  const std::string path = WithItsEnding(source, format);
  return {std::string(PathStem(path)), path.substr(PathStem(path).size())};
}

// The name that --fields uses for it.
std::string Extractor::PartOf(const std::string& field) const {
  const auto suffix = suffixes_.find(field);
  return suffix == suffixes_.end() ? field : absl::StrCat(suffix->second, ":", field);
}

// Adds content_ as a file of the sample.
void Extractor::Add(std::string field, FileName name) {
  pending_.push_back({std::move(field), std::move(name), std::move(content_)});
  content_.clear();
}

// `label_file`: the last file is the label.
absl::Status Extractor::WriteAll(const SampleRow& row, bool label_file) {
  std::vector<OutputTree::NewFile> together;
  for (const Pending& file : pending_) {
    std::string path = HarmlessPath(file.name.stem + file.name.ending);
    const std::string ending = HarmlessPath(file.name.ending);
    const size_t kept = !file.name.ending.empty() && path.ends_with(ending) ? ending.size() : 0;
    together.push_back({std::move(path), kept, AsBytes(file.content)});
  }
  ASSIGN_OR_RETURN(const std::vector<OutputTree::Written> written, out_.WriteTogether(together));
  std::string image;
  std::vector<std::string> parts;
  for (size_t i = 0; i < written.size(); ++i) {
    const Pending& file = pending_[i];
    if (!written[i].path.ok()) {
      observer_.OnWithheld(row.index.key(row.record),
                           std::string(written[i].path.status().message()));
      continue;
    }
    const std::string wanted = file.name.stem + file.name.ending;
    if (*written[i].path != wanted) observer_.OnRenamed(wanted, together[i].path, *written[i].path);
    if (file.field == kImageField) {
      image = *written[i].path;
    } else if (!label_file || i + 1 < written.size()) {
      parts.push_back(PartOf(file.field));
    }
    if (!written[i].fresh) continue;  // another sample has the same file
    ++files;
    ++of_field[file.field];
    bytes += file.content.size();
  }
  pending_.clear();
  if (!image.empty()) observer_.OnImage(image, row.index.label(row.record), parts);
  return absl::OkStatus();
}

}  // namespace shardpack
