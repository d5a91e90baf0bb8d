#include "readers/dataset/foreign_shard.h"

#include <errno.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "formats/core/find_shard.h"
#include "formats/core/image_info.h"
#include "formats/io/file.h"
#include "formats/io/sequential_reader.h"
#include "formats/io/status_macros.h"
#include "images/probe/probe.h"

namespace shardpack {
namespace {

constexpr size_t kKeptImageBytes = 16 << 20;
constexpr size_t kMaxLeftOut = 100;  // names kept: enough for a warning
constexpr size_t kMaxFieldNames = 1000;

// Texts omit the severity, which the caller prints anyway.
std::string WithoutSeverity(const Finding& finding) {
  const std::string text = ToText(finding);
  return text.substr(text.find(' ') + 1);
}

// Keeps the first error, and the first warning of each kind with the number of others. Warnings do
// not make a shard unreadable.
class FirstOfEach : public FindingSink {
 public:
  void Report(Finding finding) override {
    if (finding.severity != Severity::kWarning) {
      if (!error_) error_ = WithoutSeverity(finding);
      return;
    }
    // The record that it names has not been reported.
    if (finding.id == FindingId::kTarNoEnd && finding.record)
      lost_.push_back({.key = finding.key, .why = WithoutSeverity(finding)});
    // A finding about one record often means that it is lost; one with a detail is a case of its
    // own.
    const std::string kind =
        absl::StrCat(std::string(SpecOf(finding.id).name), finding.record ? " of a record" : "",
                     finding.detail.empty() ? "" : " in detail");
    const auto known = std::find_if(warnings_.begin(), warnings_.end(),
                                    [&](const Kind& each) { return each.first.kind == kind; });
    if (known != warnings_.end()) {
      ++known->more;
    } else {
      warnings_.push_back({{kind, WithoutSeverity(finding)}});
    }
  }
  const std::optional<std::string>& error() const { return error_; }
  std::vector<ShardWarning> Warnings() const {
    std::vector<ShardWarning> warnings;
    for (const Kind& kind : warnings_) {
      warnings.push_back(kind.first);
      if (kind.more > 0) absl::StrAppend(&warnings.back().text, "; ", kind.more, " more like this");
    }
    return warnings;
  }
  std::vector<LostSample> TakeLost() { return std::move(lost_); }

 private:
  struct Kind {
    ShardWarning first;
    uint64_t more = 0;
  };
  std::optional<std::string> error_;
  std::vector<Kind> warnings_;
  std::vector<LostSample> lost_;
};

class IndexRows : public RecordSink {
 public:
  // `images` is the shard's file if images are to be probed, otherwise null.
  IndexRows(const File* images, uint64_t shard_bytes) : builder(shard_bytes), images_(images) {}

  void OnRecord(const ScannedRecord& record) override {
    // The key column repeats what the shard stores: keys are empty if the container has none.
    const bool probe =
        images_ != nullptr && !record.fields.empty() && record.fields[0].name == kImageField;
    if (record.label == kNoLabel) CountLabel(record);
    if (record.label_base) label_base = record.label_base;
    if (record.label_base && record.label == kNoLabel) ++background;
    ++records_;
    for (const ScannedField& field : record.fields) NoteField(field.name);
    builder.Add(record, record.key, record.source_path, record.label,
                record.image.format != ImageFormat::kUnknown ? record.image
                : probe                                      ? Probe(record.fields[0])
                                                             : ImageInfo{});
  }
  void OnLeftOut(std::string_view name) override {
    if (left_out.size() < kMaxLeftOut && !left_out.contains(name)) left_out.emplace(name);
  }
  // Explains labels that readers of WebDataset would miss.
  std::optional<ShardWarning> LabelWarning(const std::string& path) const {
    if (no_integers_ == 0) return std::nullopt;
    Finding finding = MakeFinding(FindingId::kWdsLabelNotInteger, path);
    finding.severity = Severity::kWarning;
    finding.record = first_record_;
    finding.offset = first_offset_;
    finding.detail =
        absl::StrCat(no_integers_, " of ", records_,
                     " samples have one that is not an integer of 64 bits, and no label");
    return ShardWarning{std::string(SpecOf(finding.id).name), WithoutSeverity(finding)};
  }
  // An index does not have fields without end, nor any name.
  void LeaveOutWhatIsNotIn(const ShardIndex& index) {
    for (const std::string& name : field_names_) {
      if (!index.FindField(name)) OnLeftOut(name);
    }
  }
  // The status of the first image read that failed.
  const absl::Status& status() const { return status_; }
  ShardIndexBuilder builder;
  std::set<std::string, std::less<>> left_out;
  std::optional<int64_t> label_base;
  uint64_t background = 0;

