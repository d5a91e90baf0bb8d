#include "formats/hdf5/writing/packed_writer.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/hdf5/hdf5_layout.h"
#include "formats/io/status_macros.h"

namespace shardpack {

absl::StatusOr<std::unique_ptr<ShardWriter>> PackedWriter::Create(StagedFile& file,
                                                                  const ShardSpec& spec) {
  absl::Status status = SampleTable::CheckSpec(spec);
  if (!status.ok()) return status;
  auto writer = std::unique_ptr<PackedWriter>(new PackedWriter(file, spec));
  const uint64_t images = spec.fields.empty() ? 0 : spec.fields[0].max_bytes;
  ASSIGN_OR_RETURN(writer->output_, Hdf5Output::Create(writer->out_));
  status = writer->MakeField(kImagesName, images);
  for (size_t f = 1; f < spec.fields.size() && status.ok(); ++f) {
    status = writer->MakeField(spec.fields[f].name, spec.fields[f].max_bytes);
  }
  if (!status.ok()) return status;
  return writer;
}

absl::Status PackedWriter::MakeField(std::string_view name, uint64_t max_bytes) {
  RETURN_IF_ERROR(output_->MakeGroup(name));
  ASSIGN_OR_RETURN(
      uint64_t offset,
      output_->MakeBytes(absl::StrCat(std::string(name), "/", std::string(kDataName)), max_bytes));
  regions_.emplace_back(out_, offset, max_bytes);
  offsets_.push_back({0});
  return absl::OkStatus();
}

absl::Status PackedWriter::Append(const SampleView& sample) {
  if (finished_) return absl::FailedPreconditionError("Append after Finish");
  absl::Status status = table_.Check(sample);
  if (!status.ok()) return status;
  for (size_t f = 0; f < sample.fields.size(); ++f) {
    if (sample.fields[f].bytes.size() > regions_[f].capacity() - regions_[f].appended()) {
      return SampleTable::Refuse(
          sample, absl::StrCat("field ", std::string(sample.fields[f].name),
                               " of the shard is planned for ", regions_[f].capacity(), " bytes"));
    }
  }
  for (size_t f = 0; f < sample.fields.size(); ++f) {
    status = regions_[f].Append(sample.fields[f].bytes);
    if (!status.ok()) return status;
    offsets_[f].push_back(regions_[f].appended());
  }
  table_.Add(sample);
  return absl::OkStatus();
}

absl::Status PackedWriter::Finish() {
  if (finished_) return absl::FailedPreconditionError("Finish was called before");
  finished_ = true;
  absl::Status status;
  for (OutputRegion& region : regions_) status.Update(region.Flush());
  for (size_t f = 0; f < offsets_.size() && status.ok(); ++f) {
    const std::string_view name = f == 0 ? kImagesName : std::string_view(spec_.fields[f].name);
    status = output_->WriteUint64(absl::StrCat(std::string(name), "/", std::string(kOffsetsName)),
                                  offsets_[f]);
  }
  if (status.ok()) status = table_.Write(*output_, kPackedLayout);
  absl::Status closed = output_->Close();
  return status.ok() ? closed : status;
}

}  // namespace shardpack
