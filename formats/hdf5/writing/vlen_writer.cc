#include "formats/hdf5/writing/vlen_writer.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/hdf5/hdf5_layout.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

constexpr size_t kPendingBytes = 8 << 20;

}  // namespace

absl::StatusOr<std::unique_ptr<ShardWriter>> VlenWriter::Create(StagedFile& file,
                                                                const ShardSpec& spec) {
  absl::Status status = SampleTable::CheckSpec(spec);
  if (!status.ok()) return status;
  auto writer = std::unique_ptr<VlenWriter>(new VlenWriter(file, spec));
  ASSIGN_OR_RETURN(writer->output_, Hdf5Output::Create(writer->out_));
  writer->names_.emplace_back(kImagesName);
  for (size_t f = 1; f < spec.fields.size(); ++f) writer->names_.push_back(spec.fields[f].name);
  for (const std::string& name : writer->names_) {
    status = writer->output_->MakeByteLists(name, spec.max_records,
                                            std::min(spec.max_records, kChunkElements));
    if (!status.ok()) return status;
  }
  return writer;
}

absl::Status VlenWriter::Append(const SampleView& sample) {
  if (finished_) return absl::FailedPreconditionError("Append after Finish");
  absl::Status status = table_.Check(sample);
  if (!status.ok()) return status;
  size_t bytes = 0;
  for (const FieldView& field : sample.fields) {
    if (field.bytes.size() > kMaxVlenBytes) {
      return SampleTable::Refuse(
          sample, absl::StrCat("field ", std::string(field.name), " has more than 2^32 - 1 bytes"));
    }
    bytes += field.bytes.size();
  }
  if (!pending_.empty() && pending_.size() + bytes > kPendingBytes) {
    status = WritePending();
    if (!status.ok()) return status;
  }
  for (const FieldView& field : sample.fields) {
    pending_.insert(pending_.end(), field.bytes.begin(), field.bytes.end());
    pending_lengths_.push_back(field.bytes.size());
  }
  table_.Add(sample);
  const bool full_chunk = table_.samples() - written_ >= kChunkElements;
  return full_chunk ? WritePending() : absl::OkStatus();
}

absl::Status VlenWriter::WritePending() {
  const size_t fields = names_.size();
  std::vector<std::vector<Bytes>> lists(fields);
  uint64_t begin = 0;
  for (size_t i = 0; i < pending_lengths_.size(); ++i) {
    lists[i % fields].push_back(Bytes(pending_).subspan(begin, pending_lengths_[i]));
    begin += pending_lengths_[i];
  }
  absl::Status status;
  for (size_t f = 0; f < fields && status.ok(); ++f) {
    status = output_->WriteByteLists(names_[f], written_, lists[f]);
  }
  written_ = table_.samples();
  pending_.clear();
  pending_lengths_.clear();
  return status;
}

absl::Status VlenWriter::Finish() {
  if (finished_) return absl::FailedPreconditionError("Finish was called before");
  finished_ = true;
  absl::Status status = WritePending();
  for (size_t f = 0; f < names_.size() && status.ok() && written_ < spec_.max_records; ++f) {
    status = output_->ShrinkByteLists(names_[f], written_);
  }
  if (status.ok()) status = table_.Write(*output_, kVlenLayout);
  absl::Status closed = output_->Close();
  return status.ok() ? closed : status;
}

}  // namespace shardpack
