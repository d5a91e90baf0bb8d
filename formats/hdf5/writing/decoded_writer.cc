#include "formats/hdf5/writing/decoded_writer.h"

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "formats/core/image_info.h"
#include "formats/hdf5/hdf5_layout.h"
#include "formats/io/status_macros.h"

namespace shardpack {

absl::StatusOr<std::unique_ptr<ShardWriter>> DecodedWriter::Create(StagedFile& file,
                                                                   const ShardSpec& spec) {
  RETURN_IF_ERROR(SampleTable::CheckSpec(spec));
  if (spec.raw_image.format != ImageFormat::kRaw || RawImageBytes(spec.raw_image) == 0) {
    return absl::InvalidArgumentError(
        "the layout decoded holds raw pixels of one shape, and none is given");
  }
  if (RawImageBytes(spec.raw_image) < kMinRawImageBytes) {
    return absl::InvalidArgumentError(absl::StrCat("the layout decoded holds images of at least ",
                                                   kMinRawImageBytes, " bytes, and these have ",
                                                   RawImageBytes(spec.raw_image)));
  }
  if (spec.fields.size() > 1 || spec.with_metadata) {
    return absl::InvalidArgumentError("the layout decoded holds no further fields");
  }
  auto writer = std::unique_ptr<DecodedWriter>(new DecodedWriter(file, spec));
  ASSIGN_OR_RETURN(uint64_t offset, writer->LayOut(spec.max_records));
  writer->offset_ = offset;
  writer->pixels_.emplace(writer->out_, offset, spec.max_records * writer->image_bytes_);
  return writer;
}

absl::StatusOr<uint64_t> DecodedWriter::LayOut(uint64_t samples) {
  ASSIGN_OR_RETURN(output_, Hdf5Output::Create(out_));
  const ImageInfo& image = spec_.raw_image;
  const uint64_t dims[] = {samples, image.height, image.width, image.channels};
  return output_->MakeBytes(kImagesName, dims);
}

absl::Status DecodedWriter::Append(const SampleView& sample) {
  if (finished_) return absl::FailedPreconditionError("Append after Finish");
  absl::Status status = table_.Check(sample);
  if (!status.ok()) return status;
  const std::string why_not = WhyNotRawImage(sample, spec_.raw_image);
  if (!why_not.empty()) return SampleTable::Refuse(sample, why_not);
  status = pixels_->Append(sample.fields[0].bytes);
  if (status.ok()) table_.Add(sample);
  return status;
}

absl::Status DecodedWriter::LayOutAgain() {
  // The bytes of a small dataset are not aligned, so they lie elsewhere.
  const uint64_t bytes = table_.samples() * image_bytes_;
  const bool small = bytes < kDataAlignment;
  std::vector<std::byte> moved(small ? bytes : 0);
  absl::Status status = out_.ReadAt(offset_, moved);
  status.Update(output_->Close());
  // Remove the first file layout: its remains would show where the second one has nothing.
  if (small) status.Update(out_.Resize(0));
  if (!status.ok()) return status;
  ASSIGN_OR_RETURN(uint64_t offset, LayOut(table_.samples()));
  if (!small && offset != offset_) return absl::InternalError("hdf5: /images has moved");
  const std::array<Bytes, 1> part = {Bytes(moved)};
  return small ? out_.WriteAt(offset, part) : absl::OkStatus();
}

absl::Status DecodedWriter::Finish() {
  if (finished_) return absl::FailedPreconditionError("Finish was called before");
  finished_ = true;
  absl::Status status = pixels_->Flush();
  if (status.ok() && table_.samples() < spec_.max_records) status = LayOutAgain();
  static const std::array<std::string, 4> kLabels = {"batch", "height", "width", "channel"};
  if (status.ok()) status = output_->LabelDimensions(kImagesName, kLabels);
  if (status.ok()) status = table_.Write(*output_, kDecodedLayout);
  absl::Status closed = output_->Close();
  return status.ok() ? closed : status;
}

}  // namespace shardpack
