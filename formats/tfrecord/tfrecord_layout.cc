#include "formats/tfrecord/tfrecord_layout.h"

#include <algorithm>
#include <array>

#include "formats/io/escape.h"

namespace shardpack {
namespace {

// TFDS uses "image" and "label" (tensorflow/datasets: docs/external_tfrecord.md), DLIO "image"
// (argonne-lcf/dlio_benchmark: dlio_benchmark/data_generator), img2dataset "jpg"
// (rom1504/img2dataset: img2dataset/writer.py), and TensorFlow's TFRecord tutorial "image_raw".
constexpr std::string_view kImageNames[] = {kFeatureEncoded, kFeatureTfdsImage,
                                            "image_raw",     "jpg",
                                            "jpeg",          "png",
                                            "webp",          "gif",
                                            "bmp",           "tif",
                                            "tiff"};
constexpr std::string_view kLabelNames[] = {kFeatureLabel, kFeatureTfdsLabel, "cls"};
constexpr std::string_view kFilenameNames[] = {kFeatureFilename, "file_name"};

constexpr std::string_view kMetadataNames[] = {kFeatureClassText, kFeatureColorspace,
                                               kFeatureFilename,  kFeatureFormat,
                                               kFeatureSynset,    "file_name"};

struct LayoutRow {
  std::string_view name;
  FeatureKind kind;
};
constexpr LayoutRow kLayoutRows[] = {
    {kFeatureChannels, FeatureKind::kInt64},  {kFeatureLabel, FeatureKind::kInt64},
    {kFeatureClassText, FeatureKind::kBytes}, {kFeatureColorspace, FeatureKind::kBytes},
    {kFeatureEncoded, FeatureKind::kBytes},   {kFeatureFilename, FeatureKind::kBytes},
    {kFeatureFormat, FeatureKind::kBytes},    {kFeatureHeight, FeatureKind::kInt64},
    {kFeatureWidth, FeatureKind::kInt64},
};

}  // namespace

std::optional<TfrecordLayout> ParseTfrecordLayout(std::string_view name) {
  if (name.empty() || name == kClassificationLayout) return TfrecordLayout::kClassification;
  if (name == kImagenetLayout) return TfrecordLayout::kImagenet;
  if (name == kTfdsLayout) return TfrecordLayout::kTfds;
  return std::nullopt;
}

std::optional<FeatureKind> KindInLayout(std::string_view name) {
  for (const LayoutRow& row : kLayoutRows) {
    if (row.name == name) return row.kind;
  }
  return std::nullopt;
}

std::span<const std::string_view> ImageFeatureNames() { return kImageNames; }
std::span<const std::string_view> LabelFeatureNames() { return kLabelNames; }
std::span<const std::string_view> FilenameFeatureNames() { return kFilenameNames; }

bool IsMetadataFeature(std::string_view name) {
  return std::find(std::begin(kMetadataNames), std::end(kMetadataNames), name) !=
         std::end(kMetadataNames);
}

std::string_view FeatureFormatName(ImageFormat format) {
  switch (format) {
    case ImageFormat::kJpeg:
      return "jpeg";
    case ImageFormat::kTiff:
      return "tiff";
    case ImageFormat::kUnknown:
      return "";
    default:
      return ImageExtension(format);
  }
}

std::string_view FeatureFormatNameInCapitals(ImageFormat format) {
  switch (format) {
    case ImageFormat::kJpeg:
      return "JPEG";
    case ImageFormat::kPng:
      return "PNG";
    case ImageFormat::kWebp:
      return "WEBP";
    case ImageFormat::kGif:
      return "GIF";
    case ImageFormat::kBmp:
      return "BMP";
    case ImageFormat::kTiff:
      return "TIFF";
    case ImageFormat::kRaw:
      return "RAW";
    case ImageFormat::kUnknown:
      break;
  }
  return "";
}

std::string_view FeatureColorspaceName(const ImageInfo& image) {
  switch (image.color_space) {
    case ColorSpace::kGray:
    case ColorSpace::kGrayAlpha:  // image/channels is 2
      return "GRAY";
    case ColorSpace::kRgb:
      return "RGB";
    case ColorSpace::kRgba:
      return "RGBA";
    case ColorSpace::kPalette:
      return image.alpha() || image.channels == 4 ? "RGBA" : "RGB";
    case ColorSpace::kCmyk:
    case ColorSpace::kYcck:
      return "CMYK";
    case ColorSpace::kUnknown:
      break;
  }
  return "";
}

std::string_view KindName(FeatureKind kind) {
  static constexpr std::array<std::string_view, 4> kNames = {"no list", "bytes_list", "float_list",
                                                             "int64_list"};
  return kNames[static_cast<size_t>(kind)];
}

}  // namespace shardpack
