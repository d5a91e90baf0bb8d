#include "formats/webdataset/webdataset_writer.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "formats/io/escape.h"
#include "formats/io/file.h"
#include "formats/io/relative_path.h"
#include "formats/io/status_macros.h"
#include "formats/tar/pax_records.h"
#include "formats/tar/tar_header.h"
#include "formats/webdataset/webdataset_layout.h"
#include "nlohmann/json.hpp"

namespace shardpack {
namespace {

// The name of a pax header itself, as in Python's tarfile. Only readers without pax support see it.
constexpr std::string_view kPaxHeaderName = "././@PaxHeader";
constexpr size_t kMaxDecimalBytes = 20;  // of an int64_t
constexpr std::string_view kMetadataFrame =
    R"({"class":"","filename":"","height":,"label":,"width":})";
constexpr size_t kMaxEscapedBytes = 6;                     // of a control character, \u001b
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD in UTF-8

template <typename... Parts>
absl::Status Refuse(std::string_view key, const Parts&... why) {
  return absl::InvalidArgumentError(absl::StrCat("key \"", EscapeForTerminal(key), "\": ", why...));
}

bool IsExtension(std::string_view name) {
  if (name.empty()) return false;
  // Readers convert extensions to lower case, so an upper-case letter would come back as another
  // name.
  return std::none_of(name.begin(), name.end(),
                      [](char c) { return c == '/' || c == '\0' || (c >= 'A' && c <= 'Z'); });
}

bool IsPlainText(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; });
}

