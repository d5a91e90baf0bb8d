#include "converters/repairing/repair_rows.h"

#include <errno.h>
#include <fcntl.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "formats/io/sequential_reader.h"
#include "formats/io/staged_file.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

constexpr uint64_t kChunkBytes = uint64_t{64} << 20;
constexpr size_t kChunkRows = 4096;
constexpr size_t kTaskRows = 16;  // read by one task

// A range of rows whose bytes are read in parallel.
class RowChunk {
 public:
  // Takes rows from `first` on; returns where the next chunk begins.
  size_t Choose(std::span<const RepairRow> rows, size_t first) {
    begins_.clear();
    first_ = first;
    uint64_t bytes = 0;
    size_t end = first;
    for (; end < rows.size() && end - first < kChunkRows; ++end) {
      uint64_t sample = 0;
      for (const RepairField& field : rows[end].fields) sample += field.length;
      if (end > first && bytes + sample > kChunkBytes) break;
      begins_.push_back(bytes);
      bytes += sample;
    }
    bytes_.resize(bytes);
    return end;
  }

  absl::Status Load(std::span<const RepairRow> rows, const FieldFinder& finder, IoPool& pool,
                    std::set<std::string>& from) {
    std::mutex mutex;
    absl::Status failed;
    std::string missing;
    uint64_t missing_count = 0;
    pool.ForEach((begins_.size() + kTaskRows - 1) / kTaskRows, [&](size_t task) {
      std::set<std::string> found;
      std::vector<std::string> lost;
      absl::Status lack;
      for (size_t i = task * kTaskRows; i < std::min(begins_.size(), (task + 1) * kTaskRows); ++i) {
        const RepairRow& row = rows[first_ + i];
        uint64_t at = begins_[i];
        for (const RepairField& field : row.fields) {
          const auto into = std::span(bytes_).subspan(at, field.length);
          at += field.length;
          std::string unread;
          absl::StatusOr<std::optional<std::string>> place =
              finder.Read({field.hash, field.length, row.source_path, field.name}, into, unread);
          if (!place.ok()) {
            lack = place.status();
          } else if (*place) {
            found.insert(**std::move(place));
          } else {
            lost.push_back(
                absl::StrCat("the bytes of ", EscapeForTerminal(row.key), " (", field.name, " of ",
                             EscapeForTerminal(row.source_path),
                             unread.empty() ? ") are nowhere" : ") cannot be read: ", unread));
          }
        }
      }
      const std::lock_guard lock(mutex);
      failed.Update(lack);
      from.merge(found);
      if (!lost.empty() && missing.empty()) missing = lost.front();
      missing_count += lost.size();
    });
    if (!failed.ok() || missing_count == 0) return failed;
    return absl::NotFoundError(
        missing_count == 1 ? missing : absl::StrCat(missing, ", and ", missing_count - 1, " more"));
  }

  std::span<const std::byte> BytesOf(size_t row) const {
    return std::span(bytes_).subspan(begins_[row - first_]);
  }

 private:
  size_t first_ = 0;
  std::vector<uint64_t> begins_;
  std::vector<std::byte> bytes_;
};

absl::Status Append(const RepairRow& row, const std::vector<std::string>& classes,
                    std::span<const std::byte> bytes, ShardWriter& writer) {
  std::vector<FieldView> fields;
  for (const RepairField& field : row.fields) {
    fields.push_back({field.name, bytes.first(field.length)});
    bytes = bytes.subspan(field.length);
  }
  const bool named = row.label >= 0 && static_cast<uint64_t>(row.label) < classes.size();
  return writer.Append(
      {.number = row.number,
       .key = row.key,
       .source_path = row.source_path,
       .label = row.label,
       .class_name = named ? std::string_view(classes[static_cast<size_t>(row.label)]) : "",
       .image = row.image,
       .fields = fields});
}

// Matches scanned records with the rows they must be.
class Joiner : public RecordSink {
 public:
  explicit Joiner(std::span<const RepairRow> rows) : rows_(rows) {}

  void OnRecord(const ScannedRecord& record) override {
    const uint64_t n = index_.records();
    if (n >= rows_.size() || (!record.key.empty() && record.key != rows_[n].key)) {
      failed_ = true;
      return;
    }
    index_.Add(record, rows_[n].key, rows_[n].source_path, rows_[n].label, rows_[n].image);
  }

  absl::StatusOr<std::string> Finish(uint64_t bytes) {
    if (failed_ || index_.records() != rows_.size())
      return absl::DataLossError("the shard holds other records");
    return index_.Finish(bytes);
  }

 private:
  const std::span<const RepairRow> rows_;
  ShardIndexBuilder index_;
  bool failed_ = false;
};

}  // namespace

