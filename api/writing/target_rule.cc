#include "api/writing/target_rule.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "formats/core/format.h"
#include "formats/webdataset/webdataset_writer.h"
#include "images/probe/probe.h"

namespace shardpack {
namespace {

// They change keys, fields or the format of images.
constexpr std::string_view kChanging[] = {"--key",    "--fields", "--sidecars", "--drop-fields",
                                          "--encode", "--resize", "--columns",  "--label-from"};

// The last one counts: "--name=value", "--name value", "-nvalue", "-n value".
std::string ValueOf(const std::vector<std::string>& arguments, std::string_view name,
                    std::string_view letter = {}) {
  std::string value;
  for (size_t n = 0; n < arguments.size(); ++n) {
    const std::string_view argument = arguments[n];
    const bool is_letter = !letter.empty() && argument.starts_with(letter);
    if (argument == name || (is_letter && argument == letter)) {
      value = n + 1 < arguments.size() ? arguments[n + 1] : "";
    } else if (is_letter) {
      value = argument.substr(letter.size());
    } else if (argument.starts_with(name) && argument[name.size()] == '=') {
      value = argument.substr(name.size() + 1);
    }
  }
  return value;
}

}  // namespace

TargetRule::TargetRule(const std::vector<std::string>& arguments)
    : layout_(ValueOf(arguments, "--layout")), image_field_(ValueOf(arguments, "--image-field")) {
  const std::string format = ValueOf(arguments, "--format", "-f");
  known_ = (format.empty() || format == "webdataset") &&
           std::ranges::none_of(arguments, [](std::string_view argument) {
             return std::ranges::any_of(
                 kChanging, [&](std::string_view name) { return argument.starts_with(name); });
           });
  with_metadata_ = std::ranges::find(arguments, "--with-json") != arguments.end();
  // A spec that the format does not have is for `pack` to name.
  const ImageInfo image{.format = ImageFormat::kJpeg};
  const FieldView field{kImageField, AsBytes("\xff\xd8\xff\xd9")};
  const ShardSpec spec{.layout = layout_, .image_field = image_field_};
  known_ = known_ && WebdatasetWriter::CheckSample(
                         spec, {.key = "key", .image = image, .fields = std::span(&field, 1)})
                         .ok();
}

absl::Status TargetRule::Check(std::string_view key, bool labelled,
                               std::span<const FieldView> fields) const {
  if (!known_ || fields.empty() || fields[0].name != kImageField) return absl::OkStatus();
  ImageInfo image;
  image.format = SniffImageFormat(fields[0].bytes);
  // It will be skipped, not refused.
  if (image.format == ImageFormat::kUnknown) image.format = ImageFormat::kJpeg;
  return WebdatasetWriter::CheckSample(
      {.layout = layout_, .image_field = image_field_, .with_metadata = with_metadata_},
      {.key = key, .label = labelled ? 0 : kNoLabel, .image = image, .fields = fields});
}

}  // namespace shardpack
