// The layouts: which features of a tf.train.Example mean what, and the limits of the format.
//
//   entries.push_back({kFeatureEncoded, image_bytes});
//   std::optional<FeatureKind> kind = KindInLayout("image/height");      // kInt64
//   bool is_field = !IsMetadataFeature("image/format");
//
// The names of `classification` are those of the image classification examples of TensorFlow
// (tensorflow/models: research/slim/datasets/build_imagenet_data.py), with labels from 0 as in
// research/slim/datasets/dataset_utils.py. `imagenet` is that program's own, labels from 1; `tfds`
// that of TensorFlow Datasets (tensorflow/datasets: docs/external_tfrecord.md).
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

// The oneof of tf.train.Feature; kNone is a Feature without any list, which readers take for an
// empty one.
enum class FeatureKind : uint8_t { kNone, kBytes, kFloat, kInt64 };

enum class TfrecordLayout : uint8_t { kClassification, kImagenet, kTfds };

inline constexpr std::string_view kClassificationLayout = "classification";
inline constexpr std::string_view kImagenetLayout = "imagenet";
inline constexpr std::string_view kTfdsLayout = "tfds";
// What the layout imagenet stores for class 0: 0 is the background there.
inline constexpr int64_t kImagenetLabelBase = 1;

// "" is classification; nullopt for a name that is none of these.
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
// Of imagenet; no boxes are known here, so these lists are empty.
inline constexpr std::string_view kFeatureBoxLabel = "image/object/bbox/label";
inline constexpr std::string_view kFeatureBoxEdges[] = {
    "image/object/bbox/xmax", "image/object/bbox/xmin", "image/object/bbox/ymax",
    "image/object/bbox/ymin"};
// Of tfds, beside kFeatureFilename.
inline constexpr std::string_view kFeatureTfdsImage = "image";
inline constexpr std::string_view kFeatureTfdsLabel = "label";

// Protobuf refuses any length above INT_MAX minus the 16 bytes that its parser may read ahead
// (protobuf 3.21: google/protobuf/parse_context.h, kSlopBytes and PushLimit), so larger Examples
// are read by nobody.
inline constexpr uint64_t kMaxExampleBytes = (uint64_t{1} << 31) - 1 - 16;
// Of a further field's name; part of what record_bound counts on.
inline constexpr size_t kMaxFieldNameBytes = 64;

// The kind that the layout gives to this feature; nullopt for a name that it does not have.
std::optional<FeatureKind> KindInLayout(std::string_view name);

// Names under which well-known writers store the encoded image and the class index, the preferred
// one first.
std::span<const std::string_view> ImageFeatureNames();
std::span<const std::string_view> LabelFeatureNames();
// Names of the source path.
std::span<const std::string_view> FilenameFeatureNames();

// True for bytes features that describe the image or its class, and are therefore no field of the
// sample.
bool IsMetadataFeature(std::string_view name);

// "jpeg", "png", "webp", "gif", "bmp", "tiff"; "" when unknown: readers then look at the content.
std::string_view FeatureFormatName(ImageFormat format);
// The same in capitals, as imagenet has it.
std::string_view FeatureFormatNameInCapitals(ImageFormat format);
// "RGB", "GRAY", "RGBA", "CMYK"; "" when unknown. A palette is what it decodes to.
std::string_view FeatureColorspaceName(const ImageInfo& image);

std::string_view KindName(FeatureKind kind);  // "bytes_list"

// True when `text` is UTF-8 (RFC 3629). Protobuf refuses to parse a map key that is not.
bool IsUtf8(std::string_view text);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_TFRECORD_TFRECORD_LAYOUT_H_
