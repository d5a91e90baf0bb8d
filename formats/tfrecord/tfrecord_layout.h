// The layouts: the meaning of features in a tf.train.Example, and the limits of the format.
//
//   entries.push_back({kFeatureEncoded, image_bytes});
//   std::optional<FeatureKind> kind = KindInLayout("image/height");      // kInt64
//   bool is_field = !IsMetadataFeature("image/format");
//
// `classification` uses the names of TensorFlow's image classification examples (tensorflow/models:
// research/slim/datasets/build_imagenet_data.py), with labels from 0 as in
// research/slim/datasets/dataset_utils.py. `imagenet` is that program's own layout, with labels
// from 1; `tfds` is that of TensorFlow Datasets (tensorflow/datasets: docs/external_tfrecord.md).
//
// Units: bytes.
#ifndef SHARDPACK_FORMATS_TFRECORD_TFRECORD_LAYOUT_H_
#define SHARDPACK_FORMATS_TFRECORD_TFRECORD_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "formats/core/image_info.h"

namespace shardpack {

// The oneof of tf.train.Feature; kNone is a Feature without any list, which readers treat as an
// empty one.
enum class FeatureKind : uint8_t { kNone, kBytes, kFloat, kInt64 };

enum class TfrecordLayout : uint8_t { kClassification, kImagenet, kTfds };

inline constexpr std::string_view kClassificationLayout = "classification";
inline constexpr std::string_view kImagenetLayout = "imagenet";
inline constexpr std::string_view kTfdsLayout = "tfds";
// The imagenet layout stores this for class 0, because 0 is the background.
inline constexpr int64_t kImagenetLabelBase = 1;

// "" is classification; nullopt for an unknown name.
std::optional<TfrecordLayout> ParseTfrecordLayout(std::string_view name);

inline constexpr std::string_view kFeatureChannels = "image/channels";
inline constexpr std::string_view kFeatureLabel = "image/class/label";
inline constexpr std::string_view kFeatureClassText = "image/class/text";
inline constexpr std::string_view kFeatureSynset = "image/class/synset";
inline constexpr std::string_view kFeatureColorspace = "image/colorspace";
inline constexpr std::string_view kFeatureEncoded = "image/encoded";
inline constexpr std::string_view kFeatureFilename = "image/filename";
inline constexpr std::string_view kFeatureFormat = "image/format";
inline constexpr std::string_view kFeatureHeight = "image/height";
inline constexpr std::string_view kFeatureWidth = "image/width";
// Only in imagenet. These lists are empty, because no boxes are known here.
inline constexpr std::string_view kFeatureBoxLabel = "image/object/bbox/label";
inline constexpr std::string_view kFeatureBoxEdges[] = {
    "image/object/bbox/xmax", "image/object/bbox/xmin", "image/object/bbox/ymax",
    "image/object/bbox/ymin"};
// Only in tfds, together with kFeatureFilename.
inline constexpr std::string_view kFeatureTfdsImage = "image";
inline constexpr std::string_view kFeatureTfdsLabel = "label";

// Protobuf refuses any length above INT_MAX minus the 16 bytes that its parser may read ahead
// (protobuf 3.21: google/protobuf/parse_context.h, kSlopBytes and PushLimit), so no reader accepts
// larger Examples.
inline constexpr uint64_t kMaxExampleBytes = (uint64_t{1} << 31) - 1 - 16;
// The limit for a further field's name; record_bound relies on it.
inline constexpr size_t kMaxFieldNameBytes = 64;

// The kind of this feature in the layout; nullopt if the layout does not have it.
std::optional<FeatureKind> KindInLayout(std::string_view name);

// Names under which well-known writers store the encoded image and the class index, the preferred
// one first.
std::span<const std::string_view> ImageFeatureNames();
std::span<const std::string_view> LabelFeatureNames();
// Names of the source path.
std::span<const std::string_view> FilenameFeatureNames();

// True for bytes features that describe the image or its class, and are therefore not fields of the
// sample.
bool IsMetadataFeature(std::string_view name);

// "jpeg", "png", "webp", "gif", "bmp", "tiff"; "" if unknown: readers then inspect the content.
std::string_view FeatureFormatName(ImageFormat format);
// The same in capitals, as in imagenet.
std::string_view FeatureFormatNameInCapitals(ImageFormat format);
// "RGB", "GRAY", "RGBA", "CMYK"; "" if unknown. A palette image counts as what it decodes to.
std::string_view FeatureColorspaceName(const ImageInfo& image);

std::string_view KindName(FeatureKind kind);  // "bytes_list"

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_TFRECORD_TFRECORD_LAYOUT_H_
