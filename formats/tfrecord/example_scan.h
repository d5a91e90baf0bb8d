// ExampleScan: finds the features of one tf.train.Example in its wire bytes, without protobuf and
// without copying.
//
//   ExampleScan example;
//   if (example.Scan(payload) == ExampleScan::Outcome::kExample && example.image() != nullptr) {
//     Bytes image = payload.subspan(example.image()->offset, example.image()->length);
//   }
//
// It accepts what stock protobuf accepts (tensorflow/tensorflow:
// tensorflow/core/example/{example,feature}.proto): map entries in any order, repeated names (the
// last wins), repeated and merged messages, packed, unpacked and mixed numbers, unknown fields and
// groups. Unlike protobuf, but like TensorFlow's own fast parser, it accepts names that are not
// UTF-8.
//
// Lifetime: features borrow from the payload, until the next Scan.
// Thread-safety: one caller at a time.
// Errors: kMalformed, with problem() and problem_offset().
// Memory: reused; bounded by kMaxFeatures, never by a length stated in the payload.
// Units: bytes from the start of the payload.
#ifndef SHARDPACK_FORMATS_TFRECORD_EXAMPLE_SCAN_H_
#define SHARDPACK_FORMATS_TFRECORD_EXAMPLE_SCAN_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/io/bytes.h"
#include "formats/tfrecord/tfrecord_layout.h"

namespace shardpack {

struct ScannedFeature {
  std::string_view name;
  FeatureKind kind = FeatureKind::kNone;
  uint32_t order = 0;               // of its entry in the map
  uint64_t values = 0;              // number of values in its list
  int64_t first_integer = 0;        // of a non-empty int64 list
  uint64_t offset = 0, length = 0;  // of the first value of a non-empty bytes list
};

class ExampleScan {
 public:
  enum class Outcome { kExample, kSequenceExample, kMalformed };

  // A record with more map entries than this counts as malformed, so that memory stays bounded.
  static constexpr size_t kMaxFeatures = 65536;

  Outcome Scan(Bytes payload);

  // In byte order of their names, each name once.
  std::span<const ScannedFeature> features() const { return features_; }
  // nullptr if there is none.
  const ScannedFeature* Find(std::string_view name) const;

  // The first of ImageFeatureNames that is a bytes list with a value; nullptr if there is none.
  const ScannedFeature* image() const { return image_; }
  // The first of LabelFeatureNames that is an int64 list with a value; nullptr if there is none.
  const ScannedFeature* label() const { return label_; }
  // The first of FilenameFeatureNames that is a bytes list with a value; nullptr if there is none.
  const ScannedFeature* filename() const { return filename_; }
  // True if the feature, one of features(), is a further field of the sample: it has exactly one
  // bytes value, and is not image or metadata.
  bool IsField(const ScannedFeature& feature) const;

  // True for values that none of the above returns: numbers and lists that no layout's writer
  // derives from the image, the names of its class, further paths, and what an image, a label or a
  // path has after its first value.
  bool IsLost(const ScannedFeature& feature) const;
  // True for such a name of the class.
  bool IsClassName(const ScannedFeature& feature) const;

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
  // The records of a shard repeat the names of their features, so that what follows from a name is
  // looked up once.
  struct KnownFeature {
    std::string name;
    FeatureKind kind = FeatureKind::kNone;
    bool has_value = false;
    bool is_metadata = false, is_class_name = false, is_derived = false;
  };
  bool AreKnown() const;
  void Learn();
  std::optional<size_t> FirstOf(std::span<const std::string_view> names, FeatureKind kind) const;
  const ScannedFeature* At(std::optional<size_t> place) const {
    return place ? &features_[*place] : nullptr;
  }
  const KnownFeature& Known(const ScannedFeature& feature) const {
    return known_[static_cast<size_t>(&feature - features_.data())];
  }

  const std::byte* begin_ = nullptr;  // of the payload
  std::vector<ScannedFeature> features_;
  std::vector<KnownFeature> known_;  // of the last Example
  std::optional<size_t> image_at_, label_at_, filename_at_;
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