std::optional<RepairRow> RowOf(const ShardIndex& index, uint64_t record, bool without_json) {
  const std::optional<size_t> image = index.FindField(kImageField);
  if (!image || !index.has_field(record, *image)) return std::nullopt;
  RepairRow row{.key = std::string(index.key(record)),
                .source_path = std::string(index.source_path(record)),
                .label = index.label(record),
                .image = index.image(record)};
  const auto add = [&](size_t f) {
    row.fields.push_back(
        {std::string(index.field_name(f)), index.hash(record, f), index.field(record, f).length});
  };
  add(*image);
  for (size_t f = 0; f < index.fields(); ++f) {
    if (f == *image || !index.has_field(record, f)) continue;
    if (!without_json || index.field_name(f) != kMetadataField) add(f);
  }
  return row;
}

void DescribeRows(std::span<const RepairRow> rows, bool fixed_shape, ShardSpec& spec) {
  spec.max_records = rows.size();
  spec.fields.clear();
  for (const RepairRow& row : rows) {
    for (const RepairField& field : row.fields) {
      auto total = std::find_if(spec.fields.begin(), spec.fields.end(),
                                [&](const FieldTotal& each) { return each.name == field.name; });
      if (total == spec.fields.end()) total = spec.fields.insert(total, {field.name, 0});
      total->max_bytes += field.length;
    }
  }
  if (fixed_shape && !rows.empty()) spec.raw_image = rows[0].image;
}

absl::Status WriteShard(const Format& format, const ShardSpec& spec,
                        std::span<const RepairRow> rows, const std::vector<std::string>& classes,
                        const FieldFinder& finder, IoPool& pool, const std::string& path,
                        const std::atomic<int>& stop, std::set<std::string>& from) {
  std::unique_ptr<StagedFile> staged;
  std::unique_ptr<ShardWriter> writer;
  if (!path.empty()) {
    ASSIGN_OR_RETURN(std::unique_ptr<StagedFile> file, StagedFile::Create(path + ".part"));
    staged = std::move(file);
    ASSIGN_OR_RETURN(std::unique_ptr<ShardWriter> made, format.create(*staged, spec));
    writer = std::move(made);
  }
  RowChunk chunk;
  for (size_t first = 0; first < rows.size();) {
    if (stop.load() != 0) return absl::CancelledError("stopped");
    const size_t end = chunk.Choose(rows, first);
    RETURN_IF_ERROR(chunk.Load(rows, finder, pool, from));
    for (; first < end; ++first) {
      if (writer == nullptr) continue;
      RETURN_IF_ERROR(Append(rows[first], classes, chunk.BytesOf(first), *writer));
    }
  }
  if (writer == nullptr) return absl::OkStatus();
  absl::Status status = writer->Finish();
  writer.reset();
  return status.ok() ? staged->Publish(path) : status;
}

absl::Status ScanAlone(const Format& format, const LayoutSpec& layout, const std::string& path,
                       uint64_t bytes, const std::atomic<int>& stop,
                       const std::function<RecordSink&()>& begin) {
  absl::Status status;
  for (const bool alone : {false, true}) {
    absl::StatusOr<File> file = File::OpenRead(path);
    if (!file.ok()) return file.status();
    if (alone) {  // a name in a folder that does not exist
      const int descriptor = ::fcntl(file->descriptor(), F_DUPFD_CLOEXEC, 3);
      if (descriptor < 0) return IoStatus("open", path, errno);
      file = File(descriptor, absl::StrCat(path, ".alone/", path.substr(path.rfind('/') + 1)));
    }
    SequentialReader in(*file, bytes);
    in.OnBlock([&](uint64_t) {
      return stop.load() == 0 ? absl::OkStatus() : absl::CancelledError("stopped");
    });
    FindingList findings(1);
    const ScanOptions options{.shard_name = path, .strict = false, .label_base = layout.label_base};
    status = format.scanner->Scan(in, options, begin(), findings);
    if (status.ok() && findings.errors() > 0)
      status = absl::DataLossError(ToText(findings.findings().front()));
    if (status.ok() || absl::IsCancelled(status)) return status;
  }
  return status;
}

absl::StatusOr<std::string> MakeIndex(const Format& format, const LayoutSpec& layout,
                                      const std::string& path, uint64_t bytes,
                                      std::span<const RepairRow> rows,
                                      const std::atomic<int>& stop) {
  std::optional<Joiner> joiner;
  RETURN_IF_ERROR(ScanAlone(format, layout, path, bytes, stop,
                            [&]() -> RecordSink& { return joiner.emplace(rows); }));
  return joiner->Finish(bytes);
}

}  // namespace shardpack