 private:
  void NoteField(std::string_view name) {
    if (field_names_.size() < kMaxFieldNames && !field_names_.contains(name))
      field_names_.emplace(name);
  }

  // Counts a member that should be the label but is not; with a label, it would not be a field.
  void CountLabel(const ScannedRecord& record) {
    for (const ScannedField& field : record.fields) {
      if (field.name != kLabelTextField) continue;
      if (no_integers_++ > 0) continue;
      first_record_ = records_;
      first_offset_ = field.offset;
    }
  }

  // Probes the image facts that packing would have recorded. The scan has just read these bytes, so
  // they usually come from the page cache. Without the facts, the index would say that they are
  // unknown.
  ImageInfo Probe(const ScannedField& image) {
    if (!status_.ok() || image.length > kMaxImageFileBytes) return {};
    if (image.length > bytes_.capacity() || bytes_.capacity() > kKeptImageBytes)
      std::vector<std::byte>().swap(bytes_);
    bytes_.resize(image.length);
    status_ = images_->ReadExactlyAt(image.offset, bytes_);
    if (!status_.ok()) return {};
    return ProbeImage(bytes_, {.max_pixels = UINT64_MAX, .allow_truncated = true}).info;
  }

  const File* const images_;
  std::vector<std::byte> bytes_;
  std::set<std::string, std::less<>> field_names_;
  absl::Status status_;
  uint64_t records_ = 0, no_integers_ = 0, first_record_ = 0, first_offset_ = 0;
};

// One sentence that explains ForeignShard::background.
ShardWarning BackgroundWarning(const std::string& path, uint64_t background, uint64_t records) {
  return {"background",
          absl::StrCat(EscapeForTerminal(path), ": ", background, " of ", records,
                       background == 1 ? " samples has" : " samples have",
                       " the label 0, which is the background where classes count from 1, as they "
                       "do in this layout: no label")};
}

absl::StatusOr<ForeignShard> ScanWith(const Format& format, const std::string& path,
                                      std::string data_path, const ForeignScanOptions& options) {
  ASSIGN_OR_RETURN(File file, File::OpenRead(data_path));
  ASSIGN_OR_RETURN(uint64_t bytes, file.Size());
  SequentialReader in(file, bytes);
  if (options.on_block) in.OnBlock(options.on_block);
  IndexRows rows(options.probe ? &file : nullptr, bytes);
  FirstOfEach findings;
  absl::Status scanned = format.scanner->Scan(in,
                                              {.shard_name = path,
                                               .strict = false,
                                               .label_base = options.label_base,
                                               .has_classes = options.has_classes},
                                              rows, findings);
  if (scanned.ok()) scanned = rows.status();
  if (!scanned.ok()) return scanned;
  if (findings.error()) return absl::DataLossError(*findings.error());
  ASSIGN_OR_RETURN(Digest digest, in.Finish());
  ASSIGN_OR_RETURN(ShardIndex index, ShardIndex::FromBytes(rows.builder.Finish(bytes), bytes));
  rows.LeaveOutWhatIsNotIn(index);
  std::vector<ShardWarning> warnings = findings.Warnings();
  std::optional<ShardWarning> labels = rows.LabelWarning(path);
  // In another format, a field of this name is not meant as a label.
  if (labels && format.name == kLabelTextFormat) warnings.push_back(*std::move(labels));
  if (rows.background > 0)
    warnings.push_back(BackgroundWarning(path, rows.background, index.records()));
  return ForeignShard{.format = &format,
                      .data_path = std::move(data_path),
                      .bytes = bytes,
                      .digest = digest,
                      .index = std::move(index),
                      .left_out = {rows.left_out.begin(), rows.left_out.end()},
                      .warnings = std::move(warnings),
                      .lost = findings.TakeLost(),
                      .label_base = rows.label_base,
                      .background = rows.background};
}

// The compression that the file's first bytes indicate (RFC 1952; RFC 8878; the xz and bzip2
// formats); empty if none.
std::string_view CompressionOf(std::string_view head) {
  if (head.starts_with("\x1f\x8b")) return "gzip";
  if (head.starts_with("\x28\xb5\x2f\xfd")) return "zstd";
  if (head.starts_with(std::string_view("\xfd"
                                        "7zXZ\0",
                                        6)))
    return "xz";
  if (head.starts_with("BZh")) return "bzip2";
  return "";
}

absl::Status NoFormat(const std::string& path, bool is_folder) {
  std::array<char, 6> head = {};
  size_t got = 0;
  if (!is_folder) {
    ASSIGN_OR_RETURN(File file, File::OpenRead(path));
    ASSIGN_OR_RETURN(size_t read, file.ReadAt(0, std::as_writable_bytes(std::span(head))));
    got = read;
  }
  const std::string_view compression = CompressionOf({head.data(), got});
  if (!compression.empty()) {
    return absl::UnimplementedError(absl::StrCat(
        EscapeForTerminal(path), " is compressed as a whole (", std::string(compression),
        "), so its records cannot be read one by one; unpack it first"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat(EscapeForTerminal(path), " is not a shard of any known format"));
}

}  // namespace

absl::Status SameLabelBase::Add(const std::string& path, std::optional<int64_t> label_base) {
  if (!label_base || label_base == base_) return absl::OkStatus();
  if (!base_) {
    first_ = path;
    base_ = label_base;
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      EscapeForTerminal(first_), " stores ", *base_, " for its first class, ",
      EscapeForTerminal(path), " stores ", *label_base,
      ": they are of different layouts. Give those of each layout in a command of their own"));
}

absl::StatusOr<ForeignShardKind> FindForeignShard(const std::string& path,
                                                  std::span<const Format* const> formats) {
  struct stat facts;
  if (::stat(path.c_str(), &facts) != 0) {
    const absl::Status failed = IoStatus("stat", path, errno);
    if (!absl::IsNotFound(failed)) return failed;
    return absl::NotFoundError(absl::StrCat(EscapeForTerminal(path), ": no such file"));
  }
  const bool is_folder = S_ISDIR(facts.st_mode);
  if (!is_folder && !S_ISREG(facts.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat(EscapeForTerminal(path), ": neither a file nor a folder that can be read"));
  }
  ASSIGN_OR_RETURN(FoundShard found, FindShard(path, is_folder, formats));
  if (found.format != nullptr) return ForeignShardKind{found.format, std::move(found.data_path)};
  return NoFormat(path, is_folder);
}

absl::StatusOr<ForeignShard> ScanForeignShard(const std::string& path,
                                              std::span<const Format* const> formats,
                                              const ForeignScanOptions& options) {
  ASSIGN_OR_RETURN(ForeignShardKind kind, FindForeignShard(path, formats));
  absl::StatusOr<ForeignShard> shard =
      ScanWith(*kind.format, path, std::move(kind.data_path), options);
  if (!shard.ok() || kind.format->sniff({}, path)) return shard;
  for (const Format* other : formats) {
    if (!other->sniff({}, path)) continue;
    shard->warnings.push_back(
        {"name", absl::StrCat(EscapeForTerminal(path), " is ", std::string(kind.format->name),
                              ", but named like ", std::string(other->name))});
    break;
  }
  return shard;
}

}  // namespace shardpack
