#include "formats/testing/test_shard.h"

#include <errno.h>
#include <sys/mman.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/io/file.h"
#include "formats/io/sequential_reader.h"
#include "formats/io/staged_file.h"

namespace shardpack::testing {
namespace {

class KeepRecords : public RecordSink {
 public:
  explicit KeepRecords(std::vector<FoundRecord>& into) : into_(into) {}
  void OnRecord(const ScannedRecord& record) override {
    FoundRecord& found = into_.emplace_back();
    found.key = std::string(record.key);
    found.source_path = std::string(record.source_path);
    found.label = record.label;
    found.offset = record.offset;
    found.length = record.length;
    found.image = record.image;
    for (const ScannedField& field : record.fields) {
      found.fields.push_back({std::string(field.name), field.offset, field.length, field.hash});
    }
  }

 private:
  std::vector<FoundRecord>& into_;
};

absl::StatusOr<File> FileInMemory(std::string_view bytes) {
  const int descriptor = ::memfd_create("shard", MFD_CLOEXEC);
  if (descriptor < 0) return IoStatus("create", "memory file", errno);
  // Has a name by which a library can open it.
  File file(descriptor, absl::StrCat("/proc/self/fd/", descriptor));
  const Bytes part = AsBytes(bytes);
  absl::Status written = file.Write(std::span(&part, 1));
  if (!written.ok()) return written;
  return file;
}

}  // namespace

const FoundField* FoundRecord::Find(std::string_view field) const {
  for (const FoundField& candidate : fields) {
    if (candidate.name == field) return &candidate;
  }
  return nullptr;
}

std::string ScanResult::Complaints() const {
  std::string text = status.ok() ? "" : absl::StrCat("status ", status.ToString(), "\n");
  for (const Finding& finding : findings.findings()) absl::StrAppend(&text, ToText(finding), "\n");
  return text;
}

ShardSpec SpecFor(const ShardSpec& spec, std::span<const OwnedSample> samples) {
  ShardSpec filled = spec;
  filled.max_records = samples.size();
  for (const OwnedSample& sample : samples) {
    filled.longest_key_bytes = std::max(filled.longest_key_bytes, sample.key.size());
    filled.fields.resize(std::max(filled.fields.size(), sample.fields.size()));
    for (size_t f = 0; f < sample.fields.size(); ++f) {
      filled.fields[f].name = sample.fields[f].first;
      filled.fields[f].max_bytes += sample.fields[f].second.size();
    }
  }
  return filled;
}

absl::StatusOr<std::string> WriteShard(const Format& format, const ShardSpec& spec,
                                       std::span<const OwnedSample> samples,
                                       const std::string& path) {
  absl::StatusOr<std::unique_ptr<StagedFile>> file = StagedFile::Create(path + ".part");
  if (!file.ok()) return file.status();
  const ShardSpec filled = SpecFor(spec, samples);
  absl::StatusOr<std::unique_ptr<ShardWriter>> writer = format.create(**file, filled);
  if (!writer.ok()) return writer.status();
  // All views live until the end; a separate check covers writers that read late.
  std::vector<BorrowedSample> borrowed;
  borrowed.reserve(samples.size());
  for (const OwnedSample& sample : samples) {
    absl::Status appended = (*writer)->Append(borrowed.emplace_back(sample.Borrow()).view);
    if (!appended.ok()) return appended;
  }
  absl::Status finished = (*writer)->Finish();
  if (!finished.ok()) return finished;
  writer->reset();
  absl::Status published = (*file)->Publish(path);
  if (!published.ok()) return published;
  return ReadWholeFile(path, uint64_t{1} << 30);
}

ScanResult ScanBytes(const Format& format, std::string_view bytes, bool strict,
                     std::optional<int64_t> label_base) {
  ScanResult result;
  absl::StatusOr<File> file = FileInMemory(bytes);
  if (!file.ok()) {
    result.status = file.status();
    return result;
  }
  SequentialReader in(*file, bytes.size());
  KeepRecords sink(result.records);
  result.status =
      format.scanner->Scan(in, {.shard_name = "shard", .strict = strict, .label_base = label_base},
                           sink, result.findings);
  absl::StatusOr<Digest> digest = in.Finish();
  if (digest.ok()) result.digest = *digest;
  if (result.status.ok()) result.status = digest.status();
  return result;
}

absl::StatusOr<ShardIndex> IndexOf(const ScanResult& scan, std::span<const OwnedSample> samples,
                                   uint64_t shard_bytes) {
  if (scan.records.size() != samples.size()) {
    return absl::InternalError(
        absl::StrCat(scan.records.size(), " records, expected ", samples.size()));
  }
  ShardIndexBuilder builder;
  for (size_t i = 0; i < samples.size(); ++i) {
    const FoundRecord& found = scan.records[i];
    std::vector<ScannedField> fields;
    for (const FoundField& field : found.fields) {
      fields.push_back({field.name, field.offset, field.length, field.hash});
    }
    builder.Add({.key = found.key,
                 .source_path = found.source_path,
                 .label = found.label,
                 .offset = found.offset,
                 .length = found.length,
                 .fields = fields},
                samples[i].key, samples[i].source_path, samples[i].label, samples[i].image);
  }
  return ShardIndex::FromBytes(builder.Finish(shard_bytes), shard_bytes);
}

RecordShape ShapeOf(const OwnedSample& sample, std::vector<uint64_t>& field_bytes) {
  field_bytes.clear();
  for (const auto& [name, bytes] : sample.fields) field_bytes.push_back(bytes.size());
  return {.number = sample.number,
          .key_bytes = sample.key.size(),
          .source_path_bytes = sample.source_path.size(),
          .class_name_bytes = sample.class_name.size(),
          .has_label = sample.label != kNoLabel,
          .field_bytes = field_bytes};
}

}  // namespace shardpack::testing
