#include "api/writing/target_rule.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "formats/core/format.h"
#include "formats/hdf5/hdf5_layout.h"
#include "formats/io/escape.h"
#include "formats/io/status_macros.h"
#include "formats/lmdb/lmdb_layout.h"
#include "formats/webdataset/webdataset_writer.h"
#include "images/probe/probe.h"

namespace shardpack {
namespace {

// They change keys or fields; the others the format of images.
constexpr std::string_view kChangingNames[] = {"--key",         "--fields",  "--sidecars",
                                               "--drop-fields", "--columns", "--label-from"};
constexpr std::string_view kChangingImages[] = {"--encode", "--resize"};

bool HasAny(const std::vector<std::string>& arguments, std::span<const std::string_view> names) {
  return std::ranges::any_of(arguments, [&](std::string_view argument) {
    return std::ranges::any_of(names,
                               [&](std::string_view name) { return argument.starts_with(name); });
  });
}

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

// A share of 0 is the same as --strict. What is no share is for `pack` to refuse.
bool MaySkip(const std::vector<std::string>& arguments) {
  if (std::ranges::find(arguments, "--strict") != arguments.end()) return false;
  std::string share = ValueOf(arguments, "--max-skip");
  if (share.ends_with('%')) share.pop_back();
  double number = 0;
  return !share.empty() && (!absl::SimpleAtod(share, &number) || number != 0);
}

}  // namespace

TargetRule::TargetRule(const std::vector<std::string>& arguments)
    : format_(ValueOf(arguments, "--format", "-f")),
      layout_(ValueOf(arguments, "--layout")),
      image_field_(ValueOf(arguments, "--image-field")) {
  if (format_.empty()) format_ = "webdataset";
  takes_any_image_ = MaySkip(arguments);
  known_ = !HasAny(arguments, kChangingNames);
  if (format_ != "webdataset" || !known_) return;
  with_metadata_ = std::ranges::find(arguments, "--with-json") != arguments.end();
  // A spec that the format does not have is for `pack` to name.
  const ImageInfo image{.format = ImageFormat::kJpeg};
  const FieldView field{kImageField, AsBytes("\xff\xd8\xff\xd9")};
  const ShardSpec spec{.layout = layout_, .image_field = image_field_};
  known_ = !HasAny(arguments, kChangingImages) &&
           WebdatasetWriter::CheckSample(
               spec, {.key = "key", .image = image, .fields = std::span(&field, 1)})
               .ok();
}

absl::Status TargetRule::Check(std::string_view key, bool labelled,
                               std::span<const FieldView> fields) const {
  if (fields.empty() || fields[0].name != kImageField) return absl::OkStatus();
  RETURN_IF_ERROR(CheckImage(key, fields[0].bytes));
  if (!known_) return absl::OkStatus();
  if (format_ == "webdataset") return CheckWebdataset(key, labelled, fields);
  if (format_ == "hdf5" && layout_ != kDecodedLayout) return CheckHdf5(key, fields);
  if ((format_ == "npy" || format_ == "hdf5" || format_ == "lmdb") && fields.size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat(format_, " holds only images, not the field ",
                                                   EscapeForTerminal(fields[1].name),
                                                   " of the sample ", EscapeForTerminal(key)));
  }
  if (format_ == "lmdb" && layout_ == kRawLayout) return CheckKeyBytes(key, kMaxLmdbKeyBytes);
  return absl::OkStatus();
}

absl::Status TargetRule::CheckImage(std::string_view key, Bytes image) const {
  if (takes_any_image_ || SniffImageFormat(image) != ImageFormat::kUnknown) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the image of the sample ", EscapeForTerminal(key),
                   " is not a JPEG, PNG, WebP, GIF, BMP or TIFF; with a --max-skip above 0 "
                   "among the arguments the finish leaves such samples out"));
}

absl::Status TargetRule::CheckKeyBytes(std::string_view key, size_t most) const {
  if (key.size() <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(format_, " holds keys of at most ", most, " bytes: ", EscapeForTerminal(key)));
}

absl::Status TargetRule::CheckHdf5(std::string_view key, std::span<const FieldView> fields) const {
  for (const FieldView& field : fields.subspan(1)) RETURN_IF_ERROR(CheckFieldName(field.name));
  return CheckKeyBytes(key, kMaxHdf5KeyBytes);
}

absl::Status TargetRule::CheckWebdataset(std::string_view key, bool labelled,
                                         std::span<const FieldView> fields) const {
  ImageInfo image;
  image.format = SniffImageFormat(fields[0].bytes);
  // It will be skipped, not refused.
  if (image.format == ImageFormat::kUnknown) image.format = ImageFormat::kJpeg;
  return WebdatasetWriter::CheckSample(
      {.layout = layout_, .image_field = image_field_, .with_metadata = with_metadata_},
      {.key = key, .label = labelled ? 0 : kNoLabel, .image = image, .fields = fields});
}

}  // namespace shardpack
