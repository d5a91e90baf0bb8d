#include "validators/looking/thumbnails.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/escaping.h"
#include "formats/core/image_info.h"
#include "formats/io/bytes.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

constexpr uint8_t kQuality = 60;
constexpr size_t kMeanNumbers = size_t{MeanImage::kSide} * MeanImage::kSide * 3;

// Less than the noise of a JPEG of a single color.
constexpr int kPlainRange = 8;

// Of RGB pixels: whether they are nearly the same.
bool IsPlain(std::span<const uint8_t> pixels) {
  uint8_t low[3] = {255, 255, 255}, high[3] = {0, 0, 0};
  for (size_t i = 0; i < pixels.size(); ++i) {
    low[i % 3] = std::min(low[i % 3], pixels[i]);
    high[i % 3] = std::max(high[i % 3], pixels[i]);
  }
  return high[0] - low[0] < kPlainRange && high[1] - low[1] < kPlainRange &&
         high[2] - low[2] < kPlainRange;
}

const PixelOutput& PlainOutput() {
  static const PixelOutput output({.type = PixelType::kU8}, 3);
  return output;
}

}  // namespace

std::string Base64(std::span<const std::byte> bytes) {
  return absl::Base64Escape(
      absl::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

void MeanImage::Merge(const MeanImage& other) {
  if (other.images == 0) return;
  sums.resize(kMeanNumbers);
  images += other.images;
  for (size_t i = 0; i < kMeanNumbers; ++i) sums[i] += other.sums[i];
}

absl::StatusOr<Thumbnail> ThumbnailMaker::Encoded(const uint8_t* pixels, uint32_t width,
                                                  uint32_t height) {
  ASSIGN_OR_RETURN(const std::span<const std::byte> file,
                   encoder_.Encode({pixels, width, height, 3, size_t{3} * width},
                                   {.format = ImageFormat::kWebp, .quality = kQuality}));
  return Thumbnail{"data:image/webp;base64," + Base64(file), width, height};
}

absl::StatusOr<Thumbnail> ThumbnailMaker::Make(const SampleRows& rows, uint64_t row, uint32_t side,
                                               MeanImage* mean) {
  ASSIGN_OR_RETURN(const RowFacts facts, rows.Facts(row));
  if (!facts.field) return absl::NotFoundError("the sample has no image");
  if (facts.bytes > kMaxImageFileBytes)
    return Thumbnail{.why_none = "more than 256 MiB", .huge = true};
  file_.resize(facts.bytes);
  const absl::Status read = rows.datasets()[facts.dataset].ReadField(facts.at, *facts.field, file_);
  if (!read.ok()) return Thumbnail{.why_none = std::string(read.message()), .unread = true};
  // Where one side is much longer, the decoder keeps what the shorter one needs.
  DecodeOptions options;
  options.min_width = options.min_height = side;
  ASSIGN_OR_RETURN(const DecodedImage image, decoder_.Decode(file_, facts.image, options));
  const double box_width = image.box.right - image.box.left,
               box_height = image.box.bottom - image.box.top;
  const double factor = std::min(1.0, std::min(side / box_width, side / box_height));
  const auto size = [&](double length) {
    return std::max<uint32_t>(1, static_cast<uint32_t>(std::lround(length * factor)));
  };
  const uint32_t width = size(box_width), height = size(box_height);
  pixels_.resize(std::max(kMeanNumbers, size_t{width} * height * 3));
  const auto resize = [&](uint32_t to_width, uint32_t to_height) {
    return resizer_.Resize(image.view, image.box, {.width = to_width, .height = to_height},
                           PlainOutput(), pixels_.data());
  };
  if (mean != nullptr) {
    RETURN_IF_ERROR(resize(MeanImage::kSide, MeanImage::kSide));
    mean->sums.resize(kMeanNumbers);
    ++mean->images;
    for (size_t i = 0; i < kMeanNumbers; ++i) mean->sums[i] += pixels_[i];
  }
  RETURN_IF_ERROR(resize(width, height));
  ASSIGN_OR_RETURN(Thumbnail thumbnail, Encoded(pixels_.data(), width, height));
  thumbnail.plain = IsPlain({pixels_.data(), size_t{width} * height * 3});
  return thumbnail;
}

absl::StatusOr<Thumbnail> ThumbnailMaker::OfMean(const MeanImage& mean) {
  if (mean.images == 0) return absl::NotFoundError("no image was decoded");
  pixels_.resize(kMeanNumbers);
  for (size_t i = 0; i < kMeanNumbers; ++i)
    pixels_[i] = static_cast<uint8_t>((mean.sums[i] + mean.images / 2) / mean.images);
  return Encoded(pixels_.data(), MeanImage::kSide, MeanImage::kSide);
}

}  // namespace shardpack
