#include <filesystem>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/core/find_shard.h"
#include "formats/io/file.h"
#include "formats/io/hash.h"
#include "formats/io/sequential_reader.h"
#include "formats/io/status_macros.h"
#include "images/probe/probe.h"
#include "validators/checks/image_check.h"
#include "validators/checks/key_hashes.h"
#include "validators/checks/shard_check.h"

namespace shardpack {
namespace {

constexpr size_t kMagicBytes = 18;  // what SniffImageFormat needs

// Checks a record without an index.
class RecordRules : public RecordSink {
 public:
  // `images`: nullptr unless images are to be decoded.
  RecordRules(const File& file, const std::string& shard, ImageCheck* images, ShardOutcome& outcome)
      : file_(file), shard_(shard), images_(images), out_(outcome) {}

  void OnRecord(const ScannedRecord& record) override {
    const uint64_t number = out_.key_hashes.size();
    out_.key_hashes.push_back(HashKey(record.key));
    if (record.label == kNoLabel) ++out_.unlabelled;
    if (record.label < kNoLabel) {
      Finding finding = Make(FindingId::kLabelRange, record, number);
      finding.expected = "0 or more";
      finding.actual = absl::StrCat(record.label);
      out_.findings.Report(std::move(finding));
    }
    AddImages(record, number);
    if (record.fields.empty() || record.fields[0].name != kImageField) return;
    // Pixels without a header: the container describes them.
    if (record.image.format == ImageFormat::kRaw) {
      if (images_ != nullptr) images_->Add(ToCheck(record.fields[0], record, number));
      return;
    }
    // The scan has just read these bytes, so they usually come from the page cache.
    const ScannedField& image = record.fields[0];
    std::array<std::byte, kMagicBytes> head;
    const std::span<std::byte> into(head.data(), std::min<uint64_t>(image.length, kMagicBytes));
    absl::StatusOr<size_t> got = file_.ReadAt(image.offset, into);
    if (!got.ok()) {
      Finding finding = Make(FindingId::kReadError, record, number);
      finding.field = std::string(kImageField);
      finding.offset = image.offset;
      finding.length = image.length;
      finding.detail = std::string(got.status().message());
      return out_.findings.Report(std::move(finding));
    }
    if (SniffImageFormat(Bytes(head).first(*got)) != ImageFormat::kUnknown) {
      if (images_ != nullptr) images_->Add(ToCheck(image, record, number));
      return;
    }
    Finding finding = Make(FindingId::kNotAnImage, record, number);
    finding.field = std::string(kImageField);
    finding.offset = image.offset;
    finding.length = image.length;
    out_.findings.Report(std::move(finding));
  }

 private:
  Finding Make(FindingId id, const ScannedRecord& record, uint64_t number) const {
    Finding finding = MakeFinding(id, shard_);
    finding.record = number;
    finding.key = std::string(record.key);
    finding.offset = record.offset;
    return finding;
  }

  static std::optional<ImageInfo> IndexedOf(const ScannedField& field,
                                            const ScannedRecord& record) {
    if (field.name != kImageField || record.image.format != ImageFormat::kRaw) return std::nullopt;
    return record.image;
  }
  static ImageToCheck ToCheck(const ScannedField& field, const ScannedRecord& record,
                              uint64_t number) {
    return {.record = number,
            .key = std::string(record.key),
            .field = std::string(field.name),
            .extent = {field.offset, field.length},
            .indexed = IndexedOf(field, record)};
  }

  // Adds the images in further fields.
  void AddImages(const ScannedRecord& record, uint64_t number) {
    if (images_ == nullptr) return;
    for (const ScannedField& field : record.fields) {
      if (ImageCheck::IsImageField(field.name)) images_->Add(ToCheck(field, record, number));
    }
  }

  const File& file_;
  const std::string& shard_;
  ImageCheck* images_;
  ShardOutcome& out_;
};

class ChosenKeys : public RecordSink {
 public:
  explicit ChosenKeys(std::span<const uint64_t> records) : records_(records) {}
  void OnRecord(const ScannedRecord& record) override {
    if (keys.size() < records_.size() && next_++ == records_[keys.size()])
      keys.emplace_back(record.key);
  }
  std::vector<std::string> keys;

