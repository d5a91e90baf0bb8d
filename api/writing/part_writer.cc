#include "api/writing/part_writer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "api/writing/parts_folder.h"
#include "formats/core/shard_index.h"
#include "formats/io/escape.h"
#include "formats/io/hash.h"
#include "formats/io/relative_path.h"
#include "formats/io/sequential_reader.h"
#include "formats/io/status_macros.h"
#include "formats/tfrecord/tfrecord_format.h"

namespace shardpack {
namespace {

using absl::StrCat;

constexpr size_t kMostKeyBytes = 4096;

// Where a sample came from, which every index names: its key, as a path below a root.
std::string PathOf(std::string_view key) {
  std::string path = PercentEscape(key);
  if (IsPlainPath(path)) return path;
  std::string flat;
  for (const char c : path) flat += c == '/' ? "%2F" : std::string(1, c);
  return flat == "." || flat == ".." ? StrCat("%2E", flat.substr(1)) : flat;
}

std::string NameOf(uint32_t worker, uint32_t part) {
  return StrCat(WorkerPrefix(worker), "-", absl::StrFormat("%06u", part));
}

absl::Status CheckSample(std::string_view key, std::optional<std::string_view> label,
                         std::span<const FieldView> fields) {
  if (key.empty() || key.size() > kMostKeyBytes || key.find('\0') != key.npos) {
    return absl::InvalidArgumentError(
        StrCat("a key must have 1 to ", kMostKeyBytes, " bytes, without NUL"));
  }
  // Other tools have -1 for none; with numbers alone it would become the first of the classes.
  if (int64_t number = 0; label && absl::SimpleAtoi(std::string(*label), &number) && number < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the label ", EscapeForTerminal(*label),
                     " is negative; a sample without a class has none"));
  }
  if (label && (label->empty() || label->size() > kMostLabelBytes)) {
    return absl::InvalidArgumentError(
        StrCat("the name of a class must have 1 to ", kMostLabelBytes, " bytes"));
  }
  if (fields.empty() || fields[0].name != kImageField)
    return absl::InvalidArgumentError("one of the fields of a sample must be its image");
  for (size_t f = 1; f < fields.size(); ++f) {
    const auto same = [&](const FieldView& other) { return other.name == fields[f].name; };
    if (std::any_of(fields.begin(), fields.begin() + static_cast<ptrdiff_t>(f), same)) {
      return absl::InvalidArgumentError(
          StrCat("the field ", EscapeForTerminal(fields[f].name), " is given twice"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

// Builds the index of a part from what its scan finds, which must be what was added.
class PartWriter::Compare : public RecordSink {
 public:
  explicit Compare(const std::vector<Row>& rows) : rows_(rows) {}

  void OnRecord(const ScannedRecord& record) override {
    if (builder_.records() >= rows_.size()) {
      same_ = false;
      return;
    }
    const Row& row = rows_[builder_.records()];
    same_ = same_ && record.fields.size() == row.hashes.size();
    for (const ScannedField& field : record.fields) {
      const std::pair found(std::string(field.name), field.hash);
      same_ = same_ && std::ranges::find(row.hashes, found) != row.hashes.end();
    }
    builder_.Add(record, row.key, PathOf(row.key), row.label, ImageInfo());
  }
  bool same() const { return same_ && builder_.records() == rows_.size(); }
  std::string Finish(uint64_t bytes) { return builder_.Finish(bytes); }

 private:
  const std::vector<Row>& rows_;
  ShardIndexBuilder builder_;
  bool same_ = true;
};

absl::StatusOr<std::unique_ptr<PartWriter>> PartWriter::Open(const std::string& folder,
                                                             uint32_t worker) {
  RETURN_IF_ERROR(MakeDirectory(folder));
  ASSIGN_OR_RETURN(std::optional<HeldLock> lock, LockWorker(folder, worker));
  if (!lock.has_value()) {
    return absl::FailedPreconditionError(
        StrCat("another writer is worker ", worker, " of ", EscapeForTerminal(folder)));
  }
  RETURN_IF_ERROR(EndRemoval(folder).status());
  RETURN_IF_ERROR(RemoveUnfinished(folder, worker));
  std::unique_ptr<PartWriter> writer(new PartWriter(folder, worker, *std::move(lock)));
  ASSIGN_OR_RETURN(const std::vector<shardpack::Part> parts, ReadParts(folder));
  for (const shardpack::Part& part : parts) {
    ASSIGN_OR_RETURN(const ShardIndex index, OpenIndex(folder, part));
    for (uint64_t record = 0; record < index.records(); ++record)
      writer->keys_.emplace(index.key(record), 0);
    if (part.name.starts_with(WorkerPrefix(worker) + "-")) ++writer->next_part_;
  }
  return writer;
}

int64_t PartWriter::LabelOf(std::optional<std::string_view> label) {
  if (!label) return kNoLabel;
  const auto known = labels_.find(*label);
  if (known != labels_.end()) return known->second;
  const auto number = static_cast<int64_t>(classes_.size());
  classes_.emplace_back(*label);
  labels_.emplace(*label, number);
  return number;
}

absl::Status PartWriter::Begin() {
  if (file_ != nullptr) return absl::OkStatus();
  ASSIGN_OR_RETURN(file_,
                   StagedFile::Create(StrCat(folder_, "/", NameOf(worker_, next_part_), ".stage")));
  ASSIGN_OR_RETURN(shard_, kTfrecordFormat.create(*file_, ShardSpec{}));
  return absl::OkStatus();
}

absl::Status PartWriter::Append(std::string_view key, std::optional<std::string_view> label,
                                std::span<const FieldView> fields) {
  RETURN_IF_ERROR(Begin());
  const size_t classes_before = classes_.size();
  Row row{std::string(key), LabelOf(label), {}};
  for (const FieldView& field : fields) row.hashes.emplace_back(field.name, Xxh3_64(field.bytes));
  const std::string path = PathOf(key);
  const absl::Status appended = shard_->Append({.number = rows_.size(),
                                                .key = key,
                                                .source_path = path,
                                                .label = row.label,
                                                .class_name = label.value_or(std::string_view()),
                                                .fields = fields});
  if (!appended.ok()) {  // its class may be its own
    for (; classes_.size() > classes_before; classes_.pop_back()) labels_.erase(classes_.back());
    return appended;
  }
  rows_.push_back(std::move(row));
  return absl::OkStatus();
}

absl::Status PartWriter::Add(std::string_view key, std::optional<std::string_view> label,
                             std::span<const FieldView> fields) {
  RETURN_IF_ERROR(failed_);
  RETURN_IF_ERROR(CheckSample(key, label, fields));
  const auto [place, is_new] = keys_.try_emplace(std::string(key), next_part_ + 1);
  if (!is_new) {
    return absl::AlreadyExistsError(
        StrCat("the key ", EscapeForTerminal(key), " was added before"));
  }
  const absl::Status added = Append(key, label, fields);
  // A sample that cannot be held changes nothing; a file that cannot be written is lost.
  if (!added.ok() && !absl::IsInvalidArgument(added)) failed_ = added;
  if (!added.ok()) {
    keys_.erase(place);
    return added;
  }
  return file_->size() >= kPartBytes ? Flush() : absl::OkStatus();
}

bool PartWriter::Has(std::string_view key) const {
  const auto place = keys_.find(std::string(key));
  return place != keys_.end() && place->second <= next_part_;
}

absl::Status PartWriter::Flush() {
  RETURN_IF_ERROR(failed_);
  if (rows_.empty()) return absl::OkStatus();
  failed_ = End();
  return failed_;
}

absl::Status PartWriter::End() {
  RETURN_IF_ERROR(shard_->Finish());
  shard_.reset();
  RETURN_IF_ERROR(file_->StartSync());  // the disk writes while this thread reads again
  shardpack::Part part{.name = NameOf(worker_, next_part_),
                       .records = rows_.size(),
                       .bytes = file_->size(),
                       .digest = {},
                       .classes = classes_};
  SequentialReader in(file_->file(), part.bytes);
  Compare compare(rows_);
  FindingList findings;
  RETURN_IF_ERROR(kTfrecordFormat.scanner->Scan(in, {.shard_name = part.name, .strict = false},
                                                compare, findings));
  ASSIGN_OR_RETURN(part.digest, in.Finish());
  if (!compare.same() || findings.errors() > 0) {
    return absl::DataLossError(
        StrCat(EscapeForTerminal(file_->path()), " does not read back as it was written"));
  }
  RETURN_IF_ERROR(file_->SyncData());
  const std::string path = StrCat(folder_, "/", part.name);
  RETURN_IF_ERROR(file_->Publish(StrCat(path, ".tfrecord")));
  file_.reset();
  RETURN_IF_ERROR(WriteNewFile(StrCat(path, ".pidx"), compare.Finish(part.bytes)));
  RETURN_IF_ERROR(WritePart(folder_, part));
  RETURN_IF_ERROR(SyncDirectory(folder_));
  rows_.clear();
  classes_.clear();
  labels_.clear();
  ++next_part_;
  return absl::OkStatus();
}

}  // namespace shardpack