// JSON is UTF-8, but a path can be any bytes: each byte that is not part of UTF-8 becomes U+FFFD.
// Lone surrogates would be reversible, but most parsers refuse them; the exact path is in the
// index.
void AppendJsonString(std::string_view text, std::string& out) {
  if (IsPlainText(text)) {
    out.push_back('"');
    out.append(text);
    out.push_back('"');
    return;
  }
  std::string utf8;
  while (!text.empty()) {
    const size_t length = Utf8SequenceLength(text);
    utf8.append(length == 0 ? kReplacement : text.substr(0, length));
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  out.append(nlohmann::json(utf8).dump());
}

void AppendDecimal(int64_t value, std::string& out) {
  char digits[kMaxDecimalBytes];
  out.append(digits, std::to_chars(digits, digits + sizeof(digits), value).ptr);
}

uint64_t PaxBytes(size_t path_bytes) {
  return kTarBlockBytes + PaddedToTarBlock(PaxPathBytes(path_bytes));
}

absl::Status CheckSpec(const ShardSpec& spec) {
  const bool known =
      spec.layout.empty() || spec.layout == kUstarLayout || spec.layout == kPaxLayout;
  if (!known) {
    return absl::InvalidArgumentError(
        absl::StrCat("webdataset has no layout \"", EscapeForTerminal(spec.layout), "\""));
  }
  const std::string_view field = spec.image_field;
  const bool usable = IsExtension(field) && field.find('.') == field.npos &&
                      field != kLabelExtension && field != kMetadataExtension;
  if (!field.empty() && !usable) {
    return absl::InvalidArgumentError(absl::StrCat("an image member cannot be named \"",
                                                   EscapeForTerminal(field),
                                                   "\": lower case, no dot, not cls or json"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<ShardWriter>> WebdatasetWriter::Create(StagedFile& file,
                                                                      const ShardSpec& spec) {
  RETURN_IF_ERROR(CheckSpec(spec));
  return std::unique_ptr<ShardWriter>(new WebdatasetWriter(&file, spec, spec.layout == kPaxLayout));
}

absl::Status WebdatasetWriter::CheckSample(const ShardSpec& spec, const SampleView& sample) {
  RETURN_IF_ERROR(CheckSpec(spec));
  return WebdatasetWriter(nullptr, spec, spec.layout == kPaxLayout).Check(sample);
}

uint64_t WebdatasetWriter::MemberBytes(bool pax, size_t path_bytes, uint64_t data_bytes) {
  // Whether a longer name needs a record depends on the position of its slashes; the bound assumes
  // that it does.
  const uint64_t extra = pax && path_bytes > kTarNameBytes ? PaxBytes(path_bytes) : 0;
  return extra + kTarBlockBytes + PaddedToTarBlock(data_bytes);
}

uint64_t WebdatasetWriter::MetadataBound(size_t source_path_bytes, size_t class_name_bytes) {
  return kMetadataFrame.size() + 3 * kMaxDecimalBytes +
         kMaxEscapedBytes * (source_path_bytes + class_name_bytes);
}

// Rejects keys that would come back different after readers split the name (see
// webdataset_layout.h).
absl::Status WebdatasetWriter::CheckKey(std::string_view key) const {
  if (key.empty()) return Refuse(key, "it is empty");
  if (key.size() > kMaxWebdatasetKeyBytes) {
    return Refuse(key, "it has ", key.size(), " bytes, the limit is ", kMaxWebdatasetKeyBytes);
  }
  const size_t slash = key.rfind('/');
  const std::string_view base = slash == key.npos ? key : key.substr(slash + 1);
  if (base.empty()) return Refuse(key, "it ends with a slash");
  if (base.find('.') != base.npos) {
    return Refuse(key, "readers take what follows a dot in its last component for the extension");
  }
  if (LeavesFolder(key)) return Refuse(key, "it is absolute, or holds a \"..\" component or a NUL");
  if (any_ && key == last_key_) {
    return Refuse(key, "the sample before it has the same key, and readers would join the two");
  }
  return absl::OkStatus();
}

void WebdatasetWriter::MakeMetadata(const SampleView& sample) {
  metadata_.assign("{\"class\":");
  AppendJsonString(sample.class_name, metadata_);
  metadata_.append(",\"filename\":");
  AppendJsonString(sample.source_path, metadata_);
  metadata_.append(",\"height\":");
  AppendDecimal(sample.image.height, metadata_);
  metadata_.append(",\"label\":");
  AppendDecimal(sample.label, metadata_);
  metadata_.append(",\"width\":");
  AppendDecimal(sample.image.width, metadata_);
  metadata_.push_back('}');
}

absl::Status WebdatasetWriter::CollectMembers(const SampleView& sample) {
  members_.clear();
  if (sample.fields.empty()) return Refuse(sample.key, "it has no image");
  const std::string_view image =
      spec_.image_field.empty() ? ImageExtension(sample.image.format) : spec_.image_field;
  members_.push_back({image, sample.fields[0].bytes});
  for (const FieldView& field : sample.fields.subspan(1)) {
    if (!IsExtension(field.name)) {
      return Refuse(sample.key, "field \"", EscapeForTerminal(field.name),
                    "\" is not a lower-case extension");
    }
    if (field.name == kLabelExtension && ParseLabel(AsText(field.bytes))) {
      return Refuse(sample.key,
                    "readers would take field \"cls\" for its label; give the field another name");
    }
    members_.push_back({field.name, field.bytes});
  }
  if (sample.label >= 0) {
    label_.clear();
    AppendDecimal(sample.label, label_);
    members_.push_back({kLabelExtension, AsBytes(label_), true});
  }
  if (spec_.with_metadata) {
    MakeMetadata(sample);
    members_.push_back({kMetadataExtension, AsBytes(metadata_), true});
  }
  return absl::OkStatus();
}

// The scanner's rule (the field of the lowest rank, the first by name) must select the image.
absl::Status WebdatasetWriter::CheckImageIsFound(const SampleView& sample,
                                                 const Member& image) const {
  const ImageRank rank = RankAsImage(image.extension, image.bytes);
  if (rank == ImageRank::kNone) {
    return Refuse(sample.key, "readers cannot tell that \"", EscapeForTerminal(image.extension),
                  "\" is its image");
  }
  for (const Member& member : members_) {
    if (member.extension == image.extension) continue;
    const ImageRank other = RankAsImage(member.extension, member.bytes);
    if (other < rank || (other == rank && member.extension < image.extension)) {
      return Refuse(sample.key, "readers would take field \"", EscapeForTerminal(member.extension),
                    "\" for its image; give the image a name of its own (image_field)");
    }
  }
  return absl::OkStatus();
}

// Sorts the members and checks everything that could go wrong before a byte is written.
absl::Status WebdatasetWriter::CheckMembers(const SampleView& sample) {
  const Member image = members_[0];
  RETURN_IF_ERROR(CheckImageIsFound(sample, image));
  // The order that TarWriter uses.
  std::sort(members_.begin(), members_.end(),
            [](const Member& a, const Member& b) { return a.extension < b.extension; });
  for (size_t i = 0; i < members_.size(); ++i) {
    const Member& member = members_[i];
    if (i > 0 && member.extension == members_[i - 1].extension) {
      return Refuse(sample.key, "it has two fields \"", EscapeForTerminal(member.extension), "\"");
    }
    if (member.bytes.size() > kTarMaxOctalSize) {
      return Refuse(sample.key, "field \"", EscapeForTerminal(member.extension), "\" has ",
                    member.bytes.size(), " bytes, the limit is ", kTarMaxOctalSize);
    }
    path_.resize(sample.key.size() + 1);
    path_.append(member.extension);
    if (IsMetaName(path_)) return Refuse(sample.key, "readers skip names like __x__");
    if (!pax_ && path_.size() > kTarNameBytes && !SplitTarName(path_)) {
      return Refuse(sample.key,
                    "a ustar name has at most 100 bytes, or 155 and 100 around a slash; ", "\".",
                    EscapeForTerminal(member.extension),
                    "\" makes it longer: use index keys or the pax layout");
    }
  }
  return absl::OkStatus();
}

void WebdatasetWriter::EndRun() {
  if (run_end_ != run_begin_) parts_.push_back(Bytes(run_begin_, run_end_));
  run_begin_ = run_end_;
}

void WebdatasetWriter::AddHeaders(std::string_view path, uint64_t size_bytes) {
  std::optional<TarName> name = SplitTarName(path);
  if (!name) {
    // Only in the pax layout: CheckMembers ensures it.
    const size_t record_bytes = PaxPathBytes(path.size());
    const size_t padded_bytes = PaddedToTarBlock(record_bytes);
    EncodeTarHeader({{}, kPaxHeaderName}, record_bytes, kTarPaxNext, run_end_);
    run_end_ += kTarBlockBytes;
    std::memset(run_end_ + record_bytes, 0, padded_bytes - record_bytes);
    EncodePaxPath(path, run_end_);
    run_end_ += padded_bytes;
    name = TarName{{}, path.substr(0, kTarNameBytes)};
  }
  EncodeTarHeader(*name, size_bytes, kTarRegular, run_end_);
  run_end_ += kTarBlockBytes;
}

void WebdatasetWriter::AddData(const Member& member) {
  const size_t bytes = member.bytes.size();
  if (member.own) {
    std::memcpy(run_end_, member.bytes.data(), bytes);
    run_end_ += bytes;
  } else if (bytes > 0) {
    EndRun();
    parts_.push_back(member.bytes);
  }
  const size_t padding_bytes = PaddedToTarBlock(bytes) - bytes;
  std::memset(run_end_, 0, padding_bytes);
  run_end_ += padding_bytes;
}

absl::Status WebdatasetWriter::Check(const SampleView& sample) {
  RETURN_IF_ERROR(CheckKey(sample.key));
  RETURN_IF_ERROR(CollectMembers(sample));
  path_.assign(sample.key);
  path_.push_back('.');
  return CheckMembers(sample);
}

absl::Status WebdatasetWriter::Append(const SampleView& sample) {
  if (finished_) return absl::FailedPreconditionError("Append after Finish");
  RETURN_IF_ERROR(Check(sample));

  size_t scratch_bytes = 0;
  for (const Member& member : members_) {
    const size_t path_bytes = sample.key.size() + 1 + member.extension.size();
    scratch_bytes +=
        MemberBytes(pax_, path_bytes, member.own ? member.bytes.size() : 0) + kTarBlockBytes;
  }
  // parts_ points into scratch_, so it must not move from here on.
  if (scratch_.size() < scratch_bytes) scratch_.resize(scratch_bytes);
  parts_.clear();
  run_begin_ = run_end_ = scratch_.data();
  for (const Member& member : members_) {
    path_.resize(sample.key.size() + 1);
    path_.append(member.extension);
    AddHeaders(path_, member.bytes.size());
    AddData(member);
  }
  EndRun();
  RETURN_IF_ERROR(file_->Append(parts_));
  last_key_.assign(sample.key);
  any_ = true;
  return absl::OkStatus();
}

absl::Status WebdatasetWriter::Finish() {
  if (finished_) return absl::FailedPreconditionError("Finish called twice");
  finished_ = true;
  const uint64_t ended = file_->size() + kTarEndBytes;
  const uint64_t whole = (ended + kTarBlockingBytes - 1) / kTarBlockingBytes * kTarBlockingBytes;
  const std::vector<std::byte> zeros(whole - file_->size());
  return file_->Append(zeros);
}

}  // namespace shardpack
