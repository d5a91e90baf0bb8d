// ExampleEncoder: encodes a sample as the wire bytes of a tf.train.Example, without copying its
// fields.
//
//   ExampleEncoder encoder(TfrecordLayout::kClassification);
//   absl::Status encoded = encoder.Encode(sample);
//   file.Append(encoder.parts());                     // metadata | image | metadata
//
// The bytes are canonical: they match stock protobuf with deterministic serialization (map entries
// in byte order of their names, packed integers). The schema is tensorflow/tensorflow:
// tensorflow/core/example/{example,feature}.proto, copied in example.proto; tfrecord_layout.h lists
// the features.
//
// Lifetime: parts() borrows from the encoder and the sample's fields, until the next Encode.
// Thread-safety: one caller at a time.
// Errors: InvalidArgument, naming the sample's key, for a sample that an Example cannot hold;
// parts() is then empty.
// Memory: reused between samples; no allocations after the largest sample.
// Units: bytes.
#ifndef SHARDPACK_FORMATS_TFRECORD_EXAMPLE_ENCODER_H_
#define SHARDPACK_FORMATS_TFRECORD_EXAMPLE_ENCODER_H_

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "formats/core/sample.h"
#include "formats/io/bytes.h"
#include "formats/tfrecord/tfrecord_layout.h"

namespace shardpack {

class ExampleEncoder {
 public:
  explicit ExampleEncoder(TfrecordLayout layout = TfrecordLayout::kClassification)
      : layout_(layout) {}

  absl::Status Encode(const SampleView& sample);

  // The encoded Example, in order.
  std::span<const Bytes> parts() const { return parts_; }
  uint64_t size_bytes() const { return size_bytes_; }

 private:
  // One entry of the feature map, with the lengths of its nested messages.
  struct Entry {
    std::string_view name;
    Bytes bytes;          // of a bytes feature
    int64_t integer = 0;  // of an int64 feature
    FeatureKind kind = FeatureKind::kBytes;
    bool empty = false;     // a list without values
    bool borrowed = false;  // the bytes become a part of their own, not copied
    uint64_t list_bytes = 0, feature_bytes = 0, entry_bytes = 0;
  };

  absl::Status Check(const SampleView& sample) const;
  void Collect(const SampleView& sample);
  void CollectClassification(const SampleView& sample);
  void CollectImagenet(const SampleView& sample);
  void CollectTfds(const SampleView& sample);
  void AddBytes(std::string_view name, Bytes bytes, bool borrowed = false);
  void AddInteger(std::string_view name, int64_t value);
  void AddEmpty(std::string_view name, FeatureKind kind);
  void WriteParts(uint64_t features_bytes, uint64_t scratch_bytes);

  const TfrecordLayout layout_;
  std::vector<Entry> entries_;
  std::vector<std::byte> scratch_;
  std::vector<Bytes> parts_;
  uint64_t size_bytes_ = 0;
};

// The largest possible Example for a sample with these sizes. `field_bytes[0]` is the image.
uint64_t ExampleBound(TfrecordLayout layout, size_t source_path_bytes, size_t class_name_bytes,
                      bool has_label, std::span<const uint64_t> field_bytes);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_TFRECORD_EXAMPLE_ENCODER_H_
