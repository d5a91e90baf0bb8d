// ExampleScan: finds the features of one tf.train.Example in its wire bytes, without protobuf and
// without a copy.
//
//   ExampleScan example;
//   if (example.Scan(payload) == ExampleScan::Outcome::kExample && example.image() != nullptr) {
//     Bytes image = payload.subspan(example.image()->offset, example.image()->length);
//   }
//
// Reads what stock protobuf reads (tensorflow/tensorflow:
// tensorflow/core/example/{example,feature}.proto): map entries in any order, the last of equal
// names, repeated and merged messages, packed, unpacked and mixed numbers, unknown fields and
// groups. Unlike protobuf it accepts a name that is not UTF-8, as TensorFlow's own fast parser
// does.
//
// Lifetime: features borrow the payload, until the next Scan.
// Thread-safety: one caller at a time.
// Errors: kMalformed, with problem() and problem_offset().
// Memory: reused; bounded by kMaxFeatures, never by a length that the payload states.
// Units: bytes from the start of the payload.
#ifndef SHARDPACK_FORMATS_TFRECORD_EXAMPLE_SCAN_H_
#define SHARDPACK_FORMATS_TFRECORD_EXAMPLE_SCAN_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "formats/io/bytes.h"
#include "formats/tfrecord/tfrecord_layout.h"

namespace shardpack {

struct ScannedFeature {
  std::string_view name;
  FeatureKind kind = FeatureKind::kNone;
  uint32_t order = 0;               // of its entry within the map
  uint64_t values = 0;              // in its list
  int64_t first_integer = 0;        // of an int64 list that is not empty
  uint64_t offset = 0, length = 0;  // of the first value of a bytes list that is not empty
};

class ExampleScan {
 public:
  enum class Outcome { kExample, kSequenceExample, kMalformed };

  // More map entries than this in one record are called malformed, so that memory stays bounded.
  static constexpr size_t kMaxFeatures = 65536;

  Outcome Scan(Bytes payload);

  // In the byte order of their names, each name once.
  std::span<const ScannedFeature> features() const { return features_; }
  // nullptr when there is none.
  const ScannedFeature* Find(std::string_view name) const;

  // The first of ImageFeatureNames that is a bytes list with a value; nullptr when there is none.
  const ScannedFeature* image() const { return image_; }
  // The first of LabelFeatureNames that is an int64 list with a value; nullptr when there is none.
  const ScannedFeature* label() const { return label_; }
  // The first of FilenameFeatureNames that is a bytes list with a value; nullptr when there is
  // none.
  const ScannedFeature* filename() const { return filename_; }
  // True for a feature that is a further field of the sample: exactly one bytes value, and not
  // image or metadata.
  bool IsField(const ScannedFeature& feature) const;

  // True for values that nothing above gives: numbers and lists that no layout's writer derives
  // from the image and its class.
  bool IsLost(const ScannedFeature& feature) const;

  std::string_view problem() const { return problem_; }  // static storage
  uint64_t problem_offset() const { return problem_offset_; }

 private:
  class Wire;

  bool ParseExample(Wire wire);
  bool ParseFeatures(Wire wire);
  bool ParseEntry(Wire wire);
  bool ParseFeature(Wire wire, ScannedFeature& feature);
  bool ParseBytesList(Wire wire, ScannedFeature& feature);
  bool ParseFloatList(Wire wire, ScannedFeature& feature);
  bool ParseInt64List(Wire wire, ScannedFeature& feature);
  bool Fail(const Wire& wire, std::string_view problem);
  void SortAndDropDuplicates();
  const ScannedFeature* FirstOf(std::span<const std::string_view> names, FeatureKind kind) const;

  const std::byte* begin_ = nullptr;  // of the payload
  std::vector<ScannedFeature> features_;
  bool sorted_ = true;
  bool has_feature_lists_ = false;
  const ScannedFeature* image_ = nullptr;
  const ScannedFeature* label_ = nullptr;
  const ScannedFeature* filename_ = nullptr;
  std::string_view problem_;
  uint64_t problem_offset_ = 0;
};

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_TFRECORD_EXAMPLE_SCAN_H_