 private:
  std::span<const uint64_t> records_;
  uint64_t next_ = 0;
};

struct OpenShard {
  const Format* format = nullptr;  // null: no format accepts it
  File file;
  uint64_t bytes = 0;
  std::string why;  // why no format accepts it
};

absl::StatusOr<OpenShard> OpenForeign(const std::string& path,
                                      std::span<const Format* const> formats) {
  OpenShard shard;
  std::error_code error;
  const auto kind = std::filesystem::status(path, error).type();
  const bool is_folder = kind == std::filesystem::file_type::directory;
  if (!is_folder && kind != std::filesystem::file_type::regular) {
    if (error) return IoStatus("look at", path, error.value());
    shard.why = "a device, pipe or socket";
    return shard;
  }
  ASSIGN_OR_RETURN(const FoundShard found, FindShard(path, is_folder, formats));
  shard.format = found.format;
  if (shard.format == nullptr) {
    shard.why = is_folder                                      ? "a folder without a shard"
                : std::filesystem::file_size(path, error) == 0 ? "an empty file"
                                                               : "";
    return shard;
  }
  ASSIGN_OR_RETURN(shard.file, File::OpenRead(found.data_path));
  ASSIGN_OR_RETURN(shard.bytes, shard.file.Size());
  return shard;
}

// Warns about an intact shard whose name suggests another format to programs that go by the name.
void CheckName(const std::string& path, const Format& format,
               std::span<const Format* const> formats, FindingSink& findings) {
  if (format.sniff({}, path)) return;
  for (const Format* other : formats) {
    if (!other->sniff({}, path)) continue;
    Finding finding = MakeFinding(FindingId::kWrongExtension, path);
    finding.expected = absl::StrCat("a name of ", std::string(format.name));
    finding.actual = absl::StrCat("one of ", std::string(other->name));
    return findings.Report(std::move(finding));
  }
}

// A difference from the manifest beside the shard.
void ReportOtherBytes(FindingId id, const std::string& path, const ManifestsBeside::Found& beside,
                      const std::string& expected, const std::string& actual,
                      FindingSink& findings) {
  Finding finding = MakeFinding(id, path);
  finding.detail = absl::StrCat("by the manifest of the dataset in ", beside.folder);
  finding.expected = expected;
  finding.actual = actual;
  findings.Report(std::move(finding));
}

}  // namespace

void CheckForeignShard(const std::string& path, const ManifestsBeside::Found& beside,
                       std::span<const Format* const> formats, const CheckRun& run,
                       ShardOutcome& outcome) {
  const auto report = [&](FindingId id, const std::string& detail) {
    Finding finding = MakeFinding(id, path);
    finding.detail = detail;
    outcome.findings.Report(std::move(finding));
    outcome.not_checked.push_back(absl::StrCat(path, ": could not be read as a shard"));
  };
  absl::StatusOr<OpenShard> shard = OpenForeign(path, formats);
  if (!shard.ok()) return report(FindingId::kReadError, std::string(shard.status().message()));
  outcome.bytes = shard->bytes;
  if (shard->format == nullptr) return report(FindingId::kUnknownFormat, shard->why);
  outcome.format = std::string(shard->format->name);
  outcome.complete = true;
  const ManifestShard* const row = beside.shard;
  if (row != nullptr && row->bytes != shard->bytes) {
    ReportOtherBytes(FindingId::kFileSize, path, beside, absl::StrCat(row->bytes),
                     absl::StrCat(shard->bytes), outcome.findings);
  }
  CheckName(path, *shard->format, formats, outcome.findings);
  if (shard->bytes == 0) return outcome.findings.Report(MakeFinding(FindingId::kShardEmpty, path));
  if (run.level == ValidationLevel::kQuick)
    return;  // without an index, only the first bytes can be checked
  SequentialReader in(shard->file, shard->bytes);
  in.OnBlock([&](uint64_t bytes) {
    outcome.bytes_read += bytes;
    return run.Advance(bytes);
  });
  ImageCheck images(shard->file, path, run, outcome);
  RecordRules rules(shard->file, path, run.level == ValidationLevel::kDeep ? &images : nullptr,
                    outcome);
  absl::Status scanned = shard->format->scanner->Scan(in, {.shard_name = path, .strict = true},
                                                      rules, outcome.findings);
  if (scanned.ok()) {
    const absl::StatusOr<Digest> digest = in.Finish();  // data after the container is read, too
    scanned = digest.status();
    if (digest.ok() && row != nullptr && *digest != row->xxh3_128) {
      ReportOtherBytes(FindingId::kFileHash, path, beside, row->xxh3_128.ToHex(), digest->ToHex(),
                       outcome.findings);
    }
  }
  images.Flush();
  outcome.records = outcome.records_checked = outcome.key_hashes.size();
  if (!scanned.ok()) {
    outcome.complete = false;
    if (absl::IsCancelled(scanned)) return;
    return report(
        absl::IsUnimplemented(scanned) ? FindingId::kUnknownFormat : FindingId::kReadError,
        std::string(scanned.message()));
  }
  if (outcome.records == 0) outcome.findings.Report(MakeFinding(FindingId::kShardEmpty, path));
}

absl::StatusOr<std::vector<std::string>> KeysOfForeignShard(const std::string& path,
                                                            std::span<const Format* const> formats,
                                                            std::span<const uint64_t> records) {
  ASSIGN_OR_RETURN(OpenShard shard, OpenForeign(path, formats));
  if (shard.format == nullptr) return absl::DataLossError("it has changed since it was checked");
  SequentialReader in(shard.file, shard.bytes);
  ChosenKeys chosen(records);
  FindingTally ignored;
  RETURN_IF_ERROR(
      shard.format->scanner->Scan(in, {.shard_name = path, .strict = false}, chosen, ignored));
  return std::move(chosen.keys);
}

}  // namespace shardpack
