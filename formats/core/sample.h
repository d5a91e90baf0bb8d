// SampleView: one training sample, borrowed: a key, a label, and its fields, the image first.
//
//   FieldView image{"image", jpeg_bytes};
//   SampleView sample{.key = "cat/1", .source_path = "cat/1.JPEG", .label = 0, .image = info,
//                     .fields = {&image, 1}};
//   absl::Status appended = writer->Append(sample);
//
// Lifetime: borrows everything it points to; the function that provides a sample documents how long
// it is valid.
#ifndef SHARDPACK_FORMATS_CORE_SAMPLE_H_
#define SHARDPACK_FORMATS_CORE_SAMPLE_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "formats/core/image_info.h"
#include "formats/io/bytes.h"

namespace shardpack {

// The name of field 0 of every sample, whatever a format calls it.
inline constexpr std::string_view kImageField = "image";
// The label of a sample that has none.
inline constexpr int64_t kNoLabel = -1;

struct FieldView {
  // Lower case; further fields are named after their extension: "json", "txt", "mask.png".
  std::string_view name;
  Bytes bytes;
};

struct SampleView {
  uint64_t number = 0;                // position in the plan's order, over the whole dataset
  std::string_view key = {};          // unique within the dataset
  std::string_view source_path = {};  // relative to the source root, bytes as in the file system
  int64_t label = kNoLabel;           // 0-based class index
  std::string_view class_name = {};   // empty if there is no label
  ImageInfo image = {};
  std::span<const FieldView> fields = {};  // [0] = image
};

// Explains why the image lacks the fixed raw shape `wanted`; empty if it matches.
std::string WhyNotRawImage(const SampleView& sample, const ImageInfo& wanted);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_CORE_SAMPLE_H_
