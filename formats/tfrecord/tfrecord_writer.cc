#include "formats/tfrecord/tfrecord_writer.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "formats/io/file.h"
#include "formats/io/hash.h"
#include "formats/io/status_macros.h"
#include "formats/tfrecord/record_framing.h"
#include "formats/tfrecord/tfrecord_layout.h"

namespace shardpack {

absl::Status TfrecordWriter::Append(const SampleView& sample) {
  if (finished_) return absl::FailedPreconditionError("Append after Finish");
  RETURN_IF_ERROR(encoder_.Encode(sample));
  uint32_t crc = 0;
  for (const Bytes part : encoder_.parts()) crc = Crc32c(part, crc);
  const std::array header = EncodeRecordHeader(encoder_.size_bytes());
  const std::array footer = EncodeRecordFooter(crc);
  parts_.clear();
  parts_.emplace_back(header);
  parts_.insert(parts_.end(), encoder_.parts().begin(), encoder_.parts().end());
  parts_.emplace_back(footer);
  return file_.Append(parts_);
}

// A TFRecord file has neither header nor footer.
absl::Status TfrecordWriter::Finish() {
  if (finished_) return absl::FailedPreconditionError("Finish was called before");
  finished_ = true;
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ShardWriter>> CreateTfrecordWriter(StagedFile& file,
                                                                  const ShardSpec& spec) {
  const std::optional<TfrecordLayout> layout = ParseTfrecordLayout(spec.layout);
  if (!layout) {
    return absl::InvalidArgumentError(
        absl::StrCat("tfrecord has no layout ", EscapeForTerminal(spec.layout), "; it has ",
                     std::string(kClassificationLayout), ", ", std::string(kImagenetLayout), ", ",
                     std::string(kTfdsLayout)));
  }
  if (!spec.image_field.empty()) {
    const std::string_view name =
        *layout == TfrecordLayout::kTfds ? kFeatureTfdsImage : kFeatureEncoded;
    return absl::InvalidArgumentError(
        absl::StrCat("tfrecord stores the image as ", std::string(name),
                     " always; an image field name cannot be chosen"));
  }
  return std::make_unique<TfrecordWriter>(file, *layout);
}

}  // namespace shardpack
