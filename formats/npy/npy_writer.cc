#include "formats/npy/npy_writer.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "formats/core/image_info.h"
#include "formats/io/file.h"
#include "formats/io/status_macros.h"
#include "formats/npy/npy_layout.h"

namespace shardpack {
namespace {

absl::Status Refuse(const SampleView& sample, std::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("npy cannot hold sample ",
                                                 EscapeForTerminal(sample.key), ": ",
                                                 absl::string_view(why.data(), why.size())));
}

}  // namespace

std::string NpyWriter::Header(uint64_t samples) const {
  const ImageInfo& image = spec_.raw_image;
  const uint64_t shape[] = {samples, image.height, image.width, image.channels};
  return MakeNpyHeader("|u1", shape);
}

absl::Status NpyWriter::Append(const SampleView& sample) {
  if (finished_) return absl::FailedPreconditionError("Append after Finish");
  if (sample.fields.size() != 1) return Refuse(sample, "it has further fields");
  const std::string why_not = WhyNotRawImage(sample, spec_.raw_image);
  if (!why_not.empty()) return Refuse(sample, why_not);
  if (samples_ == spec_.max_records) return Refuse(sample, "more samples than were planned");
  if (!begun_) {
    begun_ = true;
    const std::string header = Header(spec_.max_records);
    RETURN_IF_ERROR(file_.Append(AsBytes(header)));
  }
  RETURN_IF_ERROR(file_.Append(sample.fields[0].bytes));
  ++samples_;
  return absl::OkStatus();
}

absl::Status NpyWriter::Finish() {
  if (finished_) return absl::FailedPreconditionError("Finish was called before");
  finished_ = true;
  const std::string header = Header(samples_);
  if (!begun_) return file_.Append(AsBytes(header));
  if (samples_ == spec_.max_records) return absl::OkStatus();
  RETURN_IF_ERROR(file_.Flush());
  // Overwrite the first header; the kernel already has all bytes after it.
  const Bytes over = AsBytes(header);
  return file_.file().WriteAt(0, std::span(&over, 1));
}

absl::StatusOr<std::unique_ptr<ShardWriter>> CreateNpyWriter(StagedFile& file,
                                                             const ShardSpec& spec) {
  if (!spec.layout.empty() && spec.layout != kDecodedLayout) {
    return absl::InvalidArgumentError(
        absl::StrCat("npy has no layout ", EscapeForTerminal(spec.layout), "; it has decoded"));
  }
  if (!spec.image_field.empty() || spec.with_metadata) {
    return absl::InvalidArgumentError("npy holds pixels alone: no image field name, no metadata");
  }
  if (spec.fields.size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("npy cannot hold the field ", EscapeForTerminal(spec.fields[1].name)));
  }
  if (spec.raw_image.format != ImageFormat::kRaw || RawImageBytes(spec.raw_image) == 0) {
    return absl::InvalidArgumentError("npy holds raw pixels of one shape, and none is given");
  }
  if (RawImageBytes(spec.raw_image) < kMinRawImageBytes) {
    return absl::InvalidArgumentError(absl::StrCat("npy holds images of at least ",
                                                   kMinRawImageBytes, " bytes, and these have ",
                                                   RawImageBytes(spec.raw_image)));
  }
  return std::make_unique<NpyWriter>(file, spec);
}

}  // namespace shardpack
